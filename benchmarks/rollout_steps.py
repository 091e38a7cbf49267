"""Decoding steps that rollouts take, in waves and streamed: what asynchronous rollouts save where episodes differ.

    python -m benchmarks.rollout_steps --data GAMES --out docs/results/rollout_steps

An engine that decodes many sequences at once takes about as long for a step whatever it holds, so its steps are counted
instead of seconds, which makes the figures those of any machine. Environments, prompts and bookkeeping of the rollouts
are the real ones; what members say is what the expert says in the game: to the end with the skill, and without it with
the share of demonstrations that leave out the essential step and go on to the step limit.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from benchmarks.page_record import measure_and_write
from benchmarks.revision import require_clean
from skillc_gym.envs.registry import warm_started
from trainers.config import TrainConfig
from trainers.engines import Engine, Generation, Request, Sampling
from trainers.engines.types import Answer
from trainers.rollout import ChatTokens, make_rollouts, token_policy
from trainers.warmstart import build_tokenizer, small_policy_settings, vocabulary

__all__ = ["Script", "StreamedSteps", "WaveSteps", "count_steps", "main", "script"]

ERRORS = (0.25, 0.5, 0.75)
"""Shares of episodes without the skill that leave out the essential step."""
_END = "<action> look </action>"


@dataclass(frozen=True)
class Script:
    """What every member says, turn by turn."""

    task_ids: tuple[str, ...]
    group_size: int
    replies: Mapping[Hashable, Sequence[str]]

    @property
    def texts(self) -> list[str]:
        """All replies."""
        return [reply for replies in self.replies.values() for reply in replies]


class WaveSteps:
    """Takes a reply from the script, and counts a step for each token of a call's longest reply.

    Args:
        script: What is said.
        tokenizer: Its tokens.
    """

    def __init__(self, script: Script, tokenizer: Any) -> None:
        self._script, self._tokenizer = script, tokenizer
        self.steps, self.tokens = 0, 0

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        """See :class:`trainers.engines.types.Engine`."""
        replies = [self._reply(request) for request in requests]
        self.steps += max(len(reply.token_ids) for reply in replies)
        return replies

    def _reply(self, request: Request) -> Generation:
        said = self._script.replies[request.key]
        turn = request.turn or 0
        text = said[turn] if turn < len(said) else _END
        ids = [*self._tokenizer.encode(text, add_special_tokens=False), self._tokenizer.eos_token_id]
        self.tokens += len(ids)
        return Generation(ids, [0.0] * len(ids))

    def release(self, keys: Iterable[Hashable]) -> None:
        """Nothing is kept."""

    def reset(self) -> None:
        """Nothing is kept."""


class StreamedSteps(WaveSteps):
    """The same, with replies that end when their own tokens have been decoded."""

    def stream(self, requests: Sequence[Request], sampling: Sampling, answer: Answer) -> None:
        """See :class:`trainers.engines.types.StreamingEngine`."""
        under_way: list[tuple[int, Request, Generation]] = []
        while requests or under_way:
            begun = [(request, self._reply(request)) for request in requests]
            under_way += [(self.steps + len(reply.token_ids), request, reply) for request, reply in begun]
            self.steps = min(end for end, _, _ in under_way)
            ended = [(request, reply) for end, request, reply in under_way if end == self.steps]
            under_way = [each for each in under_way if each[0] > self.steps]
            requests = answer(ended)


def script(config: TrainConfig, *, error_rate: float, seed: int) -> Script:
    """Plays every member's episode with the expert.

    Args:
        config: Environment, groups and step limit; ``tasks_per_step`` says how many tasks, types in turn.
        error_rate: Share of the members without the skill that leave out the essential step.
        seed: Seed of the tasks and of who errs.
    """
    rng = np.random.default_rng(seed)
    start = warm_started(config.env)[1]
    env = gymnasium.make(config.env_id, **config.env_kwargs)
    task_ids = _tasks(env.unwrapped, config.tasks_per_step, rng)
    replies: dict[Hashable, list[str]] = {}
    for group, task_id in enumerate(task_ids):
        for member in range(config.group_size):
            errs = member >= config.group_size // 2 and rng.random() < error_rate
            replies[group * config.group_size + member] = _episode(env, start, task_id, errs)
    env.close()
    return Script(tuple(task_ids), config.group_size, replies)


def _tasks(core: Any, count: int, rng: np.random.Generator) -> list[str]:
    by_type: dict[str, list[str]] = {}
    for task_id in core.task_ids:
        by_type.setdefault(core.task_type_of(task_id), []).append(task_id)
    types = sorted(by_type)
    return [str(rng.choice(by_type[types[i % len(types)]])) for i in range(count)]


def _episode(env: gymnasium.Env[Any, Any], start: Any, task_id: str, errs: bool) -> list[str]:
    observation, info = env.reset(seed=0, options={"task_id": task_id})
    expert, said, over = start.demonstrator(info, errs), list[str](), False
    while not over:
        command = expert.act(observation, info["admissible_commands"])
        said.append(f"<think> {expert.thought} </think> <action> {command} </action>")
        observation, _, terminated, truncated, info = env.step(command)
        over = terminated or truncated
    return said


def count_steps(config: TrainConfig, played: Script) -> dict[str, Any]:
    """Plays a script in waves and streamed.

    Args:
        config: As in :func:`script`; ``max_parallel`` is how many sequences the engine decodes at once.
        played: The script.

    Returns:
        Steps of both, episodes per thousand steps, the share of places that decoded, and how many times as many
        episodes per step the streamed rollouts play.
    """
    tokenizer = build_tokenizer(vocabulary([*played.texts, _END]))
    sides = {"waves": WaveSteps(played, tokenizer), "streamed": StreamedSteps(played, tokenizer)}
    lengths = {name: _lengths(config, played, engine, tokenizer) for name, engine in sides.items()}
    if lengths["waves"] != lengths["streamed"]:
        raise RuntimeError("The episodes depend on the order in which they are played")
    episodes = len(lengths["waves"])
    return {
        "episodes": episodes,
        "turns": {"mean": float(np.mean(lengths["waves"])), "longest": max(lengths["waves"])},
        "steps": {name: side.steps for name, side in sides.items()},
        "episodes_per_1000_steps": {name: 1000 * episodes / side.steps for name, side in sides.items()},
        "decoding": {name: side.tokens / side.steps / config.max_parallel for name, side in sides.items()},
        "ratio": sides["waves"].steps / sides["streamed"].steps,
    }


def _lengths(config: TrainConfig, played: Script, engine: Engine, tokenizer: Any) -> list[int]:
    rollouts = make_rollouts(config, token_policy(config, ChatTokens(tokenizer, growing=True), engine))
    shown = [played.group_size // 2] * len(played.task_ids)
    sampling = Sampling()
    try:
        trajectories = rollouts.collect(played.task_ids, shown, played.group_size, seed=0, sampling=sampling)
    finally:
        rollouts.close()
    return [len(each.episode.turns) for each in trajectories]


def _page(record: Mapping[str, Any]) -> str:
    lines = [
        "# Asynchronous rollouts",
        "",
        f"`python -m benchmarks.rollout_steps`: {record['games']} games of `{record['env']}`, groups of "
        f"{record['group_size']}, {record['max_parallel']} sequences at once, at most {record['max_episode_steps']} "
        "turns an episode. Decoding steps, counted; prompts cost none.",
        "",
        "| members without the skill that fail | episodes | turns, mean | in waves: steps | places that decode | "
        "streamed: steps | places that decode | episodes per step, ratio |",
        "|---|---|---|---|---|---|---|---|",
        *(_line(rate, each) for rate, each in record["by_error_rate"].items()),
    ]
    return "\n".join(lines) + "\n"


def _line(rate: str, each: Mapping[str, Any]) -> str:
    waves, streamed = (f"{each['steps'][name]:,} | {each['decoding'][name]:.0%}" for name in ("waves", "streamed"))
    return (
        f"| {float(rate):.0%} | {each['episodes']} | {each['turns']['mean']:.1f} | {waves} | {streamed} | "
        f"{each['ratio']:.2f} |"
    )


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    require_clean(allow_changes=options.allow_changes)
    settings = {
        **small_policy_settings(options.env, options.data),
        **{"tasks_per_step": options.tasks, "group_size": options.group, "max_parallel": options.parallel},
        "max_context": 32768,
    }
    config = TrainConfig(model="", **settings)
    counted = {str(rate): count_steps(config, script(config, error_rate=rate, seed=options.seed)) for rate in ERRORS}
    told = {name: getattr(config, name) for name in ("env", "group_size", "max_parallel", "max_episode_steps")}
    return {**told, "games": options.tasks, "seed": options.seed, "by_error_rate": counted}


def main(words: list[str] | None = None) -> int:
    """Counts, prints the table, and writes the record if ``--out`` is given."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rollout_steps", description=__doc__)
    parser.add_argument("--env", default="alfworld")
    parser.add_argument("--data", default="generated", help="the games, or generated ones")
    parser.add_argument("--tasks", type=int, default=96, help="groups")
    parser.add_argument("--group", type=int, default=8, help="members of a group")
    parser.add_argument("--parallel", type=int, default=128, help="sequences decoded at once")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="place of the record and its page, without ending")
    parser.add_argument("--allow-changes", action="store_true", help="measure a changed working tree")
    return 0 if measure_and_write(parser.parse_args(words), _measure, _page) else 2


if __name__ == "__main__":
    sys.exit(main())

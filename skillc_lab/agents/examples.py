"""Episodes as examples in a prompt, in the very form in which the agent itself will see and answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import gymnasium

from skillc_gym.envs.registry import EnvSpec
from skillc_gym.envs.warm_start import Demonstrator, WarmStart
from skillc_gym.episodes import Episode, EpisodeRecorder
from skillc_gym.errors import ConfigError
from skillc_gym.wrappers import ActionFormat, format_reply

_MOST_STEPS = 50


def examples_text(episodes: Sequence[Episode]) -> str:
    """Episodes below each other, observations and replies verbatim; "" for none."""
    shown = [f"Example {number}\n\n{_shown(episode)}" for number, episode in enumerate(episodes, 1)]
    return "\n\n".join(["Examples of tasks that were done:", *shown]) if shown else ""


def demonstrated(
    spec: EnvSpec, make_env: Callable[[], gymnasium.Env[Any, Any]], task_ids: Sequence[str]
) -> list[Episode]:
    """Lets the environment's expert play tasks, with its thoughts; a ConfigError where it comes without an expert."""
    if spec.warm_start is None:
        raise ConfigError(
            f"Examples are episodes of an expert, and {spec.name} comes without one (EnvSpec.warm_start); "
            "take another agent, such as expel, whose examples are the policy's own successes"
        )
    env = ActionFormat(make_env())
    try:
        return [_demonstration(spec.warm_start, env, task) for task in task_ids]
    finally:
        env.close()


def _demonstration(start: WarmStart, env: gymnasium.Env[str, str], task_id: str) -> Episode:
    begun = env.reset(seed=0, options={"task_id": task_id})
    recorder = EpisodeRecorder(*begun)
    for reply, outcome in islice(expert_replies(env, begun, start.demonstrator(begun[1], False)), _MOST_STEPS):
        recorder.add(reply, outcome)
    return recorder.episode()


def expert_replies(
    env: gymnasium.Env[Any, Any], begun: tuple[str, dict[str, Any]], expert: Demonstrator
) -> Iterator[tuple[str, Any]]:
    """Lets an expert play on from a reset's observation and info to the end: each reply, and what the step returned."""
    (observation, info), over = begun, False
    while not over:
        # Where the observation is a prompt, info has what the environment said.
        listed = info.get("admissible_commands") or info["available_actions"]
        command = expert.act(info.get("observation", observation), listed)
        reply = format_reply(command, expert.thought)
        outcome = env.step(reply)
        yield reply, outcome
        observation, _, terminated, truncated, info = outcome
        over = terminated or truncated


def _shown(episode: Episode) -> str:
    return "\n".join(f"{turn.observation}\n{turn.reply}" for turn in episode.turns)

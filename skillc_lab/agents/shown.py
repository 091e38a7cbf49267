"""What an agent shows an episode: a text beside the library's skill or in its absence, or episodes as examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from skill_library import SkillText
from skillc_gym.envs.registry import EnvSpec
from skillc_gym.envs.warm_start import Demonstrator, WarmStart
from skillc_gym.episodes import Episode, EpisodeRecorder
from skillc_gym.errors import ConfigError
from skillc_gym.wrappers import ActionFormat, format_reply

Choose = Callable[[Mapping[str, Any]], SkillText | None]
"""From the info of a reset (task, type, goal, condition) to what the episode is shown; None for nothing."""


class ShowNotes(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Puts an agent's text behind the skill text of ``info``, where the prompt is made from it.

    ``info["skill"]``, ``skill_text`` and ``skill_sha256`` say all that the episode is shown; ``condition`` stays the
    switch of the library's skill. Episodes for which ``choose``, called with the info of each reset, gives nothing are
    left as they are.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], choose: Choose) -> None:
        RecordConstructorArgs.__init__(self, _disable_deepcopy=True, choose=choose)
        gymnasium.Wrapper.__init__(self, env)
        self._choose = choose
        self._shown: dict[str, Any] = {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode, and asks what it is shown."""
        observation, info = self.env.reset(seed=seed, options=options)
        note = self._choose(info)
        self._shown = {}
        if note is not None:
            names, texts = (info.get("skill", ""), note.name), (info.get("skill_text", ""), note.text)
            shown = SkillText("+".join(filter(None, names)), "\n\n".join(filter(None, texts)))
            self._shown = {"skill": shown.name, "skill_text": shown.text, "skill_sha256": shown.sha256}
        return observation, {**info, **self._shown}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Passes the action on."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, truncated, {**info, **self._shown}


# Examples, in the very form in which the agent itself will see and answer ---------------------------------------------

_MOST_STEPS = 50


def examples_text(episodes: Sequence[Episode]) -> str:
    """Episodes below each other, observations and replies verbatim; "" for none."""
    turns = ("\n".join(f"{turn.observation}\n{turn.reply}" for turn in episode.turns) for episode in episodes)
    shown = [f"Example {number}\n\n{text}" for number, text in enumerate(turns, 1)]
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
    with closing(ActionFormat(make_env())) as env:
        return [_demonstration(spec.warm_start, env, task) for task in task_ids]


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

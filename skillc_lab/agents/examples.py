"""Episodes as examples in a prompt, in the very form in which the agent itself will see and answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium

from skillc_gym.envs.registry import EnvSpec
from skillc_gym.envs.warm_start import WarmStart
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
    observation, info = env.reset(seed=0, options={"task_id": task_id})
    recorder = EpisodeRecorder(observation, info)
    expert = start.demonstrator(info, False)
    for _ in range(_MOST_STEPS):
        command = expert.act(observation, info.get("admissible_commands") or info["available_actions"])
        reply = format_reply(command, expert.thought)
        outcome = env.step(reply)
        recorder.add(reply, outcome)
        observation, info = outcome[0], outcome[4]
        if outcome[2] or outcome[3]:
            break
    return recorder.episode()


def _shown(episode: Episode) -> str:
    return "\n".join(f"{turn.observation}\n{turn.reply}" for turn in episode.turns)

"""Any text as an action, in any order, with resets and returns to earlier moments among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.fuzz.target import Run, changed_text
from skillc_gym.envs.base import TextTaskEnv

__all__ = ["actions_target", "outcome_checked"]

MOMENTS = 8
"""Earlier moments that a run can return to."""


def actions_target(environments: Callable[[], Sequence[TextTaskEnv]], pieces: Sequence[str]) -> Callable[[Any], Run]:
    """Makes what a fuzz target makes: a player of fuzzed actions.

    Args:
        environments: Makes the environments, once.
        pieces: What actions of this world are made of.
    """

    def make(atheris: Any) -> Run:
        envs = environments()

        def play(data: bytes) -> None:
            provider = atheris.FuzzedDataProvider(data)
            env = envs[provider.ConsumeIntInRange(0, len(envs) - 1)]
            _, info = env.reset(seed=provider.ConsumeIntInRange(0, 1_000))
            moments = [env.snapshot()]
            while provider.remaining_bytes() > 1:
                info = _move(provider, env, info, moments, pieces)

        return play

    return make


def _move(
    provider: Any, env: TextTaskEnv, info: dict[str, Any], moments: list[Any], pieces: Sequence[str]
) -> dict[str, Any]:
    way = provider.ConsumeIntInRange(0, 15)
    if way == 0:
        return env.reset()[1]
    if way == 1:
        moments[MOMENTS - 1 :] = [env.snapshot()]
        observation, after = env.restore(moments[provider.ConsumeIntInRange(0, len(moments) - 1)])
        assert observation in env.observation_space
        return after
    return outcome_checked(env, info, _action(provider, info["admissible_commands"], pieces))


def _action(provider: Any, listed: Sequence[str], pieces: Sequence[str]) -> str:
    pool = listed or pieces
    action: str = pool[provider.ConsumeIntInRange(0, len(pool) - 1)]
    way = provider.ConsumeIntInRange(0, 3)
    if way == 0:
        return str(provider.ConsumeUnicode(60))
    return changed_text(provider, action, pieces) if way == 1 else action


def outcome_checked(env: TextTaskEnv, before: dict[str, Any], action: str) -> dict[str, Any]:
    """Makes a step, checks what must hold of any answer, and returns the info.

    Raises:
        AssertionError: Something does not hold.
    """
    observation, reward, terminated, truncated, info = env.step(action)
    assert observation in env.observation_space, "an observation outside its space"
    observation.encode()
    assert 0.0 <= reward <= 1.0, f"a reward of {reward}"
    assert 0.0 <= info["task_score"] <= 1.0, f"a score of {info['task_score']}"
    assert truncated is False, "an environment without a step limit truncated"
    assert isinstance(terminated, bool), "terminated is no bool"
    if not info["action_valid"]:
        assert info["admissible_commands"] == before["admissible_commands"], "an impossible action changed something"
    return info

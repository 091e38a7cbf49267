"""Making the members of a vector: the same environment again and again, with the same wrappers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium

from skillc_gym.errors import ConfigError
from skillc_gym.wrappers.skill_injection import SkillInjection

__all__ = ["AnyEnv", "member_maker", "step_members", "wrapped"]

AnyEnv = gymnasium.Env[Any, Any]


def member_maker(env: str | AnyEnv | Callable[..., AnyEnv], env_kwargs: Mapping[str, Any]) -> Callable[[], AnyEnv]:
    """Turns an id, an environment made from one, or a function into a function that makes one member.

    Raises:
        ConfigError: The environment was not made from an id.
    """
    if isinstance(env, gymnasium.Env):
        if env.spec is None:
            raise ConfigError(
                f"{env} was not made from an id, so its members cannot be; pass a function that makes one"
            )
        spec = env.spec
        return lambda: gymnasium.make(spec, **env_kwargs)
    if isinstance(env, str):
        name = env
        return lambda: gymnasium.make(name, **env_kwargs)
    function = env
    return lambda: function(**env_kwargs)


def wrapped(
    env: AnyEnv,
    library: str | os.PathLike[str] | None,
    where: str,
    wrappers: Sequence[Callable[[Any], AnyEnv]],
    grade: str = "full",
) -> AnyEnv:
    """Puts the SkillInjection (if there is a library) and then the other wrappers around a member."""
    if library is not None:
        env = SkillInjection(env, library=library, enabled=False, where=where, grade=grade)
    for wrapper in wrappers:
        env = wrapper(env)
    return env


def step_members(envs: Sequence[AnyEnv], due: Sequence[tuple[int, Any]]) -> Iterable[Any]:
    """Steps members, and gives for each what its step returned, or the exception that it raised.

    Members wait for each other, unless their environment has an attribute ``concurrent_steps``: so many of them then
    step at once, each in a thread of its own. That helps where a step waits for another process, as a browser.

    Args:
        envs: All members.
        due: The members to be stepped, (member, action).
    """

    def step(entry: tuple[int, Any]) -> Any:
        member, action = entry
        try:
            return envs[member].step(action)
        except Exception as error:  # noqa: BLE001 - it is raised again once everybody has been stepped
            return error

    at_once = min(getattr(envs[0].unwrapped, "concurrent_steps", 1), len(due))
    if at_once < 2:
        return map(step, due)
    with ThreadPoolExecutor(at_once) as threads:
        return list(threads.map(step, due))

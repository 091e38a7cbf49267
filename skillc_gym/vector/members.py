"""Making the members of a vector: the same environment again and again, with the same wrappers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from skillc_gym.errors import ConfigError
from skillc_gym.wrappers.skill_injection import SkillInjection

AnyEnv = gymnasium.Env[Any, Any]


def member_maker(env: str | AnyEnv | Callable[..., AnyEnv], env_kwargs: Mapping[str, Any]) -> Callable[[], AnyEnv]:
    """Turns an id, an environment made from one, or a function into a function that makes one member."""
    if isinstance(env, gymnasium.Env):
        if env.spec is None:
            raise ConfigError(
                f"{env} was not made from an id, so its members cannot be; pass a function that makes one"
            )
        return partial(gymnasium.make, _unordered(env.spec), **env_kwargs)
    if isinstance(env, str):
        return partial(gymnasium.make, _unordered(gymnasium.registry.get(env, env)), **env_kwargs)
    return partial(env, **env_kwargs)


def _unordered(spec: EnvSpec | str) -> EnvSpec | str:
    """Leaves out Gymnasium's check of the order of calls, two calls a step: the vector makes that check itself."""
    return spec if isinstance(spec, str) else replace(spec, order_enforce=False)


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


def step_at_once(envs: Sequence[AnyEnv], due: Sequence[tuple[int, Any]], at_once: int) -> list[Future[Any]]:
    """Steps members in threads of their own, which helps where a step waits for another process, as a browser.

    Args:
        envs: All members.
        due: The members to be stepped, (member, action).
        at_once: How many step at the same time.

    Returns:
        What came of each step, in the order of ``due``.
    """
    with ThreadPoolExecutor(at_once) as threads:
        return [threads.submit(envs[member].step, action) for member, action in due]

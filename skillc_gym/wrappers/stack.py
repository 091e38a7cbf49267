"""Looking through a stack of wrappers."""

from __future__ import annotations

from typing import Any, TypeVar

import gymnasium
from gymnasium.spaces import Text

from skillc_gym.errors import ConfigError

WrapperT = TypeVar("WrapperT", bound=gymnasium.Wrapper)


def find_wrapper(env: gymnasium.Env[Any, Any], kind: type[WrapperT]) -> WrapperT | None:
    """The outermost wrapper of a class in an environment's stack, or None."""
    layer: gymnasium.Env[Any, Any] = env
    while isinstance(layer, gymnasium.Wrapper):
        if isinstance(layer, kind):
            return layer
        layer = layer.env
    return None


def text_space(env: gymnasium.Env[Any, Any], which: str, wrapper: str) -> Text:
    """An environment's ``observation_space`` or ``action_space``; ConfigError if it is no ``Text``."""
    space = getattr(env, which)
    if not isinstance(space, Text):
        raise ConfigError(
            f"{wrapper} needs a text environment; the {which} of {env} is {space}, expected Unicode or Text"
        )
    return space

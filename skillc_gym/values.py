"""Options held against what they may be, where a wrong one would be taken for another in silence."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from skillc_gym.errors import ConfigError


def require_switch(name: str, value: object) -> bool:
    """Returns True or False, also for 1 and 0; ConfigError for any other value: a text such as 'no' counts as true."""
    if isinstance(value, int | np.integer | np.bool_) and value in (0, 1):
        return bool(value)
    raise ConfigError(f"{name} is true or false, got {value!r}")


def require_several(name: str, texts: object) -> None:
    """ConfigError for one text where several are expected: it would be taken for its letters."""
    if isinstance(texts, str):
        raise ConfigError(f"{name} takes several texts, got one: {texts!r}; give [{texts!r}]")


def listed(names: object) -> list[Any]:
    """What is asked for by a list of names, or by one; what is no list stands alone, to be refused as a name."""
    return [names] if isinstance(names, str) or not isinstance(names, Iterable) else list(names)


def digits(text: str) -> int | None:
    """The whole number that a text is in decimal digits, None if it is none; Python reads no thousands of them."""
    return int(text) if text.isdecimal() and len(text) <= 18 else None


def require_whole(name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """Returns a whole number, of Python's or NumPy's, within the bounds that are given; ConfigError for any other."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or (least is not None and number < least) or (most is not None and number > most):
        bounds = "" if least is None else f" from {least} up" if most is None else f" from {least} to {most:,}"
        raise ConfigError(f"{name} is a whole number{bounds}, got {value!r}")
    return number

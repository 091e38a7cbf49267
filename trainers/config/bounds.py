"""Bounds of settings, written into their types: ``Annotated[int, AtLeast(1)]``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol, get_args, get_origin, runtime_checkable

from skillc_gym.errors import ConfigError, unknown_name

__all__ = [
    "AtLeast",
    "AtMost",
    "Below",
    "Bound",
    "Count",
    "MoreThan",
    "Natural",
    "NotNegative",
    "Part",
    "Positive",
    "Share",
    "check_values",
]


@runtime_checkable
class Bound(Protocol):
    """A condition on a number."""

    def check(self, name: str, value: float) -> None:
        """Raises ConfigError if the value of the setting lies outside."""
        ...


@dataclass(frozen=True)
class AtLeast:
    """The number is this one or larger."""

    least: float

    def check(self, name: str, value: float) -> None:
        """Raises ConfigError for a smaller number, and for one that is not a number."""
        if not value >= self.least:
            raise ConfigError(f"{name} must be at least {self.least}, got {value}.")


@dataclass(frozen=True)
class MoreThan:
    """The number is larger than this one."""

    limit: float

    def check(self, name: str, value: float) -> None:
        """Raises ConfigError for a smaller or equal number, and for one that is not a number."""
        if not value > self.limit:
            wanted = "positive" if self.limit == 0 else f"more than {self.limit}"
            raise ConfigError(f"{name} must be {wanted}, got {value}.")


@dataclass(frozen=True)
class AtMost:
    """The number is this one or smaller."""

    most: float

    def check(self, name: str, value: float) -> None:
        """Raises ConfigError for a larger number, and for one that is not a number."""
        if not value <= self.most:
            raise ConfigError(f"{name} must be at most {self.most}, got {value}.")


@dataclass(frozen=True)
class Below:
    """The number is smaller than this one."""

    limit: float

    def check(self, name: str, value: float) -> None:
        """Raises ConfigError for an equal or larger number, and for one that is not a number."""
        if not value < self.limit:
            raise ConfigError(f"{name} must be less than {self.limit}, got {value}.")


Count = Annotated[int, AtLeast(1)]
Natural = Annotated[int, AtLeast(0)]
NotNegative = Annotated[float, AtLeast(0)]
Positive = Annotated[float, MoreThan(0)]
Share = Annotated[float, AtLeast(0), Below(1)]
Part = Annotated[float, MoreThan(0), AtMost(1)]


def check_values(settings: object, hints: Mapping[str, Any]) -> None:
    """Checks each value against the bounds and the choices in its type; None is never out of bounds.

    Args:
        settings: An object with one attribute per setting.
        hints: The settings' types, extras included.

    Raises:
        ConfigError: If a number lies outside its bounds.
        UnknownNameError: If a name is none of its type's choices.
    """
    for name, hint in hints.items():
        value = getattr(settings, name)
        if value is None and type(None) in get_args(hint):
            continue
        for part in (hint, *get_args(hint)):
            _check(name, value, part)


def _check(name: str, value: Any, hint: Any) -> None:
    if get_origin(hint) is Literal and value not in get_args(hint):
        raise unknown_name(name, value, get_args(hint))
    for bound in getattr(hint, "__metadata__", ()):
        if isinstance(bound, Bound) and value is not None:
            bound.check(name, value)

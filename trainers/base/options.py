"""Options in small frozen dataclasses: checked against their types, and reached from outside by flat names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from skillc_gym.errors import ConfigError, unknown_name
from trainers.base.bounds import check_values

__all__ = ["Options", "flat_options", "option_names", "override"]

T = TypeVar("T")


class Options:
    """Base of a frozen dataclass of options: lists become tuples, and every value is held against its type.

    Raises:
        UnknownNameError: A literal that does not exist.
        ConfigError: A value of another type.
    """

    def __post_init__(self) -> None:
        check_values(self)


def _leaves(part: Any, prefix: str) -> Iterator[tuple[str, str, Any]]:
    """(part's name, option, value) for every option of a tree of parts."""
    for spec in fields(part):
        value = getattr(part, spec.name)
        if isinstance(part, Options):
            yield prefix, spec.name, value
        elif isinstance(value, tuple):
            for entry in value:
                yield from _leaves(entry, entry.name)
        elif value is not None:
            yield from _leaves(value, spec.name)


def flat_options(parts: Any) -> dict[str, Any]:
    """All options of a tree of parts as JSON-able values.

    Args:
        parts: :class:`Options`, or a dataclass whose fields are such trees or tuples of options with a ``name``.

    Returns:
        By field name where one part has it, by ``<part>.<field>`` where several do.
    """
    found = list(_leaves(parts, ""))
    names = [name for _, name, _ in found]
    return {
        name if names.count(name) == 1 else f"{prefix}.{name}": list(value) if isinstance(value, tuple) else value
        for prefix, name, value in found
    }


def option_names(parts: Any) -> list[str]:
    """Every name that :func:`override` takes: flat where it is unique, and always ``<part>.<field>``."""
    return [*flat_options(parts), *(f"{prefix}.{name}" for prefix, name, _ in _leaves(parts, "") if prefix)]


def override(parts: T, changes: Mapping[str, Any]) -> T:
    """A copy of a tree of parts with some options changed; each goes to the part that owns it.

    Raises:
        UnknownNameError: No part has such an option; the message names the nearest.
        ConfigError: Several parts have it, or a value does not fit.
    """
    known = option_names(parts)
    for name in changes:
        if name not in known:
            several = [option for option in known if option.endswith(f".{name}")]
            if several:
                raise ConfigError(f"Several parts have an option {name}; say which: {', '.join(several)}")
            raise unknown_name("option", name, known)
    result: T = _rebuilt(parts, "", changes)
    return result


def _rebuilt(part: Any, prefix: str, changes: Mapping[str, Any]) -> Any:
    new: dict[str, Any] = {}
    for spec in fields(part):
        value = getattr(part, spec.name)
        if isinstance(part, Options):
            asked = [name for name in (spec.name, f"{prefix}.{spec.name}") if name in changes]
            if asked:
                new[spec.name] = changes[asked[-1]]
        elif isinstance(value, tuple):
            new[spec.name] = tuple(_rebuilt(entry, entry.name, changes) for entry in value)
        elif value is not None:
            new[spec.name] = _rebuilt(value, spec.name, changes)
    return replace(part, **new) if new else part

"""Ranges of options, written into their types, and the one check of an option against its type."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt

from skillc_gym.errors import ConfigError, unknown_name

if typing.TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["AtLeastTwo", "Count", "Fraction", "Natural", "NotNegative", "Part", "Positive", "Share", "check_values"]

Count = Annotated[int, Ge(1)]
AtLeastTwo = Annotated[int, Ge(2)]
Natural = Annotated[int, Ge(0)]
NotNegative = Annotated[float, Ge(0)]
Positive = Annotated[float, Gt(0)]
Share = Annotated[float, Ge(0), Lt(1)]
Part = Annotated[float, Gt(0), Le(1)]
Fraction = Annotated[float, Ge(0), Le(1)]

_EXPECTED: Mapping[str, str] = {
    "greater_than_equal": "at least {ge:g}",
    "less_than_equal": "at most {le:g}",
    "greater_than": "more than {gt:g}",
    "less_than": "less than {lt:g}",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "a text",
    "tuple_type": "a list",
}


def check_values(options: Any, *, prefix: str = "") -> None:
    """Holds every field of a dataclass against its type; lists become tuples, nothing else is converted.

    Args:
        options: An instance of a dataclass, frozen or not.
        prefix: Stands before a field's name in errors, such as ``engine.``.

    Raises:
        UnknownNameError: A choice that does not exist; the message names the nearest.
        ConfigError: A value of another type, or outside its range.
    """
    from pydantic import ValidationError

    kind: Any = type(options)
    for name, hint, adapter in _fields(kind):
        value = getattr(options, name)
        if isinstance(value, list):
            value = tuple(value)
            object.__setattr__(options, name, value)
        try:
            # Values stay as they were given: an option's 1 that became 1.0 would be another hash of the settings.
            adapter.validate_python(value, strict=True)
        except ValidationError as error:
            raise _error(prefix + name, value, hint, error.errors()[0]) from None


@cache
def _fields(kind: Any) -> tuple[tuple[str, Any, TypeAdapter[Any]], ...]:
    """Name, type and check of every field; built when first asked for, since pydantic is slow to import."""
    from pydantic import TypeAdapter

    hints = typing.get_type_hints(kind, include_extras=True)
    names = [
        name for name in getattr(kind, "__dataclass_fields__", {}) if get_origin(hints[name]) is not typing.ClassVar
    ]
    return tuple((name, hints[name], TypeAdapter(hints[name])) for name in names)


def _error(name: str, value: Any, hint: Any, found: Mapping[str, Any]) -> Exception:
    choices = list(_choices(hint))
    if found["type"] == "literal_error" and choices:
        return unknown_name(name, value, choices)
    expected = _EXPECTED.get(found["type"], "")
    wanted = f"must be {expected.format(**found.get('ctx', {}))}" if expected else found["msg"]
    return ConfigError(f"{name} {wanted.replace('more than 0', 'positive')}, got {value!r}.")


def _choices(hint: Any) -> Iterator[Any]:
    if get_origin(hint) is Literal:
        yield from get_args(hint)
    else:
        for part in get_args(hint):
            yield from _choices(part)

"""Checks of recorded fields by the annotations of the classes that hold them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from typing import Any

from skill_library.errors import brief
from skillc_gym.errors import TranscriptError

__all__ = ["checked"]


def checked(kind: type[Any], values: Any, optional: Collection[str] = ()) -> dict[str, Any]:
    """A recorded object's fields, each of its declared type.

    Args:
        kind: The dataclass whose fields they are.
        values: What was read.
        optional: Fields that may be missing.

    Raises:
        TranscriptError: A field is missing, unknown or of another type.
    """
    if not isinstance(values, Mapping):
        raise TranscriptError(f"Expected an object with the fields of {kind.__name__}, got {brief(values)}")
    types = {entry.name: str(entry.type) for entry in fields(kind)}
    missing, unknown = sorted(types.keys() - values.keys() - set(optional)), sorted(values.keys() - types.keys())
    if missing or unknown:
        lacks = [f"lacks {', '.join(missing)}"] if missing else []
        more = [f"has unknown {', '.join(map(_name, unknown[:5]))}"] if unknown else []
        raise TranscriptError(
            f"A recorded {kind.__name__} {' and '.join(lacks + more)}; was it written by another version?"
        )
    return {name: _value(f"{kind.__name__}.{name}", types[name], value) for name, value in values.items()}


def _name(field: str) -> str:
    return field if field.isidentifier() and len(field) < 100 else brief(field)


def _value(name: str, declared: str, value: Any) -> Any:
    convert = _CONVERT[declared]
    try:
        return convert(value)
    except (TypeError, OverflowError) as error:
        raise TranscriptError(f"{name} must be {_WORDS[declared]}, got {brief(value)}") from error


def _exactly(*kinds: type[Any]) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        # A boolean is an integer to Python.
        if type(value) not in kinds:
            raise TypeError
        return value

    return convert


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError
    return float(value)


def _messages(value: Any) -> list[dict[str, str]]:
    if not isinstance(value, list) or not all(map(_is_message, value)):
        raise TypeError
    return value


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"role", "content"} and all(map(_is_text, value.values()))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_CONVERT: Mapping[str, Callable[[Any], Any]] = {
    "str": _exactly(str),
    "bool": _exactly(bool),
    "int": _exactly(int),
    "float": _number,
    "tuple[Turn, ...]": _exactly(list, tuple),
    "list[dict[str, str]]": _messages,
}
_WORDS = {
    "str": "a text",
    "bool": "true or false",
    "int": "an integer",
    "float": "a number",
    "tuple[Turn, ...]": "a list of turns",
    "list[dict[str, str]]": "a list of messages with role and content",
}

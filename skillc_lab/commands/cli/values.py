"""How the words behind an option become a value of its type; help and parsing both go by these rules."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from skillc_gym.errors import ConfigError, unknown_name

__all__ = ["free_value", "is_flag", "is_list", "read_truth", "reader", "registry"]

Reader = PrimitiveConstructorSpec[Any]

_NONE = ("none", "null")
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_SCALARS: Mapping[Any, tuple[str, str]] = {
    int: ("INT", "a whole number"),
    float: ("FLOAT", "a number"),
    str: ("TEXT", "a text"),
    Path: ("PATH", "a path"),
}


def free_value(text: str) -> Any:
    """Reads a value whose type nobody declares: JSON where it is JSON, Python's None and booleans, else the text."""
    spoken = {"None": None, "True": True, "False": False}
    if text in spoken:
        return spoken[text]
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def read_truth(text: str) -> bool:
    """Reads a truth value.

    Raises:
        ConfigError: If it is none.
    """
    if text.lower() not in _TRUTH:
        raise ConfigError(f"{text!r} is neither true nor false")
    return _TRUTH[text.lower()]


def is_flag(hint: Any) -> bool:
    """Whether the option is switched on and off without a value."""
    return _core(hint) is bool


def is_list(hint: Any) -> bool:
    """Whether the option takes any number of words."""
    return get_origin(_core(hint)) is tuple


def reader(hint: Any) -> Reader | None:
    """The rule for a type; None for one that is no value but a group of options.

    The rule raises ConfigError or UnknownNameError, both ValueErrors, for words that are no value of the type.
    """
    core, optional = _core(hint), type(None) in get_args(_bare(hint))
    origin = get_origin(core)
    if core in _SCALARS:
        return _scalar(core, optional)
    if origin is Literal:
        return _choice(get_args(core), optional)
    if origin is tuple:
        return _list(get_args(core)[0], optional)
    if core is Mapping or origin is Mapping:
        return _mapping()
    return None


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _core(hint: Any) -> Any:
    """The type without its annotations, and without the None that it may be."""
    hint = _bare(hint)
    if get_origin(hint) in (Union, types.UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not type(None)]
        return _bare(kinds[0]) if len(kinds) == 1 else hint
    return hint


def _scalar(kind: Any, optional: bool) -> Reader:
    metavar, wanted = _SCALARS[kind]

    def read(words: list[str]) -> Any:
        if optional and words[0].lower() in _NONE:
            return None
        try:
            return kind(words[0])
        except ValueError as error:
            raise ConfigError(f"{words[0]!r} is not {wanted} (of type {kind.__name__})") from error

    return _rule(1, metavar, read, lambda value: value is None or isinstance(value, kind))


def _choice(names: Sequence[str], optional: bool) -> Reader:
    def read(words: list[str]) -> str | None:
        if optional and words[0].lower() in _NONE:
            return None
        if words[0] not in names:
            raise unknown_name("choice", words[0], names)
        return words[0]

    return _rule(1, "{" + ",".join(names) + "}", read, lambda value: value is None or value in names)


def _list(kind: Any, optional: bool) -> Reader:
    one = reader(kind)
    if one is None:
        raise ConfigError(f"A list of {kind} cannot be written on a command line.")

    def read(words: list[str]) -> tuple[Any, ...] | None:
        if optional and len(words) == 1 and words[0].lower() in _NONE:
            return None
        return tuple(one.instance_from_str([word]) for word in words)

    return _rule("*", f"{one.metavar} ...", read, lambda value: value is None or isinstance(value, tuple))


def _mapping() -> Reader:
    def read(words: list[str]) -> Mapping[str, Any]:
        try:
            found = json.loads(words[0])
        except json.JSONDecodeError as error:
            raise ConfigError(f"{words[0]!r} is no JSON ({error})") from error
        if not isinstance(found, dict):
            raise ConfigError(f"{words[0]!r} is no JSON object")
        return found

    return _rule(1, "JSON", read, lambda value: isinstance(value, Mapping))


def _rule(nargs: Any, metavar: str, read: Any, fits: Any) -> Reader:
    return PrimitiveConstructorSpec(
        nargs=nargs, metavar=metavar, instance_from_str=read, is_instance=fits, str_from_instance=_words
    )


def _words(value: Any) -> list[str]:
    """A default, as it would be typed."""
    if isinstance(value, tuple):
        return [word for part in value for word in _words(part)]
    if isinstance(value, Mapping):
        return [json.dumps(dict(value))]
    return ["none" if value is None else str(value)]


def registry() -> ConstructorRegistry:
    """The rules, as the parser takes them."""
    found = ConstructorRegistry()

    @found.primitive_rule
    def rule(info: PrimitiveTypeInfo) -> Reader | None:
        return reader(info.type)

    return found

"""Options: their ranges, their choices, the one check of a value against its type, and flat names from outside."""

from __future__ import annotations

import math
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt

from skillc_gym.errors import ConfigError, unknown_name

if typing.TYPE_CHECKING:
    from pydantic import TypeAdapter

Count = Annotated[int, Ge(1)]
AtLeastTwo = Annotated[int, Ge(2)]
Natural = Annotated[int, Ge(0)]
NotNegative = Annotated[float, Ge(0), Lt(math.inf)]
Positive = Annotated[float, Gt(0), Lt(math.inf)]
# From 0 to 1: without the 1, without both, without the 0, with both.
Share = Annotated[float, Ge(0), Lt(1)]
Level = Annotated[float, Gt(0), Lt(1)]
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
    "dict_type": "values by their names",
}


def check_values(options: Any, *, prefix: str = "") -> None:
    """Holds every field of a dataclass against its type; lists become tuples, nothing else is converted.

    Errors name the field with ``prefix``, such as ``engine.``, before it, and the nearest choice.
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
    return tuple((spec.name, hints[spec.name], TypeAdapter(hints[spec.name])) for spec in fields(kind))


def _error(name: str, value: Any, hint: Any, found: Mapping[str, Any]) -> Exception:
    choices = list(_choices(hint))
    if found["type"] == "literal_error" and choices:
        return unknown_name(name, value, choices)
    expected = _EXPECTED.get(found["type"], "")
    wanted = f"must be {expected.format(**found.get('ctx', {}))}" if expected else found["msg"]
    plain = wanted.replace("more than 0", "positive").replace("less than inf", "finite")
    return ConfigError(f"{name} {plain}, got {value!r}.")


def _choices(hint: Any) -> Iterator[Any]:
    if get_origin(hint) is Literal:
        yield from get_args(hint)
    else:
        for part in get_args(hint):
            yield from _choices(part)


Returns = Literal["won", "task_score", "reward"]
"""What a learner's return is: success, the environment's own score, or the sum of the rewards (shaping included)."""
RatioLevel = Literal["token", "sequence"]
"""Whether a probability ratio is a token's or a row's."""
Thoughts = Literal["template", "keep", "drop"]
"""What a growing conversation shows of earlier thoughts."""
TaskSampling = Literal["uniform", "types"]
"""How an update's tasks are drawn."""
Aggregation = Literal["trajectory", "token", "constant"]
"""What a token's value is divided by before values are added up."""
MaskTruncated = Literal["none", "context", "all"]
"""Which truncated episodes teach nothing."""


class Options:
    """Base of a frozen dataclass of options: lists become tuples, and :func:`check_values` sees every value."""

    def __post_init__(self) -> None:
        check_values(self)


@dataclass(frozen=True)
class Sampling(Options):
    """How the next token is drawn; greedy decoding has its own switch, no temperature of 0."""

    temperature: Positive = 1.0
    """Divides the logits. Log-probabilities that engines report are those of the divided logits."""
    greedy: bool = False
    """Take the most probable token instead of drawing one; the seeds are then not used."""
    top_p: Part = 1.0
    """Draw from the most probable tokens that together reach this share; 1 for all. The log-probabilities of an engine
    with exact ones stay those of the whole distribution."""
    top_k: Natural = 0
    """Draw from so many of the most probable tokens; 0 for all."""
    min_p: Share = 0.0
    """Draw from tokens at least so probable as this share of the most probable one; 0 for all."""

    @property
    def truncates(self) -> bool:
        """Whether some tokens are never drawn."""
        return self.top_p < 1 or self.top_k > 0 or self.min_p > 0


T = TypeVar("T")


def _leaves(part: Any, prefix: str) -> Iterator[tuple[str, str, Any]]:
    """(part's name, option, value) for every option of a tree of parts."""
    for spec in fields(part):
        value = getattr(part, spec.name)
        if isinstance(part, Options):
            yield prefix, spec.name, value
        elif isinstance(value, tuple):
            for entry in value:
                yield from _leaves(entry, entry.name)
        elif is_dataclass(value):
            yield from _leaves(value, spec.name)


def flat_options(parts: Any) -> dict[str, Any]:
    """All options of a tree of parts: by field name where one part has it, by ``<part>.<field>`` where several do.

    A part is :class:`Options`, or a dataclass whose fields are such trees or tuples of options with a ``name``.
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
    """A copy of a tree of parts, options changed in the parts that own them; errors name the nearest or all."""
    known = option_names(parts)
    for name in changes:
        if name not in known:
            several = dict.fromkeys(option for option in known if option.endswith(f".{name}"))
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
            if len(asked) > 1 and changes[asked[0]] != changes[asked[1]]:
                raise ConfigError(f"{asked[0]} and {asked[1]} are one option, with two values; use one name for it.")
            if asked:
                new[spec.name] = changes[asked[0]]
        elif isinstance(value, tuple):
            new[spec.name] = tuple(_rebuilt(entry, entry.name, changes) for entry in value)
        elif is_dataclass(value):
            new[spec.name] = _rebuilt(value, spec.name, changes)
    return replace(part, **new) if new else part

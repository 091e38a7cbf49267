"""How large a generated house is, and what makes it harder or easier: one knob at a time or all at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skillc_gym.envs.alfworld.generate.catalogue import ROOMS
from skillc_gym.errors import ConfigError, require_name
from skillc_gym.values import require_whole

Bounds = tuple[int, int]
SIZES: dict[str, dict[str, Bounds]] = {
    "small": {"receptacles": (6, 9), "objects": (4, 8)},
    "medium": {"receptacles": (12, 16), "objects": (12, 18)},
    "large": {"receptacles": (20, 28), "objects": (24, 36)},
    "real": {},  # each kind of receptacle and object as the real scenes have it
}
"""Bounds, both included, of the numbers of receptacles and of objects to carry, the wanted ones among them.

A room that has not so many kinds of receptacles keeps those it has.
"""

_FEWEST_RECEPTACLES = 4
# Beyond these an answer becomes longer than the native engine takes.
_MOST = {"receptacles": 100, "objects": 150, "spares": 20}
_EASIEST, _HARDEST = {"receptacles": 5, "objects": 4, "spares": 3}, {"receptacles": 35, "objects": 44, "spares": 0}


@dataclass(frozen=True)
class Knobs:
    """Choices that override a size's; None leaves a choice to the size.

    Attributes:
        receptacles: Bounds of their number, both included. More of them: a longer search.
        objects: Bounds of the number of objects that can be carried, wanted ones included: longer observations.
        closed: Share of the receptacles with a door that have one and begin closed, in [0, 1]; the others are open
            for good. More of them: longer plans and a longer search.
        hidden: Chance that a wanted object begins behind a door, where its kind and the house allow it, in [0, 1].
        spares: Further objects of the wanted kind, none of them at the target. More of them: a shorter search.
        rooms: The kinds of room that tasks are set in.
        convention: Task sentences leave out where a thing belongs. A number fixes the place of each task type but
            "look" for all games, in rooms that have it; "drawn" draws it for each game.
    """

    receptacles: Bounds | None = None
    objects: Bounds | None = None
    closed: float | None = None
    hidden: float | None = None
    spares: int | None = None
    rooms: tuple[str, ...] | None = None
    convention: int | str | None = None

    def at(self, difficulty: float) -> Knobs:
        """These knobs, with those that were left alone set by one number between 0 (easiest) and 1 (hardest)."""
        few, many = (_between(difficulty, name) for name in ("receptacles", "objects"))
        level: dict[str, Any] = {
            "receptacles": (few, few + 2),
            "objects": (many, many + 4),
            "closed": difficulty,
            "hidden": difficulty,
            "spares": _between(difficulty, "spares"),
        }
        return replace(self, **{name: value for name, value in level.items() if getattr(self, name) is None})


PLAIN = Knobs()


def _between(difficulty: float, name: str) -> int:
    return round(_EASIEST[name] + difficulty * (_HARDEST[name] - _EASIEST[name]))


def read_knobs(**options: Any) -> Knobs:
    """Checks options as JSON gives them; UnknownNameError or ConfigError for one that cannot be."""
    for name in options:
        require_name("option of the generator", name, _READERS)
    return Knobs(**{name: _READERS[name](value) for name, value in options.items() if value is not None})


def check_share(option: str, value: object) -> float:
    """Returns a number between 0 and 1; ConfigError for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ConfigError(f"The generator's {option} is a number between 0 and 1; got {value!r}.")
    return float(value)


def _count(option: str, value: object, least: int) -> int:
    return require_whole(f"The generator's {option}", value, least, _MOST[option])


def _bounds(option: str, value: object, least: int) -> Bounds:
    if isinstance(value, list | tuple) and len(value) == 2:
        low, high = (_count(option, bound, least) for bound in value)
        if low <= high:
            return low, high
        raise ConfigError(f"The generator's {option} are [lowest, highest]; got {value!r}.")
    number = _count(option, value, least)
    return number, number


def _convention(value: object) -> int | str:
    return "drawn" if value == "drawn" else require_whole("The generator's convention (or 'drawn')", value, 0)


def _rooms(value: object) -> tuple[str, ...]:
    names: Sequence[object] = value if isinstance(value, list | tuple) else (value,)
    if not names:
        raise ConfigError(f"The generator's rooms are some of {', '.join(ROOMS)}; got none.")
    return tuple(require_name("kind of room", str(name), ROOMS) for name in names)


_READERS: dict[str, Callable[[object], Any]] = {
    "receptacles": lambda value: _bounds("receptacles", value, _FEWEST_RECEPTACLES),
    "objects": lambda value: _bounds("objects", value, 1),
    "closed": lambda value: check_share("closed", value),
    "hidden": lambda value: check_share("hidden", value),
    "spares": lambda value: _count("spares", value, 0),
    "rooms": _rooms,
    "convention": _convention,
}

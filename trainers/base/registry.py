"""Names to objects, built-in or ``module:NAME``; old names of options, still understood."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any, TypeVar

from skillc_gym.errors import ConfigError, unknown_name
from skillc_gym.lazy import load_reference


@dataclass(frozen=True)
class Wanted:
    """What an object of others must be: in words, and as a check."""

    said: str
    fits: Callable[[Any], bool]


def instance_of(kind: type) -> Wanted:
    """An instance of a class."""
    return Wanted(f"a {kind.__module__}.{kind.__name__}", lambda found: isinstance(found, kind))


CALLABLE = Wanted("something to call", callable)


@dataclass(frozen=True)
class Registry:
    """The objects of one kind.

    A module of the package offers an object as ``<attribute>``, or several as ``<attribute>S``; each has a ``name``.
    Third parties write ``module:NAME``, or declare an entry point of the group.
    """

    kind: str
    """What they are, for errors."""
    package: str
    """Holds the built-in ones, in its modules."""
    attribute: str
    """What a module calls its object."""
    group: str
    """Entry points of others."""
    wanted: Wanted
    """What an object of others must be."""

    def names(self) -> tuple[str, ...]:
        """All names, built-in ones first, each sorted."""
        built_in = _built_in(self.package, self.attribute)
        return (*built_in, *sorted(entry.name for entry in entry_points(group=self.group)))

    def get(self, name: str) -> Any:
        """Looks an object up; an UnknownNameError names the nearest, a ConfigError says what does not fit."""
        built_in = _built_in(self.package, self.attribute)
        if name in built_in:
            return built_in[name]
        declared = {entry.name: entry.value for entry in entry_points(group=self.group)}
        if ":" in name or name in declared:
            return load_object(declared.get(name, name), self.kind, self.wanted)
        raise unknown_name(self.kind, name, self.names(), "One of your own is written module:NAME.")


@cache
def _built_in(package: str, attribute: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for info in pkgutil.iter_modules(importlib.import_module(package).__path__):
        module = importlib.import_module(f"{package}.{info.name}")
        offered = (*getattr(module, f"{attribute}S", ()), getattr(module, attribute, None))
        found |= {entry.name: entry for entry in offered if entry is not None}
    return dict(sorted(found.items()))


def load_object(path: str, kind: str, wanted: Wanted = CALLABLE) -> Any:
    """Imports ``module:NAME``; a ConfigError says which ``kind`` of object there is none of, or what is ``wanted``."""
    found = load_reference(path, kind)
    if not wanted.fits(found):
        raise ConfigError(f"The {kind} {path!r} must be {wanted.said}; got {found!r}.")
    return found


Class = TypeVar("Class", bound=type)


def current_names(values: Mapping[str, Any], renamed: Mapping[str, str], *, quietly: bool = False) -> dict[str, Any]:
    """Values by the names of today; old names come before new ones, which a copy filled in, and warn unless quiet."""
    current = {name: value for name, value in values.items() if name not in renamed}
    for name in values.keys() - current.keys():
        if not quietly:
            warnings.warn(f"{name} is called {renamed[name]} now", FutureWarning, stacklevel=_level_outside())
        current[renamed[name]] = values[name]
    return current


def _level_outside() -> int:
    """The stack level, counted from this function's caller, of whoever calls this package."""
    own = __name__.partition(".")[0] + "."
    callers = (str(each.frame.f_globals.get("__name__")) for each in inspect.stack(context=0)[1:])
    return next((level for level, name in enumerate(callers, start=1) if not name.startswith(own)), 1)


def understands_old_names(renamed: Mapping[str, str]) -> Callable[[Class], Class]:
    """Decorates a dataclass whose fields have new names (by old ones): made, copied and read by the old ones too."""

    def decorate(kind: Class) -> Class:
        # A decorator of classes: types have no word for a method that is exchanged.
        init = kind.__init__  # type: ignore[misc]

        @functools.wraps(init)
        def made(self: Any, *args: Any, **values: Any) -> None:
            init(self, *args, **current_names(values, renamed))

        def read(self: Any, name: str) -> Any:
            if name not in renamed:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return getattr(self, renamed[name])

        kind.__init__ = made  # type: ignore[misc]
        kind.__getattr__ = read  # type: ignore[attr-defined]
        return kind

    return decorate

"""What is imported when it is asked for: what packages export (PEP 562), and what a reference names."""

from __future__ import annotations

import ast
import importlib
import operator
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from skillc_gym.errors import ConfigError, SkillCError

__all__ = ["lazy_exports", "load_module", "load_reference"]


def lazy_exports(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package, by its ``__name__``, that imports its exports when asked for them.

    What is exported stands once, where type checkers read it::

        if TYPE_CHECKING:
            from skillc_gym.spaces import Unicode
        else:
            __getattr__, __dir__ = lazy_exports(__name__)
    """

    def get(name: str) -> Any:
        places = _deferred_imports(package)
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = places[name]
        found = getattr(importlib.import_module(module), attribute)
        # The next access finds it without asking.
        setattr(sys.modules[package], name, found)
        return found

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *_deferred_imports(package)})

    return get, names


def load_reference(reference: str, kind: str = "reference") -> Any:
    """Returns what ``module:NAME`` names; the module is imported now. ConfigError if there is no such ``kind``."""
    module, _, name = reference.partition(":")
    if not module or not name:
        raise ConfigError(f"The {kind} {reference!r} is written module:NAME, with the module's full name.")
    found = load_module(module, reference, kind)
    try:
        return operator.attrgetter(name)(found)
    except (AttributeError, ImportError) as error:  # a package may import what it exports now
        if isinstance(error, SkillCError):
            raise
        said = f"The {kind} {reference!r} is written module:NAME, and {module!r} has no {name!r} ({error})."
        raise ConfigError(said) from error


def load_module(module: str, reference: str, kind: str = "reference") -> ModuleType:
    """Imports the module of a reference; ConfigError, which names both, if that fails."""
    try:
        return importlib.import_module(module)
    except (ImportError, TypeError, ValueError) as error:  # the last two where the name is relative or empty
        if isinstance(error, SkillCError):
            raise
        raise ConfigError(
            f"The {kind} {reference!r} names the module {module!r}, which cannot be imported ({error}): write the "
            "module's full name, and install it, or put its folder into PYTHONPATH."
        ) from error


@cache
def _deferred_imports(package: str) -> Mapping[str, tuple[str, str]]:
    """Module and attribute by name, of the ``if TYPE_CHECKING`` block of a package."""
    tree = ast.parse(Path(str(sys.modules[package].__file__)).read_text(encoding="utf-8"))
    return {
        alias.asname or alias.name: (str(node.module), alias.name)
        for block in tree.body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

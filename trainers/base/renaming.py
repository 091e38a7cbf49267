"""Old names of options: still understood, and said once what they are called now."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

__all__ = ["current_names", "understands_old_names"]

Class = TypeVar("Class", bound=type)


def current_names(values: Mapping[str, Any], renamed: Mapping[str, str], *, quietly: bool = False) -> dict[str, Any]:
    """Values by the names of today.

    Args:
        values: Some may have old names; those come before new ones, which a copy has filled in.
        renamed: New name by old name.
        quietly: Nothing is said of the old names, as for files that were written with them.
    """
    current = {name: value for name, value in values.items() if name not in renamed}
    for name in values.keys() - current.keys():
        if not quietly:
            warnings.warn(f"{name} is called {renamed[name]} now", FutureWarning, stacklevel=3)
        current[renamed[name]] = values[name]
    return current


def understands_old_names(renamed: Mapping[str, str]) -> Callable[[Class], Class]:
    """Decorates a dataclass whose fields have new names: it is made, copied and read by the old ones too.

    Args:
        renamed: New name by old name.
    """

    def decorate(kind: Class) -> Class:
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

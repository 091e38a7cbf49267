"""From one info dict per member to Gymnasium's dict of arrays, without its dtype trap, and only if somebody looks."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Info = Mapping[str, Any]
_BOOLS = {bool, np.bool_}


class InfoColumns(dict[str, Any]):
    """A dict that is filled when it is first looked at: columns over many members cost more than a member's step.

    It behaves like the dict it becomes, and copies and pickles as a plain one. ``make`` is called once, with arguments
    that later steps must not change.
    """

    __slots__ = ("_args", "_make")

    def __init__(self, make: Callable[..., dict[str, Any]], *args: Any) -> None:
        self._make: Callable[..., dict[str, Any]] | None = make
        self._args = args
        # The encoder of json reads the memory to see whether there is anything.
        dict.__setitem__(self, "", None)

    def fill(self) -> None:
        """Makes the content, unless it is there."""
        make, args, self._make, self._args = self._make, self._args, None, ()
        if make is not None:
            dict.clear(self)
            dict.update(self, make(*args))

    def tell(self, member: int, info: Info) -> None:
        """Adds to what one member tells, before anybody looks: ``make`` was given one list of infos."""
        told = self._args[0]
        told[member] = info if told[member] is None else {**told[member], **info}

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


def _fills_first(name: str) -> Callable[..., Any]:
    method: Callable[..., Any] = getattr(dict, name)

    @functools.wraps(method)
    def filled(self: InfoColumns, *args: Any, **kwargs: Any) -> Any:
        for each in (self, *args):
            if isinstance(each, InfoColumns):
                each.fill()
        return method(self, *args, **kwargs)

    return filled


# With __iter__ and keys among them, dict(columns) and {**columns} ask these methods too instead of reading the memory.
for _name in (
    *("__contains__", "__delitem__", "__eq__", "__ge__", "__getitem__", "__gt__", "__ior__", "__iter__", "__le__"),
    *("__len__", "__lt__", "__ne__", "__or__", "__repr__", "__reversed__", "__ror__", "__setitem__", "clear"),
    *("copy", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"),
):
    setattr(InfoColumns, _name, _fills_first(_name))


def info_columns(infos: Sequence[Info | None]) -> dict[str, Any]:
    """Turns member infos, None for an empty one, into columns.

    Every key gets an array over the members and, as ``_key``, a mask of the members that have it. Nested dicts become
    nested columns, and arrays of one shape and dtype an array of these, zeros where a member has none. A column's dtype
    is chosen by all of its values (bool, int64, float64, else object), where Gymnasium's own helper takes the first
    member's and cuts 0.5 down to 0 if that one happened to be an int.
    """
    told = [info for info in infos if info is not None]
    if told and len(told) == len(infos) and all(len(info) == len(told[0]) for info in told):
        try:  # all have the same keys: no masks to work out
            found = {key: _column([info[key] for info in told]) for key in told[0]}
        except KeyError:
            pass
        else:
            everyone = np.ones(len(infos), dtype=np.bool_)
            return {name: part for key in found for name, part in ((key, found[key]), (f"_{key}", everyone.copy()))}
    columns: dict[str, Any] = {}
    for key in dict.fromkeys(key for info in infos for key in info or ()):
        there = [info is not None and key in info for info in infos]
        columns[key] = _column([(info or {}).get(key) for info in infos], there)
        columns[f"_{key}"] = np.array(there, dtype=np.bool_)
    return columns


def _column(values: list[Any], there: list[bool] | None = None) -> Any:
    kinds = set(map(type, values if there is None else itertools.compress(values, there)))
    if kinds == {dict}:
        return info_columns(values)
    if kinds == {np.ndarray} and (stacked := _stacked(values)) is not None:
        return stacked
    dtype = _dtype(kinds)
    if dtype is not object:
        try:
            return np.array(values if there is None else [0 if v is None else v for v in values], dtype=dtype)
        except OverflowError:
            pass
    return np.fromiter(values, dtype=object, count=len(values))


def _stacked(values: list[Any]) -> Any:
    """Arrays, or None for a member without one, as one array; None where their shapes or dtypes differ."""
    arrays = [value for value in values if value is not None]
    if len({(array.shape, array.dtype) for array in arrays}) != 1 or arrays[0].dtype == object:
        return None
    nothing = np.zeros_like(arrays[0])
    return np.stack([nothing if value is None else value for value in values])


def _dtype(kinds: set[type]) -> type:
    if kinds <= _BOOLS:
        return np.bool_
    if all(kind is int or issubclass(kind, np.integer) for kind in kinds):
        return np.int64
    if all(kind in (int, float) or issubclass(kind, (np.integer, np.floating)) for kind in kinds):
        return np.float64
    return object


def group_columns(
    infos: Sequence[dict[str, Any]], n_plus: NDArray[np.int64], seeds: NDArray[np.uint64], held: NDArray[np.bool_]
) -> dict[str, Any]:
    """The members' infos as columns, and what is known of their groups."""
    size = len(infos) // len(n_plus)
    own = {
        "group_id": np.repeat(np.arange(len(n_plus)), size),
        "condition": conditions_of(n_plus, size),
        "episode_seed": np.repeat(seeds, size),
        "held": held.copy(),
    }
    columns = info_columns(infos)
    if "_episode" in columns:  # a held member shows its last info again, and its episode ended once
        columns["_episode"] = columns["_episode"] & ~held
    return {**columns, **own, **{f"_{key}": np.ones(len(infos), dtype=np.bool_) for key in own}}


def conditions_of(n_plus: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Condition of every member: the first ``n_plus`` of each group of ``size`` see the skill."""
    return (np.arange(size) < n_plus[:, None]).astype(np.int64).ravel()

"""From one info dict per member to Gymnasium's dict of arrays, without its dtype trap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["info_columns"]

Info = Mapping[str, Any]
_BOOLS = {bool, np.bool_}


def info_columns(infos: Sequence[Info | None]) -> dict[str, Any]:
    """Turns member infos into columns.

    Every key gets an array over the members and, as ``_key``, a mask of the members that have it. Nested dicts become
    nested columns. A column's dtype is chosen by all of its values (bool, int64, float64, else object), where
    Gymnasium's own helper takes the first member's and cuts 0.5 down to 0 if that one happened to be an int.

    Args:
        infos: One info per member; None counts as empty.
    """
    first = infos[0] if infos else None
    if first is not None and all(info is not None and len(info) == len(first) for info in infos):
        try:
            return _uniform(infos, first)  # type: ignore[arg-type]
        except KeyError:
            pass
    return _ragged(infos)


def _uniform(infos: Sequence[Info], first: Info) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for key in first:
        columns[key] = _column([info[key] for info in infos])
        columns[f"_{key}"] = np.ones(len(infos), dtype=np.bool_)
    return columns


def _ragged(infos: Sequence[Info | None]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for key in dict.fromkeys(key for info in infos if info is not None for key in info):
        mask = np.array([info is not None and key in info for info in infos], dtype=np.bool_)
        columns[key] = _column([info[key] if there else None for info, there in zip(infos, mask, strict=True)], mask)  # type: ignore[index]
        columns[f"_{key}"] = mask
    return columns


def _column(values: list[Any], mask: NDArray[np.bool_] | None = None) -> Any:
    present = values if mask is None else [value for value, there in zip(values, mask, strict=True) if there]
    kinds = set(map(type, present))
    if kinds == {dict}:
        return info_columns(values)
    dtype = _dtype(kinds)
    if dtype is object:
        return np.fromiter(values, dtype=object, count=len(values))
    try:
        return np.array(values if mask is None else [0 if value is None else value for value in values], dtype=dtype)
    except OverflowError:
        return np.fromiter(values, dtype=object, count=len(values))


def _dtype(kinds: set[type]) -> type:
    if kinds <= _BOOLS:
        return np.bool_
    if all(kind is int or issubclass(kind, np.integer) for kind in kinds):
        return np.int64
    if all(kind in (int, float) or issubclass(kind, (np.integer, np.floating)) for kind in kinds):
        return np.float64
    return object

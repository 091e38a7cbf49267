"""Columns of figures, read and checked; means and normalisation within groups and over an update."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skill_library.errors import brief
from skillc_gym.errors import ConfigError

FloatArray: TypeAlias = NDArray[np.float64]


def mean(values: Sequence[float]) -> float:
    """Correctly rounded sum over count: the same for every order of the values."""
    return math.fsum(values) / len(values)


def centre(values: FloatArray) -> FloatArray:
    """``x - mean``; exactly 0 where all values are equal."""
    return np.zeros_like(values) if values.min() == values.max() else values - mean(values.tolist())


def normalise(values: FloatArray, eps: float) -> FloatArray:
    """``(x - mean) / (std + eps)``, population standard deviation; float64[n], exactly 0 where all values are equal."""
    if values.size == 0 or values.min() == values.max():
        return np.zeros_like(values)
    centred = values - mean(values.tolist())
    spread = math.sqrt(mean((centred * centred).tolist()))
    return centred / (spread + eps)


def group_indices(keys: Iterable[Hashable]) -> list[NDArray[np.intp]]:
    """Row indices of each distinct key, in order of first appearance."""
    rows: dict[Hashable, list[int]] = defaultdict(list)
    for row, key in enumerate(keys):
        rows[key].append(row)
    return [np.asarray(indices, dtype=np.intp) for indices in rows.values()]


def over_groups(
    values: FloatArray, keys: Iterable[Hashable], function: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Applies a function within each group of equal keys; float64[N] in the order of ``values``."""
    result = np.zeros_like(values)
    for rows in group_indices(keys):
        result[rows] = function(values[rows])
    return result


def group_keys(task: Sequence[Hashable], size: int) -> Sequence[Hashable]:
    """Returns ``task`` as plain values after checking (ConfigError) that it names one task per rollout."""
    keys = plain_keys("task", task)
    if len(keys) != size:
        raise ConfigError(f"task must name {size} tasks, one per return; got {len(keys)}")
    return keys


def plain_keys(name: str, values: Sequence[Hashable]) -> list[Hashable]:
    """Reads keys, which may be entries of an array or a tensor (equal only to themselves), as plain values."""
    try:
        keys = [_plain(value) for value in _plain(values)]
        hash(tuple(keys))
    except TypeError as error:
        raise ConfigError(
            f"{name} must be a sequence of keys, such as strings or numbers; got {brief(values)} ({error})"
        ) from error
    return keys


def _plain(value: Any) -> Any:
    to_list = getattr(value, "tolist", None)
    return value if to_list is None else to_list()


def finite_vector(name: str, values: ArrayLike, length: int | None = None) -> FloatArray:
    """Reads numbers in a sequence, an array or a tensor as float64[N] without gradient, or raises a ConfigError."""
    detach = getattr(values, "detach", None)
    try:
        vector = np.asarray(values if detach is None else detach().double().cpu(), dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ConfigError(f"{name} must be plain numbers, got {brief(values)} ({error})") from error
    if vector.ndim != 1 or (length is not None and vector.size != length):
        expected = "N" if length is None else str(length)
        raise ConfigError(f"{name} must have shape ({expected},), one entry per rollout; got {vector.shape}")
    if not np.isfinite(vector).all():
        raise ConfigError(f"{name} must be finite, got {vector[~np.isfinite(vector)][0]}")
    return vector


def flag_vector(name: str, values: ArrayLike, length: int) -> NDArray[np.bool_]:
    """Reads ``values``, 0 or 1 per rollout (else a ConfigError), as bool[length]."""
    flags = finite_vector(name, values, length)
    if not np.isin(flags, (0.0, 1.0)).all():
        raise ConfigError(f"{name} holds 0 or 1 per rollout, got {flags[~np.isin(flags, (0.0, 1.0))][0]}")
    return flags.astype(bool)


def whiten(advantages: Sequence[FloatArray], eps: float = 1e-8) -> list[FloatArray]:
    """Shifts and scales ragged advantages to mean 0 and variance 1 over all entries; exactly 0 where they are equal."""
    flat = normalise(np.concatenate([*advantages, np.zeros(0)]), eps)
    return np.split(flat, np.cumsum([own.size for own in advantages])[:-1]) if advantages else []

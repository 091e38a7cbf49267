"""How many games of each task type a set of generated games has."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from skillc_gym.envs.alfworld.tasks import SHORT_NAMES, resolve_task_types
from skillc_gym.errors import ConfigError, unknown_name

__all__ = ["REAL_MIX", "numbers"]

REAL_MIX: Mapping[str, float] = {"pick": 790, "look": 308, "clean": 650, "heat": 459, "cool": 533, "pick2": 813}
"""Task type -> number of games in ALFWorld's training split."""


def numbers(names: Sequence[str], total: int, mix: Mapping[str, float] | str | None) -> dict[str, int]:
    """Divides games among task types in proportion to weights, by largest remainders.

    Args:
        names: Short names of the task types.
        total: Number of games.
        mix: Weights by full or short name, "real" for ALFWorld's, None for equal ones. Types without one get none.

    Raises:
        UnknownNameError: If a task type or a named mix does not exist.
        ConfigError: If a weight is negative or no number, or all are zero.
    """
    weights = _weights(names, mix)
    shares = {name: total * weight / sum(weights.values()) for name, weight in weights.items()}
    counts = {name: int(share) for name, share in shares.items()}
    by_remainder = sorted(names, key=lambda name: counts[name] - shares[name])
    for name in by_remainder[: total - sum(counts.values())]:
        counts[name] += 1
    return counts


def _weights(names: Sequence[str], mix: Mapping[str, float] | str | None) -> dict[str, float]:
    if isinstance(mix, str) and mix != "real":
        raise unknown_name("mix of task types", mix, ["real"], "A table of weights does as well.")
    given = dict.fromkeys(names, 1.0) if mix is None else REAL_MIX if isinstance(mix, str) else mix
    if not isinstance(given, Mapping):
        raise ConfigError(f"The generator's mix is 'real' or weights such as {{'pick': 2, 'heat': 1}}; got {mix!r}.")
    known = {SHORT_NAMES[resolve_task_types(name)[0]]: weight for name, weight in given.items()}
    weights = {name: known.get(name, 0.0) for name in names}
    for name, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
            raise ConfigError(f"The weight of {name!r} in the generator's mix is a number from 0 on; got {weight!r}.")
    if sum(weights.values()) <= 0:
        raise ConfigError(f"The generator's mix gives no weight to any of {', '.join(names)}.")
    if math.isinf(sum(weights.values())):
        raise ConfigError("The weights of the generator's mix are too large to be added.")
    return weights

"""What a skill is worth: as one update shows it, and its moving average (method, section 2)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Literal

from skillc_gym.errors import CheckpointError, ConfigError
from trainers.advantages.base import RolloutBatch
from trainers.advantages.grouping import mean

ContrastKey = Literal["type", "task"]


def paired_contrasts(batch: RolloutBatch, key: ContrastKey) -> dict[str, float]:
    """``c(x) = mean R(z=1) - mean R(z=0)`` per task that has both branches, averaged over a type's tasks or alone."""
    by_key: dict[str, list[float]] = defaultdict(list)
    for task, contrast in _contrasts(batch, batch.task).items():
        by_key[task if key == "task" else batch.type_of[task]].append(contrast)
    return {name: mean(values) for name, values in sorted(by_key.items())}


def unpaired_contrasts(batch: RolloutBatch) -> dict[str, float]:
    """The same difference per task type between *different* tasks: all that is left where groups are not paired."""
    return dict(sorted(_contrasts(batch, batch.task_type).items()))


def _contrasts(batch: RolloutBatch, keys: tuple[str, ...]) -> dict[str, float]:
    returns: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for name, condition, value in zip(keys, batch.condition.tolist(), batch.outcome.tolist(), strict=True):
        returns[name][int(condition)].append(value)
    return {name: mean(with_) - mean(without) for name, (without, with_) in returns.items() if with_ and without}


class Contrast:
    """Bias-corrected exponential moving averages of the contrast, one per key (task type or task id).

    Every :meth:`update` moves each given key once: ``m <- decay * m + (1 - decay) * c``. The value is
    ``clip(m / (1 - decay^n), -clip, clip)`` after n updates of that key, 0 for a key never seen.

    Args:
        decay: Weight of the past, in [0, 1).
        clip: Bound of the value.
        bias_correction: Divide by ``1 - decay^n``; without it the average starts near 0.

    Examples:
        >>> contrast = Contrast()
        >>> contrast.update({"heat": 0.5})
        >>> round(contrast.value("heat"), 12), contrast.value("cool")
        (0.5, 0.0)
    """

    def __init__(self, decay: float = 0.9, clip: float = 2.0, bias_correction: bool = True) -> None:
        if not 0.0 <= decay < 1.0 or not clip >= 0.0:
            raise ConfigError(f"Contrast needs 0 <= decay < 1 and clip >= 0, got decay={decay}, clip={clip}")
        self.decay = float(decay)
        self.clip = float(clip)
        self.bias_correction = bool(bias_correction)
        self._mean: dict[str, float] = {}
        self._count: dict[str, int] = {}

    def update(self, contrasts: Mapping[str, float]) -> None:
        """Feeds one update's contrasts, averaged per key; if one is not finite, a ConfigError and no change."""
        for key, value in contrasts.items():
            if not math.isfinite(value):
                raise ConfigError(f"The contrast of {key!r} must be finite, got {value}")
        for key, value in contrasts.items():
            self._mean[key] = self.decay * self._mean.get(key, 0.0) + (1.0 - self.decay) * float(value)
            self._count[key] = self._count.get(key, 0) + 1

    def value(self, key: str) -> float:
        """The smoothed, clipped contrast of a key; 0 if it was never seen."""
        if key not in self._mean:
            return 0.0
        correction = 1.0 - self.decay ** self._count[key] if self.bias_correction else 1.0
        return min(max(self._mean[key] / correction, -self.clip), self.clip)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys seen so far, sorted."""
        return tuple(sorted(self._mean))

    def state_dict(self) -> dict[str, Any]:
        """The averages as JSON-able values."""
        return {**self._config(), "mean": dict(self._mean), "count": dict(self._count)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores the averages bit for bit; a CheckpointError if they are incomplete, or saved with other options."""
        for key, mine in self._config().items():
            if state.get(key) != mine:
                raise CheckpointError(f"The contrast was saved with {key}={state.get(key)!r}, this one has {mine!r}")
        if "mean" not in state or "count" not in state or set(state["mean"]) != set(state["count"]):
            raise CheckpointError("The contrast's state lacks its averages or their counts; it is not complete")
        self._mean = {key: float(value) for key, value in state["mean"].items()}
        self._count = {key: int(value) for key, value in state["count"].items()}

    def _config(self) -> dict[str, Any]:
        return {"decay": self.decay, "clip": self.clip, "bias_correction": self.bias_correction}

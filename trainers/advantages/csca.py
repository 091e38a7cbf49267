"""What a skill is worth to a task type, and contrastive skill credit assignment by it (method, sections 2 and 3)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from skillc_gym.errors import CheckpointError, ConfigError
from skillc_gym.values import require_switch
from trainers.advantages.base import Advantages, RolloutBatch, Scheme, per_rollout
from trainers.advantages.grouping import (
    FloatArray,
    finite_vector,
    flag_vector,
    group_indices,
    group_keys,
    mean,
    normalise,
    over_groups,
)
from trainers.base import NotNegative, Positive

ContrastKey = Literal["type", "task"]
Scope = Literal["batch", "group"]
CorrectionMask = Literal["all", "success"]
Branch = Literal["condition", "mixed"]


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
        self.bias_correction = require_switch("bias_correction", bias_correction)
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
        mean = {key: float(value) for key, value in state["mean"].items()}
        if not all(map(math.isfinite, mean.values())):
            raise CheckpointError(f"The contrast's state is damaged: its averages are finite, got {mean}")
        count = {key: int(value) for key, value in state["count"].items()}
        if any(value < 1 for value in count.values()):
            raise CheckpointError(f"The contrast's state is damaged: its counts are at least 1, got {count}")
        self._mean, self._count = mean, count

    def _config(self) -> dict[str, Any]:
        return {"decay": self.decay, "clip": self.clip, "bias_correction": self.bias_correction}


@dataclass(frozen=True)
class Csca(Scheme):
    """``A_i = Phi_i + omega * cond_i``: the two streams as a scheme; C(x) comes from the batch's signals.

    Phi is the return normalised over the scope. cond is the return normalised within its branch, plus the signed
    correction: -C(x) with the skill, +C(x) or 0 without it.
    """

    name: ClassVar[str] = "csca"
    omega: NotNegative = 0.4
    """Weight of the conditional stream."""
    eps: Positive = 1e-6
    """Added to every standard deviation."""
    scope: Scope = "batch"
    """Over what stream 1 is normalised: the whole batch, or each task's group."""
    correction_mask: CorrectionMask = "all"
    """Which skill-free rollouts receive +C: all, or only the successful ones."""
    branch: Branch = "condition"
    """Within what stream 2 is normalised: (task, condition), or the task alone ("mixed")."""

    def __call__(self, batch: RolloutBatch) -> Advantages:
        """The advantage with its parts ``outcome``, ``conditional`` and ``correction``, each as weighted in the sum."""
        return self.of_columns(batch.returns, batch.task, batch.condition, batch.signals.correction, batch.success)

    def of_columns(
        self,
        returns: ArrayLike,
        task: Sequence[Hashable],
        condition: ArrayLike,
        correction: ArrayLike,
        success: ArrayLike | None = None,
    ) -> Advantages:
        """The same from plain columns; arguments, and errors, as of :func:`csca`."""
        values = finite_vector("returns", returns)
        task = group_keys(task, values.size)
        with_skill = flag_vector("condition", condition, values.size)
        size = finite_vector("correction", correction, values.size)
        if (size < 0).any():
            raise ConfigError(f"correction is C(x) >= 0 per rollout, got {size.min()}; csca sets the signs itself")
        branches: list[Hashable] = list(zip(task, with_skill.tolist(), strict=True))
        relative = partial(normalise, eps=self.eps)
        outcome = relative(values) if self.scope == "batch" else over_groups(values, task, relative)
        conditional = over_groups(values, branches if self.branch == "condition" else task, relative)
        signed = _signed(size, with_skill, self.correction_mask, success)
        parts = {"outcome": outcome, "conditional": self.omega * conditional, "correction": self.omega * signed}
        return Advantages(outcome + self.omega * (conditional + signed), parts=parts)


def csca(
    returns: ArrayLike,
    task: Sequence[Hashable],
    condition: ArrayLike,
    correction: ArrayLike,
    *,
    success: ArrayLike | None = None,
    **options: Any,
) -> FloatArray:
    """The advantage of :class:`Csca` from plain columns.

    Args:
        returns: Episode returns on the success scale, float[N].
        task: Which task each rollout belongs to, N keys.
        condition: 1 with the skill, 0 without, [N].
        correction: C(x) >= 0 of each rollout's task, float[N]; 0 for retired types.
        success: Which rollouts succeeded, [N]; needed for ``correction_mask="success"``.
        **options: Fields of :class:`Csca`: ``omega``, ``eps``, ``scope``, ``correction_mask``, ``branch``.

    Returns:
        float64[N], finite, independent of the order of the rollouts.

    Raises:
        ConfigError: Arrays of different lengths or values out of range.
        UnknownNameError: An unknown scope, mask or branch.
    """
    return per_rollout(Csca(**options).of_columns(returns, task, condition, correction, success).values)


def _signed(size: FloatArray, with_skill: np.ndarray, mask: CorrectionMask, success: ArrayLike | None) -> FloatArray:
    if mask == "all":
        return np.where(with_skill, -size, size)
    if success is None:
        raise ConfigError("correction_mask='success' needs success, one flag per rollout")
    won = flag_vector("success", success, size.size)
    return np.where(with_skill, -size, np.where(won, size, 0.0))


def relabelling_weights(
    success: ArrayLike,
    task: Sequence[Hashable],
    condition: ArrayLike,
    contrast: ArrayLike,
    *,
    discounted: bool = True,
) -> FloatArray:
    """``w(k) (1 - b0)`` for successful skill-injected rollouts, 0 for all others.

    Such an episode is trained on a second time, behind the prompt without the skill. ``b0`` is the skill-free success
    of its task in this update (0 where no rollout was skill-free) and ``w(k)`` the smoothed contrast of its task type,
    cut at 0, so the term fades as the gap closes; without ``discounted`` the factor ``1 - b0`` is left out.

    One entry per rollout in every argument, flags 0 or 1 (else a ConfigError); float64[N], never negative.
    """
    gap = finite_vector("contrast", contrast)
    won = flag_vector("success", success, gap.size)
    with_skill = flag_vector("condition", condition, gap.size)
    weight = np.zeros_like(gap)
    for rows in group_indices(group_keys(task, gap.size)):
        plain = won[rows][~with_skill[rows]].tolist()
        chosen = rows[with_skill[rows] & won[rows]]
        weight[chosen] = np.maximum(gap[chosen], 0.0) * (1.0 - (mean(plain) if plain and discounted else 0.0))
    return weight


SCHEME = Csca

"""The options of the internalisation curriculum and their ranges."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from skillc_gym.errors import ConfigError, unknown_name

__all__ = ["ALFWORLD_CAPACITY", "RETIREMENT_REASONS", "CurriculumOptions", "scale_capacity"]

ALFWORLD_CAPACITY = (6, 3, 0)
RETIREMENT_REASONS = ("gap", "budget")


@dataclass(frozen=True)
class CurriculumOptions:
    """See :class:`skillc_gym.curricula.skills.InternalizationCurriculum` for the meaning of each field.

    Raises:
        ConfigError: A value outside its range.
        UnknownNameError: An unknown retirement reason.
    """

    temperature: float
    rho_min: float
    alpha_val: float
    lam: float
    tau_retire: float
    capacity: tuple[int, ...]
    total_steps: int
    beta_freq: float
    gate: float | None
    rho: float | None
    initial_gap: float
    retire_by: tuple[str, ...]
    min_validations: int
    margin: float

    def __post_init__(self) -> None:
        for reason in self.retire_by:
            if reason not in RETIREMENT_REASONS:
                raise unknown_name("retirement reason", reason, RETIREMENT_REASONS)
        holds = {
            "temperature": (self.temperature > 0, "above 0"),
            "rho_min": (0 <= self.rho_min < 0.5, "in [0, 0.5)"),
            "alpha_val": (0 <= self.alpha_val < 1, "in [0, 1)"),
            "lam": (self.lam >= 0, "at least 0"),
            "capacity": (_never_rises(self.capacity), "one or more counts that never rise"),
            "total_steps": (self.total_steps > 0, "above 0"),
            "beta_freq": (self.beta_freq >= 0, "at least 0"),
            "gate": (self.gate is None or 0 <= self.gate <= 1, "None or in [0, 1]"),
            "rho": (self.rho is None or 0 <= self.rho <= 1, "None or in [0, 1]"),
            "initial_gap": (-1 <= self.initial_gap <= 1, "in [-1, 1]"),
            "min_validations": (self.min_validations >= 0, "at least 0"),
            "margin": (self.margin >= 0, "at least 0"),
        }
        for name, (good, expected) in holds.items():
            if not good:
                raise ConfigError(f"The curriculum's {name} must be {expected}, got {getattr(self, name)!r}")

    def to_json(self) -> dict[str, Any]:
        """The options as JSON-able values."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}


def scale_capacity(capacity: Sequence[int], types: int) -> tuple[int, ...]:
    """Fits a capacity profile to a number of task types.

    ALFWorld's (6, 3, 0), and a profile asking for more types than there are, is shrunk or stretched in proportion
    with half-up rounding; any other is returned as it is.
    """
    reference = max(capacity)
    if tuple(capacity) != ALFWORLD_CAPACITY and reference <= types:
        return tuple(capacity)
    return tuple((2 * k * types + reference) // (2 * reference) for k in capacity)


def _never_rises(capacity: Sequence[int]) -> bool:
    return len(capacity) > 0 and capacity[-1] >= 0 and all(a >= b for a, b in itertools.pairwise(capacity))

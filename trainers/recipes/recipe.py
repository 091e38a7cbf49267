"""A preset: every option of a method, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from skillc_gym.curricula.options import ALFWORLD_CAPACITY, RETIREMENT_REASONS
from skillc_gym.curricula.skills import InternalizationCurriculum
from skillc_gym.errors import ConfigError, unknown_name
from trainers.advantages import Contrast, get_scheme
from trainers.advantages.csca import Branch, CorrectionMask, Scope
from trainers.advantages.observed import ContrastKey

if TYPE_CHECKING:
    from trainers.recipes.state import MethodState

__all__ = ["Allocation", "Preset"]

Allocation = Literal["paired", "drawn", "whole", "always", "never"]

_CURRICULUM = (
    "temperature",
    "rho_min",
    "alpha_val",
    "lam",
    "tau_retire",
    "capacity",
    "beta_freq",
    "gate",
    "rho",
    "initial_gap",
    "retire_by",
    "min_validations",
    "margin",
)
_SCHEME_OPTIONS = {"csca": ("omega", "eps", "scope", "correction_mask", "branch"), "grpo": ("eps",)}
_NUMBERS = (
    *("omega", "eps", "contrast_decay", "contrast_clip", "temperature", "rho_min", "alpha_val", "lam", "tau_retire"),
    *("beta_freq", "gate", "rho", "initial_gap", "min_validations", "margin"),
)
_LITERALS = {
    "allocation": Allocation,
    "scope": Scope,
    "correction_mask": CorrectionMask,
    "branch": Branch,
    "key": ContrastKey,
}


@dataclass(frozen=True)
class Preset:
    """A method as a set of options; the defaults are SkillC to the letter of its equations.

    Attributes:
        name: Name of the preset.
        summary: One sentence on what it is.
        allocation: Who sees the skill. "paired": ``n_plus`` of each group by the curriculum; "drawn": whole groups,
            with the curriculum's share of the groups of a type; "whole": every group of an active type; "always":
            every group; "never": none.
        advantage: Credit-assignment scheme.
        omega: Weight of the conditional stream.
        eps: Added to every standard deviation.
        scope: Over what stream 1 is normalised.
        correction_mask: Which skill-free rollouts receive +C.
        branch: Within what stream 2 is normalised.
        key: What shares one moving average of the contrast.
        contrast_decay: Weight of the past in that average.
        contrast_clip: Bound of the smoothed contrast.
        bias_correction: Whether the average is corrected for its start at 0.
        temperature: Temperature of the gate.
        rho_min: Smallest share of each branch.
        alpha_val: Weight of the past in the validation gap.
        lam: Weight of the correction.
        tau_retire: Gap below which a type retires.
        capacity: K(t), one number per stage of training.
        beta_freq: How fast the correction of a repeated task fades.
        gate: A fixed gate, or None.
        rho: A fixed share of skill-injected rollouts, or None.
        initial_gap: Where the smoothed gaps start.
        retire_by: Which reasons retire a type.
        min_validations: Validations before a type's own gap may retire it.
        margin: Standard errors by which the gap must lie below the threshold.
        overrides: What was changed from the preset of this name, recorded by :func:`trainers.recipes.get_preset`.
    """

    name: str
    summary: str
    allocation: Allocation = "paired"
    advantage: str = "csca"
    omega: float = 0.4
    eps: float = 1e-6
    scope: Scope = "batch"
    correction_mask: CorrectionMask = "all"
    branch: Branch = "condition"
    key: ContrastKey = "type"
    contrast_decay: float = 0.9
    contrast_clip: float = 2.0
    bias_correction: bool = True
    temperature: float = 0.1
    rho_min: float = 0.1
    alpha_val: float = 0.7
    lam: float = 1.0
    tau_retire: float = 0.0
    capacity: tuple[int, ...] = ALFWORLD_CAPACITY
    beta_freq: float = 0.01
    gate: float | None = None
    rho: float | None = None
    initial_gap: float = 0.0
    retire_by: tuple[str, ...] = RETIREMENT_REASONS
    min_validations: int = 0
    margin: float = 0.0
    overrides: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        get_scheme(self.advantage)
        for option, kind in _LITERALS.items():
            if getattr(self, option) not in get_args(kind):
                raise unknown_name(option, getattr(self, option), get_args(kind))
        for option in _NUMBERS:
            value = getattr(self, option)
            if isinstance(value, bool) or not isinstance(value, int | float | None):
                raise ConfigError(f"The preset's option {option} is a number, got {value!r}")
        if self.omega < 0 or self.eps <= 0:
            raise ConfigError(f"omega must be >= 0 and eps > 0, got omega={self.omega}, eps={self.eps}")
        if self.allocation == "drawn" and self.key == "task":
            raise ConfigError("Unpaired groups have no contrast per task; use key='type' with allocation='drawn'")
        object.__setattr__(self, "capacity", tuple(self.capacity))
        object.__setattr__(self, "retire_by", tuple(self.retire_by))
        self.new_contrast()
        self.new_curriculum(("any",), total_steps=1)

    @property
    def uses_skills(self) -> bool:
        """Whether any training rollout sees a skill."""
        return self.allocation != "never"

    @property
    def options(self) -> dict[str, Any]:
        """All options as JSON-able values, without the name, the summary and the record of overrides."""
        values = {k: v for k, v in asdict(self).items() if k not in ("name", "summary", "overrides")}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    @property
    def scheme_options(self) -> dict[str, Any]:
        """The options that this preset's credit-assignment scheme takes."""
        return {name: getattr(self, name) for name in _SCHEME_OPTIONS[self.advantage]}

    def overridden(self, **overrides: Any) -> Preset:
        """A copy with some options changed, and the change recorded.

        Raises:
            UnknownNameError: No such option, or no such value of an option.
            ConfigError: A value out of range.
        """
        known = [f.name for f in fields(self) if f.name not in ("name", "summary", "overrides")]
        for option in overrides:
            if option not in known:
                raise unknown_name("option of a preset", option, known)
        return replace(self, **overrides, overrides={**self.overrides, **overrides})

    def new_curriculum(self, task_types: Sequence[str], total_steps: int) -> InternalizationCurriculum:
        """A fresh curriculum with this preset's options."""
        return InternalizationCurriculum(
            task_types, total_steps=total_steps, **{name: getattr(self, name) for name in _CURRICULUM}
        )

    def new_contrast(self) -> Contrast:
        """A fresh moving average with this preset's options."""
        return Contrast(self.contrast_decay, self.contrast_clip, self.bias_correction)

    def start(self, task_types: Sequence[str], total_steps: int) -> MethodState:
        """The method's state at the beginning of a run."""
        from trainers.recipes.state import MethodState

        return MethodState(self, task_types, total_steps)

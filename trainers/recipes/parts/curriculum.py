"""The options of curriculum and contrast, as parts of a recipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import ClassVar

from skillc_gym.curricula.skills import (
    ALFWORLD_CAPACITY,
    GateOptions,
    InternalizationCurriculum,
    RetirementOptions,
)
from trainers.advantages import Contrast, RolloutBatch
from trainers.advantages.csca import ContrastKey, paired_contrasts, unpaired_contrasts
from trainers.base import NotNegative, Options, Share


@dataclass(frozen=True, kw_only=True)
class Gating(GateOptions, Options):
    """From the smoothed gap to the share of skill-injected rollouts and the weight of the correction."""

    correction_weight: float = 1.0
    """Weight of the correction."""
    beta_freq: float = 0.01
    """How fast the correction of a repeated task fades."""


@dataclass(frozen=True)
class Pruning(RetirementOptions, Options):
    """How gaps are smoothed, and when a type loses its skill for good."""


@dataclass(frozen=True)
class NoCurriculum:
    """Validations measure the gap of every type, and nothing follows from it."""

    steers: ClassVar[bool] = False
    """Whether gate, share of skill-injected rollouts and retirement follow from the gaps."""
    own_schedule: ClassVar[bool] = True
    """Whether capacity and reasons to retire are the method's own in every environment; otherwise an environment may
    imply others (:attr:`skillc_gym.envs.registry.EnvSpec.curriculum`: SkillC never prunes WebShop's one skill)."""

    def start(self, task_types: Sequence[str], total_steps: int) -> InternalizationCurriculum:
        """What measures."""
        # The profile moves nothing; records show it, and one type's cannot shrink.
        profile = ALFWORLD_CAPACITY if len(task_types) > 1 else (1,)
        return InternalizationCurriculum(task_types, total_steps=total_steps, retire_by=(), capacity=profile)


@dataclass(frozen=True)
class Internalization(NoCurriculum):
    """The curriculum of :class:`skillc_gym.curricula.skills.InternalizationCurriculum`."""

    steers: ClassVar[bool] = True
    own_schedule: ClassVar[bool] = False

    gating: Gating = field(default_factory=Gating)
    pruning: Pruning = field(default_factory=Pruning)

    def __post_init__(self) -> None:
        self.start(("any",), total_steps=1)

    def start(self, task_types: Sequence[str], total_steps: int) -> InternalizationCurriculum:
        """A fresh curriculum with these options; a ConfigError if one lies outside its range."""
        options = {**asdict(self.gating), **asdict(self.pruning)}
        options["lam"] = options.pop("correction_weight")
        return InternalizationCurriculum(task_types, total_steps=total_steps, **options)


@dataclass(frozen=True)
class SkillBudget(Internalization):
    """The same with a budget of skills that shrinks in every environment, as Skill0's does.

    Its stages are laid over what ends the training first, updates or generated tokens, and end between validations too.
    """

    own_schedule: ClassVar[bool] = True


@dataclass(frozen=True)
class ContrastAverage(Options):
    """What an update shows of the skills' worth, and how it is averaged over updates."""

    key: ContrastKey = "type"
    """What shares one moving average: a task type, or a task."""
    contrast_decay: Share = 0.9
    """Weight of the past in that average."""
    contrast_clip: NotNegative = 2.0
    """Bound of the smoothed contrast."""
    bias_correction: bool = True
    """Whether the average is corrected for its start at 0."""

    def start(self) -> Contrast:
        """A fresh moving average."""
        return Contrast(self.contrast_decay, self.contrast_clip, self.bias_correction)

    def observed(self, batch: RolloutBatch, *, pairs: bool) -> dict[str, float]:
        """One update's contrasts by key: within tasks where groups are paired, between tasks of a type otherwise."""
        return paired_contrasts(batch, self.key) if pairs else unpaired_contrasts(batch)

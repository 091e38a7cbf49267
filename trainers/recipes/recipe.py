"""A recipe: a method, composed of parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from skillc_gym.errors import ConfigError, unknown_name
from trainers.advantages import Csca, Scheme
from trainers.base import Registry, flat_options, option_names, override
from trainers.losses import ClippedPolicyGradient, Loss
from trainers.memory import FixedLibrary, Memory
from trainers.recipes.parts.allocation import Allocation, Paired
from trainers.recipes.parts.allocations import ALLOCATIONS
from trainers.recipes.parts.contrast import ContrastAverage
from trainers.recipes.parts.curriculum import Internalization
from trainers.recipes.parts.rows import RowMaker

__all__ = ["SCHEMES", "Recipe"]

SCHEMES = Registry("advantage scheme", "trainers.advantages", "SCHEME", "skillc_gym.advantages")
"""By the names that ``preset.advantage=`` takes."""


@dataclass(frozen=True)
class Recipe:
    """A method; the default parts are SkillC's, to the letter of its equations.

    Attributes:
        name: Name of the recipe.
        summary: One sentence on what it is.
        allocation: Who sees the skill.
        curriculum: Gate and retirement, driven by validations.
        contrast: The moving average of what a skill is worth.
        advantage: Credit assignment.
        losses: What an update minimises: the sum of these, each times its coefficient.
        rows: What is trained on beside the rollouts.
        memory: Which skill text an episode sees.
        overrides: What was changed from the recipe of this name, recorded by :func:`trainers.recipes.get_recipe`.
    """

    name: str
    summary: str
    allocation: Allocation = field(default_factory=Paired)
    curriculum: Internalization = field(default_factory=Internalization)
    contrast: ContrastAverage = field(default_factory=ContrastAverage)
    advantage: Scheme = field(default_factory=Csca)
    losses: tuple[Loss, ...] = (ClippedPolicyGradient(),)
    rows: tuple[RowMaker, ...] = ()
    memory: Memory = field(default_factory=FixedLibrary)
    overrides: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.allocation.pairs and self.contrast.key == "task":
            raise ConfigError(
                f"Unpaired groups have no contrast per task; use key='type' with allocation={self.allocation.name!r}"
            )
        names = [loss.name for loss in self.losses] + [maker.name for maker in self.rows]
        if not self.losses or len(set(names)) < len(names):
            raise ConfigError(f"A recipe has at least one loss, and its losses and row makers differ in name: {names}")

        idle = [maker.name for maker in self.rows if maker.needs_comparison and not self.allocation.compares]
        if idle:
            raise ConfigError(
                f"{self.name}: {', '.join(idle)} would never make a row, because allocation={self.allocation.name!r} "
                "plays no task in both conditions; take another one, as in half_skill_grpo+relabelling, "
                "grpo+gate+relabelling or skillc+relabelling"
            )

    @property
    def uses_skills(self) -> bool:
        """Whether any training rollout sees a skill."""
        return self.allocation.uses_skills

    @property
    def options(self) -> dict[str, Any]:
        """All options as JSON-able values, by the names that overrides use; the chosen parts by their own names."""
        return {"allocation": self.allocation.name, "advantage": self.advantage.name, **flat_options(self._parts)}

    def overridden(self, **overrides: Any) -> Recipe:
        """A copy with some options changed, and the change recorded.

        Args:
            **overrides: Options of the parts by flat name (``omega``), or ``part.option`` where several parts have it;
                ``allocation`` and ``advantage`` choose another part by name.

        Raises:
            UnknownNameError: No such option, or no such value of an option.
            ConfigError: A value out of range.
        """
        return replace(self._changed(overrides), overrides={**self.overrides, **overrides})

    def variant(self, name: str, summary: str, **changes: Any) -> Recipe:
        """Another recipe: this one with some options changed, under a name of its own."""
        return replace(self._changed(changes), name=name, summary=summary, overrides={})

    @property
    def _parts(self) -> _Parts:
        return _Parts(**{spec.name: getattr(self, spec.name) for spec in fields(_Parts)})

    def _changed(self, changes: Mapping[str, Any]) -> Recipe:
        options = dict(changes)
        recipe = self
        if "allocation" in options:
            recipe = replace(recipe, allocation=_allocation(options.pop("allocation")))
        if "advantage" in options:
            recipe = replace(recipe, advantage=_scheme(options.pop("advantage"), recipe.advantage))
        parts = override(recipe._parts, options) if options else recipe._parts
        return replace(recipe, **{spec.name: getattr(parts, spec.name) for spec in fields(_Parts)})


@dataclass(frozen=True)
class _Parts:
    """The parts of a recipe that have options."""

    allocation: Allocation
    curriculum: Internalization
    contrast: ContrastAverage
    advantage: Scheme
    losses: tuple[Loss, ...]
    rows: tuple[RowMaker, ...]
    memory: Memory


def _allocation(name: str) -> Allocation:
    if name not in ALLOCATIONS:
        raise unknown_name("allocation", name, ALLOCATIONS)
    return ALLOCATIONS[name]()


def _scheme(name: str, present: Scheme) -> Scheme:
    """A scheme of another kind, with the options that both have."""
    kind = SCHEMES.get(name)
    shared = {spec.name for spec in fields(kind)} & set(option_names(present))
    chosen: Scheme = kind(**{option: getattr(present, option) for option in shared})
    return chosen

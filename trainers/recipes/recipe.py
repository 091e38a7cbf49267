"""A recipe: a method, composed of parts; and what can be added to one by name, as in ``method=skillc+relabelling``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from skillc_gym.errors import ConfigError, unknown_name
from trainers.advantages.base import Scheme
from trainers.advantages.csca import Csca
from trainers.advantages.group_baselines import Grpo, RaisedBaseline
from trainers.base import Registry, Wanted, current_names, flat_options, option_names, override
from trainers.losses.base import Loss
from trainers.losses.distillation import ForwardDistillation, Relabelling
from trainers.losses.policy_gradient import ClippedPolicyGradient, EntropyBonus
from trainers.memory import DistractedLibrary, FixedLibrary, Memory
from trainers.recipes.parts.allocation import Allocation, Annealed, ByNeed, BySignal, ByValue, Never
from trainers.recipes.parts.curriculum import ContrastAverage, NoCurriculum
from trainers.recipes.parts.rows import RelabelledRows, RowMaker


def _part_on(base: type) -> Wanted:
    def fits(found: Any) -> bool:
        return isinstance(found, type) and issubclass(found, base) and is_dataclass(found) and hasattr(found, "name")

    return Wanted(f"a dataclass on {base.__module__}.{base.__name__} with a `name` of its own", fits)


SCHEMES = Registry("advantage scheme", "trainers.advantages", "SCHEME", "skillc_gym.advantages", _part_on(Scheme))
"""By the names that ``method.advantage=`` takes."""
ALLOCATIONS = Registry(
    "allocation", "trainers.recipes.parts", "ALLOCATION", "skillc_gym.allocations", _part_on(Allocation)
)
"""By the names that ``method.allocation=`` takes."""

_RENAMED: Mapping[str, str] = {"lam": "correction_weight", "beta": "kl_coef"}
"""New name by old name of options; both are understood where a recipe has no option of the old name."""


@dataclass(frozen=True)
class Recipe:
    """A method; the default parts are plain GRPO without skills, so that what a method adds stands in its recipe.

    Raises:
        ConfigError: Parts do not go together.
    """

    name: str
    """Name of the recipe."""
    summary: str
    """One sentence on what it is."""
    allocation: Allocation = field(default_factory=Never)
    """Who sees the skill."""
    curriculum: NoCurriculum = field(default_factory=NoCurriculum)
    """Gate and retirement, driven by validations; by default nothing follows from them."""
    contrast: ContrastAverage | None = None
    """The moving average of what a skill is worth; None is one with its defaults where the allocation plays both
    conditions, and none elsewhere."""
    advantage: Scheme = field(default_factory=Grpo)
    """Credit assignment."""
    losses: tuple[Loss, ...] = (ClippedPolicyGradient(),)
    """What an update minimises: the sum of these, each times its coefficient."""
    rows: tuple[RowMaker, ...] = ()
    """What is trained on beside the rollouts."""
    memory: Memory = field(default_factory=FixedLibrary)
    """Which skill text an episode sees."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """What was changed from the recipe of this name, recorded by :func:`trainers.recipes.get_recipe`."""

    def __post_init__(self) -> None:
        if self.contrast is None and self.allocation.compares:
            object.__setattr__(self, "contrast", ContrastAverage())
        if wrong := next(self._misfits(), ""):
            raise ConfigError(f"{self.name}: {wrong}")

    def _misfits(self) -> Iterator[str]:
        """What does not go together, each with a remedy; only the first is told."""
        allocation = f"allocation={self.allocation.name!r}"
        names = [loss.name for loss in self.losses] + [maker.name for maker in self.rows]
        if not self.losses or len(set(names)) < len(names):
            yield f"a recipe has at least one loss, and its losses and row makers differ in name: {names}"
        if (self.allocation.follows_curriculum or self.allocation.needs_curriculum) and not self.curriculum.steers:
            yield f"{allocation} asks a curriculum who sees the skill, and there is none; take allocation='half'"
        if self.curriculum.steers and not (self.allocation.uses_skills and self.allocation.plays_skill_free):
            yield f"{allocation} asks no curriculum, and this one's schedule would move nothing; take another method"
        if not self.allocation.pairs and self.contrast and self.contrast.key == "task":
            yield f"unpaired groups have no contrast per task; use key='type' with {allocation}"
        yield from self._unfit_advantage()
        yield from self._idle_parts(allocation)
        yield from self._unfit_memory(allocation)

    def _unfit_advantage(self) -> Iterator[str]:
        """Of what losses and the advantage scheme need of each other."""
        advantage = f"advantage={self.advantage.name!r}"
        targets = {name for loss in self.losses for name in loss.targets}
        if lacking := targets - self.advantage.targets:
            yield f"a loss reads {', '.join(sorted(lacking))}, which {advantage} does not give"
        figures = {"logprobs", "ref_logprobs", *(head for loss in self.losses for head in loss.heads)}
        if unknown := self.advantage.inputs - figures:
            names = ", ".join(sorted(unknown))
            yield f"{advantage} reads {names}, for which no loss has a head; take another advantage"
        # GRPO's is the default, which a method without a policy gradient leaves as it is.
        if not (self.reads_advantages or isinstance(self.advantage, Grpo)):
            yield f"no loss reads what {advantage} gives; leave it out"

    def _idle_parts(self, allocation: str) -> Iterator[str]:
        """Of losses and row makers that would have no effect, or that of another text."""
        idle = [loss.name for loss in self.losses if loss.acts_on == "skill_free"]
        if idle and not self.allocation.plays_skill_free:
            yield (
                f"{', '.join(idle)} would never act, because {allocation} plays no rollout without the skill; take "
                "another one, as in half_skill_grpo+forward_distillation or skillc+forward_distillation"
            )
        if idle := [maker.name for maker in self.rows if maker.needs_skill and not self.uses_skills]:
            yield f"{', '.join(idle)} would never make a row, because {allocation}; take allocation='half' or 'always'"
        if idle := [maker.name for maker in self.rows if maker.needs_comparison and not self.allocation.compares]:
            yield (
                f"{', '.join(idle)} would never make a row, because {allocation} plays no task in both conditions; "
                "take another one, as in half_skill_grpo+relabelling, grpo+need+relabelling or skillc+relabelling"
            )
        taught = [loss for loss in self.losses if loss.acts_on == "skill_free" and loss.taught_behind == "with_skill"]
        if taught and not self.memory.shows_library:
            yield (
                f"{taught[0].name} would teach what the library says, and memory={self.memory.name!r} shows other "
                "texts; leave it out"
            )

    def _unfit_memory(self, allocation: str) -> Iterator[str]:
        """Of the memory and the parts that go with it."""
        if not (self.memory.is_fixed or self.uses_skills):
            remedy = f"would never be shown, because {allocation}; take allocation='half' or 'always'"
            yield f"memory={self.memory.name!r} {remedy}"
        advantage = f"advantage={self.advantage.name!r}"
        if self.memory.adds_to_returns and isinstance(self.advantage, RaisedBaseline):
            # What is added leaves the success scale, on which the baseline is raised.
            yield f"{advantage} needs returns of successes, and memory={self.memory.name!r} adds to them; leave it out"
        if self.memory.misleads and any(maker.needs_fitting_text for maker in self.rows):
            yield "lost rollouts would teach what a text says that does not fit; add distraction to guarded_imitation"
        # Else a text that does not fit counts as the skill: in what the skill is worth, or in its reader's baseline.
        if self.memory.misleads and (self.allocation.compares or not self.advantage.by_text):
            yield (
                f"distraction needs advantages by text (group_by='text') and groups of which every rollout may see the "
                f"skill; got {allocation} and {advantage}; add it to skill_grpo, guarded_imitation, "
                "context_distillation, skill0 or static_withdrawal"
            )
        for name, needed in ((allocation, self.allocation.needs_memory), (advantage, self.advantage.needs_memory)):
            if needed not in ("", self.memory.name):
                yield f"{name} goes with memory={needed!r} alone, not {self.memory.name!r}; leave it out"
        needed = self.advantage.needs_allocation
        if needed not in ("", self.allocation.name):
            yield f"{advantage} goes with allocation={needed!r} alone, not {allocation}; leave {allocation} out"

    @property
    def uses_skills(self) -> bool:
        """Whether any training rollout sees a skill."""
        return self.allocation.uses_skills

    @property
    def reads_advantages(self) -> bool:
        """Whether any loss does."""
        return any(loss.needs_advantages or loss.reads_advantages for loss in self.losses)

    def current_options(self, recorded: Mapping[str, Any]) -> dict[str, Any]:
        """Recorded options as this version has them, whichever wrote them: those of parts that are gone left out."""
        options = self._current(recorded, quietly=True)
        if self.allocation.name == "half" and options.get("rho") == 0.5:
            # Half a group's skills were a curriculum's once, with a fixed share.
            options["allocation"] = "half"
        return {**self.options, **{name: value for name, value in options.items() if name in self.options}}

    @property
    def options(self) -> dict[str, Any]:
        """All options as JSON-able values, by the names that overrides use; the chosen parts by their own names."""
        return {"allocation": self.allocation.name, "advantage": self.advantage.name, **flat_options(self)}

    def overridden(self, **overrides: Any) -> Recipe:
        """A copy with some options changed, and the change recorded.

        Options go by flat name (``omega``), or ``part.option`` where several parts have it; ``allocation`` and
        ``advantage`` choose another part by name. An UnknownNameError or a ConfigError says what does not go.
        """
        changes = self._current(overrides)
        return replace(self._changed(changes), overrides={**self.overrides, **changes})

    def variant(self, name: str, summary: str, **changes: Any) -> Recipe:
        """Another recipe: this one with some options changed, under a name of its own."""
        return replace(self._changed(changes), name=name, summary=summary, overrides={})

    def _current(self, options: Mapping[str, Any], *, quietly: bool = False) -> dict[str, Any]:
        known = option_names(self)
        renamed = {old: new for old, new in _RENAMED.items() if new in known and old not in known}
        return current_names(options, renamed, quietly=quietly)

    def _changed(self, changes: Mapping[str, Any]) -> Recipe:
        options = self._current(changes)
        parts: dict[str, Any] = {}
        if "allocation" in options:
            parts["allocation"] = ALLOCATIONS.get(options.pop("allocation"))()
        if "advantage" in options:
            # A scheme of another kind, with the options that both have.
            kind = SCHEMES.get(options.pop("advantage"))
            shared = {spec.name for spec in fields(kind)} & set(option_names(self.advantage))
            parts["advantage"] = kind(**{option: getattr(self.advantage, option) for option in shared})
        recipe = replace(self, **parts)
        return override(recipe, options) if options else recipe


Addition = Callable[[Recipe], Recipe]


def _baseline(recipe: Recipe) -> Recipe:
    if recipe.advantage not in (Grpo(), Csca()):
        raise _taken("baseline", recipe, f"advantage={recipe.advantage.name!r}", "grpo, half_skill_grpo or skillc")
    return replace(recipe, advantage=RaisedBaseline())


def _allocated(addition: str, allocation: Callable[[], Allocation]) -> Addition:
    def added(recipe: Recipe) -> Recipe:
        part = f"allocation={recipe.allocation.name!r}"
        if "rho" in recipe.options and recipe.options["rho"] is not None:
            part += f" with rho={recipe.options['rho']}"
        elif recipe.allocation.replaceable:
            return replace(recipe, allocation=allocation())
        raise _taken(addition, recipe, part, "grpo, half_skill_grpo or skillc")

    return added


def _distraction(recipe: Recipe) -> Recipe:
    if not recipe.memory.is_fixed:
        raise _taken("distraction", recipe, f"memory={recipe.memory.name!r}", "guarded_imitation or skill_grpo")
    # Whoever is shown a text that does not fit is compared with others that are.
    advantage = recipe.advantage
    if isinstance(advantage, Grpo):
        advantage = replace(advantage, group_by="text")
    return replace(recipe, advantage=advantage, memory=DistractedLibrary())


def _taken(addition: str, recipe: Recipe, part: str, others: str) -> ConfigError:
    return ConfigError(
        f"{recipe.name}: the addition {addition} would take the place of {part}, which makes the method what it is; "
        f"leave it out, or add it to {others}"
    )


ADDITIONS: Mapping[str, Addition] = {
    "relabelling": lambda recipe: replace(
        recipe, losses=(*recipe.losses, Relabelling()), rows=(*recipe.rows, RelabelledRows())
    ),
    "forward_distillation": lambda recipe: replace(recipe, losses=(*recipe.losses, ForwardDistillation())),
    "distraction": _distraction,
    "entropy": lambda recipe: replace(recipe, losses=(*recipe.losses, EntropyBonus())),
    "baseline": _baseline,
    "allocation": _allocated("allocation", BySignal),
    "value": _allocated("value", ByValue),
    "need": _allocated("need", ByNeed),
    "annealed": _allocated("annealed", Annealed),
}
"""By the names that follow a plus sign."""

_ALLOCATIONS = ("allocation", "value", "need", "annealed")
_RENAMED_ADDITIONS: Mapping[str, str] = {"gate": "need"}


def current_name(name: str, *, quietly: bool = False) -> str:
    """The name of a method whose additions may have old names."""
    base, *additions = name.split("+")
    return "+".join(
        [base, *(next(iter(current_names({each: 0}, _RENAMED_ADDITIONS, quietly=quietly))) for each in additions)]
    )


def add(recipe: Recipe, names: list[str]) -> Recipe:
    """Adds to a recipe, in order, and names it ``<recipe>+<name>+...``; errors say what does not go together."""
    for name in names:
        if name not in ADDITIONS:
            raise unknown_name("addition to a recipe", name, ADDITIONS)
    recipe = replace(recipe, name="+".join([recipe.name, *names]))
    chosen = [name for name in names if name in _ALLOCATIONS]
    if len(chosen) > 1 or len(set(names)) < len(names):
        raise ConfigError(
            f"{recipe.name}: each addition is named once, and one of {' and '.join(_ALLOCATIONS)} says who sees the "
            "skill; leave the others out"
        )
    # Who sees the skill comes first: other additions are refused where it would leave them without effect.
    for name in sorted(names, key=lambda name: name not in _ALLOCATIONS):
        recipe = replace(ADDITIONS[name](recipe), summary=f"{recipe.summary} With {name}.")
    return recipe

"""The internalisation curriculum: how much of a group sees the skill, and which task types still have one."""

from __future__ import annotations

import contextlib
import itertools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from numbers import Real
from typing import Any

from skillc_gym.errors import CheckpointError, ConfigError, require_name
from skillc_gym.values import require_whole

_VERSION = 2

ALFWORLD_CAPACITY = (6, 3, 0)
RETIREMENT_REASONS = ("gap", "budget")


@dataclass(frozen=True, kw_only=True)
class GateOptions:
    """From the smoothed gap to the share of skill-injected rollouts."""

    temperature: float = 0.1
    """Temperature T of the gate."""
    gate: float | None = None
    """A constant instead of the sigmoid, or None."""
    rho_min: float = 0.1
    """Smallest share of each branch in a paired group; below 0.5."""
    rho: float | None = None
    """A constant share of skill-injected rollouts for active types instead of the gate's, or None."""


@dataclass(frozen=True, kw_only=True)
class RetirementOptions:
    """How gaps are smoothed, and when a type loses its skill for good."""

    alpha_val: float = 0.7
    """Weight of the past in the smoothed gap; 0 means no smoothing."""
    initial_gap: float = 0.0
    """Where every smoothed gap starts."""
    tau_retire: float = 0.0
    """Threshold of the smoothed gap below which a type retires."""
    capacity: tuple[int, ...] = ALFWORLD_CAPACITY
    """K(t): how many types may stay active in each of ``len(capacity)`` equal stages of training, never rising.
    ALFWorld's profile, and any that asks for more types than there are, is scaled in proportion to the number of types
    (half up); every other profile is taken literally."""
    retire_by: tuple[str, ...] = RETIREMENT_REASONS
    """Which reasons may retire a type; ``()`` never prunes."""
    min_validations: int = 0
    """Validations (the one before step 0 included) a type must have seen before its own gap may retire it. The budget
    is not bound by it."""
    margin: float = 0.0
    """Standard errors by which the smoothed gap must lie below ``tau_retire``. The smoothed gap's error is taken as the
    smoothed standard error: one panel is validated again and again, so repetitions do not shrink what the choice of its
    tasks leaves uncertain."""


@dataclass(frozen=True, kw_only=True)
class CurriculumOptions(GateOptions, RetirementOptions):
    """The options of an `InternalizationCurriculum`; ConfigError for a value out of range, or an unknown reason.

    With a ``margin`` :meth:`InternalizationCurriculum.update` needs its ``standard_error``.
    """

    lam: float = 1.0
    """Weight of the correction at an open gate."""
    beta_freq: float = 0.01
    """How fast the correction fades with the number of earlier updates on the same task."""
    total_steps: int = 180
    """Training steps over which the stages are laid."""

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if value is not None or "None" not in str(entry.type):
                object.__setattr__(self, entry.name, _checked(entry.name, str(entry.type), value))
        for reason in self.retire_by:
            require_name("retirement reason", reason, RETIREMENT_REASONS)
        counts = self.capacity
        falls = len(counts) > 0 and counts[-1] >= 0 and all(a >= b for a, b in itertools.pairwise(counts))
        holds = {
            "temperature": (self.temperature > 0, "above 0"),
            "rho_min": (0 <= self.rho_min < 0.5, "in [0, 0.5)"),
            "alpha_val": (0 <= self.alpha_val < 1, "in [0, 1)"),
            "capacity": (falls, "one or more counts that never rise"),
            "total_steps": (self.total_steps > 0, "above 0"),
            "gate": (self.gate is None or 0 <= self.gate <= 1, "None or in [0, 1]"),
            "rho": (self.rho is None or 0 <= self.rho <= 1, "None or in [0, 1]"),
            "initial_gap": (-1 <= self.initial_gap <= 1, "in [-1, 1]"),
        }
        not_negative = ("lam", "beta_freq", "min_validations", "margin")
        holds |= {name: (getattr(self, name) >= 0, "at least 0") for name in not_negative}
        for name, (good, expected) in holds.items():
            if not good:
                raise ConfigError(f"The curriculum's {name} must be {expected}, got {getattr(self, name)!r}")

    def to_json(self) -> dict[str, Any]:
        """The options as JSON-able values."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}


def _checked(name: str, kind: str, value: Any) -> Any:
    convert, expected = _KINDS[kind]
    try:
        return convert(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ConfigError(f"The curriculum's {name} must be {expected}, got {value!r}") from error


def _number(value: Any) -> float:
    if isinstance(value, str) or math.isnan(value):
        raise ValueError
    return float(value)


def _count(value: Any) -> int:
    """A whole number, also as 180.0, as some files have it."""
    return int(value) if isinstance(value, float) and value.is_integer() else operator.index(value)


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):  # its letters would be taken for names
        raise TypeError
    return tuple(sorted(value, reverse=True))


_KINDS: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "float": (_number, "a number"),
    "float | None": (_number, "a number or None"),
    "int": (_count, "a whole number"),
    "tuple[int, ...]": (lambda counts: tuple(map(_count, counts)), "a list of whole numbers"),
    "tuple[str, ...]": (_names, "a list of names"),
}


def scale_capacity(capacity: Sequence[int], types: int) -> tuple[int, ...]:
    """Fits a capacity profile to a number of task types.

    ALFWorld's (6, 3, 0), and a profile asking for more types than there are, is shrunk or stretched in proportion
    with half-up rounding; any other is returned as it is.
    """
    reference = max(capacity)
    if tuple(capacity) != ALFWORLD_CAPACITY and reference <= types:
        return tuple(capacity)
    return tuple((2 * k * types + reference) // (2 * reference) for k in capacity)


@dataclass(frozen=True)
class Retirement:
    """One task type's farewell to its skill, after a validation at a training step, with its smoothed gap then.

    ``reason`` is ``"gap"`` (that gap fell below the threshold) or ``"budget"`` (cut by K(t)).
    """

    task_type: str
    step: int
    reason: str
    gap: float


class InternalizationCurriculum:
    """Gate, rollout allocation and active set of SkillC, driven by validations with and without skills.

    Per task type ``k`` it keeps the smoothed gap
    ``D(k) <- alpha_val * D(k) + (1 - alpha_val) * (SR_with - SR_without)``. The gap opens the gate
    ``sigmoid(D / temperature)``, the gate sets the share of skill-injected rollouts and the weight of the correction.
    At each validation the types whose gap is below ``tau_retire`` retire ("gap"), and of the others only the ``K(t)``
    widest gaps stay ("budget"; ties go by the order of ``task_types``). No type ever returns.

    Args:
        task_types: The types, in the fixed order that breaks ties.
        **options: The fields of `CurriculumOptions`.

    Raises:
        ConfigError: An argument lies outside its range.

    Examples:
        >>> curriculum = InternalizationCurriculum(["heat", "cool"])
        >>> _ = curriculum.update({"heat": 0.9, "cool": 0.5}, {"heat": 0.1, "cool": 0.5}, step=0)
        >>> curriculum.n_plus("heat", 8), curriculum.n_plus("cool", 8)
        (6, 1)
    """

    def __init__(self, task_types: Sequence[str], **options: Any) -> None:
        if isinstance(task_types, str | set | frozenset):
            raise ConfigError(f"task_types is a list in a fixed order, got {task_types!r}")
        self._task_types = tuple(task_types)
        self._options = CurriculumOptions(**options)
        if not self._task_types or len(set(self._task_types)) != len(self._task_types):
            raise ConfigError(f"task_types must be a non-empty list without repetitions, got {list(task_types)}")
        self._capacity = scale_capacity(self._options.capacity, len(self._task_types))
        self._gap = dict.fromkeys(self._task_types, self._options.initial_gap)
        self._error = dict.fromkeys(self._task_types, 0.0)
        self._validations = dict.fromkeys(self._task_types, 0)
        self._active = self._task_types
        self._retirements: list[Retirement] = []

    @property
    def task_types(self) -> tuple[str, ...]:
        """All types, retired ones included, in the fixed order."""
        return self._task_types

    @property
    def config(self) -> dict[str, Any]:
        """The resolved keyword arguments, JSON-able: ``InternalizationCurriculum(task_types, **config)``."""
        return self._options.to_json()

    @property
    def active(self) -> tuple[str, ...]:
        """The types that still have a skill, in the fixed order."""
        return self._active

    @property
    def retirements(self) -> tuple[Retirement, ...]:
        """Who retired, when and why, in the order it happened."""
        return tuple(self._retirements)

    def is_active(self, task_type: str) -> bool:
        """Tells whether the type still has a skill."""
        return require_name("task type", task_type, self._task_types) in self._active

    def gap(self, task_type: str) -> float:
        """The smoothed gap D(k) between validation success with and without the skill; kept for retired types too."""
        return self._gap[require_name("task type", task_type, self._task_types)]

    def gate(self, task_type: str) -> float:
        """How much the type still leans on its skill: ``sigmoid(D(k) / T)`` in [0, 1], or the fixed gate."""
        gap = self.gap(task_type)
        fixed = self._options.gate
        return _sigmoid(gap / self._options.temperature) if fixed is None else fixed

    def rho_with(self, task_type: str) -> float:
        """The intended share of skill-injected rollouts in a group of this type; 0 once retired."""
        if not self.is_active(task_type):
            return 0.0
        if self._options.rho is not None:
            return self._options.rho
        rho_min = self._options.rho_min
        return rho_min + (1.0 - 2.0 * rho_min) * max(0.0, 2.0 * self.gate(task_type) - 1.0)

    def n_plus(self, task_type: str, group_size: int) -> int:
        """The number of skill-injected rollouts in a group: half-up rounding, 1 to ``group_size - 1``; 0 once retired.

        Raises:
            ConfigError: ``group_size`` leaves no room for both branches of an active type.
        """
        if not self.is_active(task_type):
            return 0
        if group_size < 2:
            raise ConfigError(
                f"A paired group needs at least 2 rollouts, got group_size={group_size}; raise group_size, "
                "or use a preset without pairs"
            )
        return min(max(math.floor(group_size * self.rho_with(task_type) + 0.5), 1), group_size - 1)

    def lam(self, task_type: str, visits: int = 0) -> float:
        """The weight of the correction: ``lam * gate / (1 + beta_freq * visits)``; 0 once retired.

        ``visits`` is the number of earlier updates that contained the task.
        """
        if not self.is_active(task_type):
            return 0.0
        return self._options.lam * self.gate(task_type) / (1.0 + self._options.beta_freq * visits)

    def capacity_at(self, step: int) -> int:
        """K(t): how many types may be active after a validation at this training step."""
        stages = len(self._capacity)
        stage = min(max(step, 0) * stages // self._options.total_steps, stages - 1)
        return self._capacity[stage]

    def update(
        self,
        sr_with: Mapping[str, float],
        sr_without: Mapping[str, float],
        step: int,
        *,
        standard_error: Mapping[str, float] | None = None,
    ) -> tuple[Retirement, ...]:
        """Takes in one validation: smooths the gaps, then retires. At step 0 (before training) no type retires.

        Args:
            sr_with: Success rate with the skill per type, in [0, 1]. Every active type must be there; retired ones may.
            sr_without: Success rate without the skill, same types.
            step: Training steps done so far.
            standard_error: Standard error of each type's gap (success with minus without); for ``margin``.

        Returns:
            The types that retired at this validation.

        Raises:
            ConfigError: A rate is missing or outside [0, 1], a step or a standard error is no such number, or
                ``margin`` lacks its standard errors.
        """
        require_whole("step", step, 0)
        measured = self._measured(sr_with, sr_without)
        errors = self._errors(standard_error, measured)
        keep = self._options.alpha_val
        for task_type, gap in measured.items():
            self._gap[task_type] = keep * self._gap[task_type] + (1.0 - keep) * gap
            # Validations repeat one panel, so their errors go together: they add up like the gaps, not like variances.
            self._error[task_type] = keep * self._error[task_type] + (1.0 - keep) * errors.get(task_type, 0.0)
            self._validations[task_type] += 1
        return self._retire(step, dict.fromkeys(filter(self._faded, self._active), "gap")) if step > 0 else ()

    def expire(self, step: int) -> tuple[Retirement, ...]:
        """Applies K(t) alone, between two validations; returns as :meth:`update` does."""
        return self._retire(require_whole("step", step), {}) if step > 0 else ()

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on exactly, as JSON-able values."""
        return {
            "version": _VERSION,
            "task_types": list(self._task_types),
            "config": self.config,
            "gap": dict(self._gap),
            "error": dict(self._error),
            "validations": dict(self._validations),
            "active": list(self._active),
            "retirements": [asdict(retirement) for retirement in self._retirements],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a state bit for bit; CheckpointError if it is incomplete, or of other types or options."""
        if not isinstance(state, Mapping) or (missing := sorted(set(self.state_dict()) - set(state))):
            lacking = ", ".join(missing) if isinstance(state, Mapping) else f"everything, being {state!r:.80}"
            raise CheckpointError(f"The curriculum's state lacks {lacking}; it is not a complete checkpoint")
        mine = {"version": _VERSION, "task_types": list(self._task_types), **self.config}
        try:
            theirs = {"version": state["version"], "task_types": list(state["task_types"]), **state["config"]}
        except TypeError as wrong:
            raise CheckpointError(f"The curriculum's state is damaged ({wrong!r})") from wrong
        for key in sorted(set(mine) | set(theirs)):
            if mine.get(key) != theirs.get(key):
                raise CheckpointError(
                    f"The curriculum's state was saved with {key}={theirs.get(key)!r}, this one has {mine.get(key)!r}; "
                    "resume with the configuration of the run that wrote it"
                )
        try:
            gap, error = ({k: float(state[name][k]) for k in self._task_types} for name in ("gap", "error"))
            validations = {k: int(state["validations"][k]) for k in self._task_types}
            retirements = [Retirement(**entry) for entry in state["retirements"]]
            active = tuple(k for k in self._task_types if k in state["active"])
            finite = all(map(math.isfinite, (*gap.values(), *error.values())))
            if not finite or min(validations.values()) < 0 or isinstance(state["active"], str):
                raise ValueError("gaps and their errors are finite, validations from 0 up, active types a list")
        except (KeyError, TypeError, ValueError, OverflowError) as wrong:
            raise CheckpointError(f"The curriculum's state is damaged ({wrong!r})") from wrong
        self._gap, self._error, self._validations, self._retirements = gap, error, validations, retirements
        self._active = active

    def _measured(self, sr_with: Mapping[str, float], sr_without: Mapping[str, float]) -> dict[str, float]:
        for task_type in (*sr_with, *sr_without):
            require_name("task type", task_type, self._task_types)
        wanted = [k for k in self._task_types if k in self._active or (k in sr_with and k in sr_without)]
        return {k: _rate(sr_with, k, "sr_with") - _rate(sr_without, k, "sr_without") for k in wanted}

    def _errors(self, given: Mapping[str, Any] | None, measured: Mapping[str, float]) -> Mapping[str, float]:
        if self._options.margin and (given is None or any(k not in given for k in measured)):
            raise ConfigError("margin > 0 needs every measured type's error: update(..., standard_error={type: error})")
        for task_type, error in (given or {}).items():
            require_name("task type", task_type, self._task_types)
            if not (isinstance(error, Real) and 0 <= float(error) < math.inf):
                raise ConfigError(f"standard_error of {task_type!r} is a number from 0 up, got {error!r}")
        return {task_type: float(error) for task_type, error in (given or {}).items()}

    def _retire(self, step: int, reasons: dict[str, str]) -> tuple[Retirement, ...]:
        kept = [k for k in self._active if k not in reasons]
        if "budget" in self._options.retire_by:
            # sorted() is stable and _active is in the fixed order, so ties fall by that order.
            ranked = sorted(kept, key=lambda k: -self._gap[k])
            reasons |= dict.fromkeys(ranked[self.capacity_at(step) :], "budget")
        retired = tuple(Retirement(k, int(step), reasons[k], self._gap[k]) for k in self._active if k in reasons)
        self._active = tuple(k for k in self._active if k not in reasons)
        self._retirements.extend(retired)
        return retired

    def _faded(self, task_type: str) -> bool:
        if "gap" not in self._options.retire_by or self._validations[task_type] < self._options.min_validations:
            return False
        margin = self._options.margin * self._error[task_type]
        return self._gap[task_type] + margin < self._options.tau_retire


def _sigmoid(x: float) -> float:
    # exp() of a large positive number overflows, of a large negative one it only vanishes.
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else math.exp(x) / (1.0 + math.exp(x))


def _rate(rates: Mapping[str, float], task_type: str, name: str) -> float:
    if task_type not in rates:
        raise ConfigError(f"{name} lacks the active type {task_type!r}; a validation measures every active type")
    given: Any = rates[task_type]
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        if not isinstance(given, str) and 0.0 <= (rate := float(given)) <= 1.0:
            return rate
    raise ConfigError(f"{name}[{task_type!r}] is a success rate in [0, 1], got {given!r}")

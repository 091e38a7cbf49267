"""What became of the tasks of a paired evaluation: counts, rates, chances of several tries, mean scores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any

from skillc_gym.errors import ConfigError
from trainers.stats import Interval, bootstrap_mean, paired_difference, wilson

_MOST = 10**15
"""Beyond any count of an episode: what a damaged file says."""


def _count(value: Any) -> int | None:
    if value is None:
        return None
    if not 0 <= int(value) < _MOST:
        raise ValueError(f"{value!r:.40} is no number of replies or tokens")
    return int(value)


ARMS: Mapping[str, bool] = {"with": True, "without": False}
"""Names of the conditions in reports, and whether the skill is shown."""
_FIGURES: Mapping[str, Callable[[Any], Any]] = {
    **{"won": bool, "score": float, "steps": int, "cut": str, "well_formed": _count, "admissible": _count},
    **{"prompt_tokens": _count, "completion_tokens": _count},
}
"""Figures of an episode in a file, and how each is read."""
_ALWAYS = frozenset({"won", "score", "steps"})
"""Figures that every version wrote."""


@dataclass(frozen=True)
class ArmOutcome:
    """How one episode ended; counts are None where an older version did not count.

    ``score`` is the environment's raw one, ``cut`` as :attr:`skillc_gym.episodes.Episode.cut` has it, ``well_formed``
    and ``admissible`` are numbers of replies. ``seconds``, beside all others, are in no file: they move no report.
    """

    won: bool
    score: float
    steps: int
    cut: str = ""
    well_formed: int | None = None
    admissible: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    seconds: float | None = field(default=None, compare=False)

    @property
    def tokens(self) -> int | None:
        """Tokens read and written together."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True)
class PairedOutcome:
    """What became of one task in both conditions, played from the same seed."""

    task_id: str
    task_type: str
    with_skill: ArmOutcome
    without_skill: ArmOutcome
    attempt: int = 0
    """Number of the pair, where each task is played several times."""
    best_score: float | None = None
    """The score that the environment knows to be within reach; None where it does not say."""

    def arm(self, skill: bool) -> ArmOutcome:
        """The episode with the skill, or the one without."""
        return self.with_skill if skill else self.without_skill

    def to_json(self) -> dict[str, Any]:
        """JSON-able values; each figure of an episode as ``<figure>_with`` and ``<figure>_without``."""
        names = {"task_id": self.task_id, "task_type": self.task_type}
        arms = {f"{name}_{arm}": getattr(self.arm(skill), name) for name in _FIGURES for arm, skill in ARMS.items()}
        return {**names, **arms, "attempt": self.attempt, "best_score": self.best_score}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> PairedOutcome:
        """Reads an outcome back; what older versions did not write has its default, else a KeyError."""
        best = values.get("best_score")
        return cls(
            str(values["task_id"]),
            str(values["task_type"]),
            _arm(values, "with"),
            _arm(values, "without"),
            int(values.get("attempt", 0)),
            None if best is None else float(best),
        )


def _arm(values: Mapping[str, Any], arm: str) -> ArmOutcome:
    names = [name for name in _FIGURES if name in _ALWAYS or f"{name}_{arm}" in values]
    return ArmOutcome(**{name: _FIGURES[name](values[f"{name}_{arm}"]) for name in names})


@dataclass(frozen=True)
class PairedCounts:
    """Pairs counted by their outcomes, and the rates that follow, with 95 % intervals.

    Where each task is played several times, rates are over all pairs, and intervals are as wide as for one pair a task:
    repetitions of a task are not independent, so they are not counted as if they were.

    ``both`` were solved with and without the skill, and so on; ``attempts`` are pairs per task.
    """

    both: int
    only_with: int
    only_without: int
    neither: int
    attempts: int = 1

    @classmethod
    def of(cls, outcomes: Iterable[PairedOutcome], attempts: int = 1) -> PairedCounts:
        """Counts outcomes."""
        found = Counter((o.with_skill.won, o.without_skill.won) for o in outcomes)
        return cls(found[True, True], found[True, False], found[False, True], found[False, False], attempts)

    @property
    def pairs(self) -> int:
        """Number of pairs of episodes."""
        return self.both + self.only_with + self.only_without + self.neither

    @property
    def n(self) -> int:
        """Number of tasks."""
        return self.pairs // self.attempts

    @property
    def sr_with(self) -> float:
        """Success rate with the skill."""
        return (self.both + self.only_with) / self.pairs

    @property
    def sr_without(self) -> float:
        """Success rate without the skill."""
        return (self.both + self.only_without) / self.pairs

    @property
    def gap(self) -> float:
        """``sr_with - sr_without``."""
        return (self.only_with - self.only_without) / self.pairs

    @property
    def sr_with_interval(self) -> Interval:
        """Wilson interval of ``sr_with``."""
        return wilson((self.both + self.only_with) / self.attempts, self.n)

    @property
    def sr_without_interval(self) -> Interval:
        """Wilson interval of ``sr_without``."""
        return wilson((self.both + self.only_without) / self.attempts, self.n)

    @property
    def gap_interval(self) -> Interval:
        """Newcombe's paired interval of the gap."""
        return self.gap_at(0.95)

    def gap_at(self, level: float) -> Interval:
        """Newcombe's paired interval of the gap, at another level."""
        return paired_difference(*self._per_task, level)

    @property
    def gap_standard_error(self) -> float:
        """Standard error of the gap, with half a pair added to each disagreement so that it is never 0."""
        _, only_with, only_without, _ = self._per_task
        more, less = only_with + 0.5, only_without + 0.5
        n = self.n + 1
        return math.sqrt(((more + less) / n - ((more - less) / n) ** 2) / n)

    @property
    def _per_task(self) -> tuple[float, float, float, float]:
        times = self.attempts
        return self.both / times, self.only_with / times, self.only_without / times, self.neither / times

    def to_json(self) -> dict[str, Any]:
        """Counts, rates and intervals as JSON-able values."""
        rates = {name: getattr(self, name) for name in ("sr_with", "sr_without", "gap")}
        intervals = {f"{name}_interval": getattr(self, f"{name}_interval").to_json() for name in rates}
        return {"n": self.n, **asdict(self), **rates, **intervals}


# Several tries, and scores -------------------------------------------------------------------------------------------


def pass_at_k(successes: int, n: int, k: int) -> float:
    """``1 - C(n - c, k) / C(n, k)``: the unbiased chance that one of k episodes wins (arXiv 2107.03374, equation 1)."""
    if not 0 <= successes <= n or not 1 <= k <= n:
        raise ConfigError(f"pass@k needs 0 <= successes <= n and 1 <= k <= n, got {successes} of {n} and k={k}")
    return 1.0 - math.comb(n - successes, k) / math.comb(n, k)


def pass_rates(outcomes: Iterable[PairedOutcome], attempts: int) -> dict[str, dict[str, Any]]:
    """pass@k by k (as text, as JSON has it) = 1, 2, 4, ... and all: means over tasks with 95 % bootstrap intervals."""
    wins: dict[str, Counter[str]] = {arm: Counter() for arm in ARMS}
    for outcome in outcomes:
        for arm, skill in ARMS.items():
            wins[arm][outcome.task_id] += outcome.arm(skill).won
    ks = [*(2**i for i in range(attempts.bit_length()) if 2**i < attempts), attempts]
    return {
        str(k): {
            arm: _mean("rate", [pass_at_k(won, attempts, k) for won in counts.values()]) for arm, counts in wins.items()
        }
        for k in ks
    }


def _mean(name: str, values: Sequence[float]) -> dict[str, Any]:
    return {name: fmean(values), "interval": bootstrap_mean(values, seed=0, resamples=2_000).to_json()}


def graded(outcomes: Sequence[PairedOutcome]) -> bool:
    """Whether the environment gives scores of its own: some that are neither 0 nor 1, or known best ones."""
    return any(
        outcome.best_score is not None or any(outcome.arm(skill).score not in (0.0, 1.0) for skill in (True, False))
        for outcome in outcomes
    )


def mean_scores(outcomes: Sequence[PairedOutcome]) -> dict[str, Any]:
    """Mean scores over tasks in both conditions, with 95 % bootstrap intervals.

    ``"all"``, and ``"reachable"``: over tasks whose best known score is 1, None where no best score is known.
    """
    known = [outcome for outcome in outcomes if outcome.best_score is not None]
    reachable = [outcome for outcome in known if outcome.best_score == 1.0]
    return {"all": _means(outcomes), "reachable": _means(reachable) if known else None}


def _means(outcomes: Sequence[PairedOutcome]) -> dict[str, Any]:
    by_task: dict[str, list[PairedOutcome]] = {}
    for outcome in outcomes:
        by_task.setdefault(outcome.task_id, []).append(outcome)
    scores = {
        arm: [fmean(outcome.arm(skill).score for outcome in found) for found in by_task.values()]
        for arm, skill in ARMS.items()
    }
    return {"tasks": len(by_task), **{arm: _mean("mean", own) if own else None for arm, own in scores.items()}}

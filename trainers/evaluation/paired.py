"""Paired evaluation: every task of a fixed panel is played with the skill and without it, from the same seeds."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from skillc_gym.episodes import Episode
from skillc_gym.errors import ConfigError, MissingDataError
from skillc_gym.panels import panel_hash
from trainers.base import Sampling, Trajectory
from trainers.evaluation.outcomes import ARMS, ArmOutcome, PairedCounts, PairedOutcome, graded, mean_scores, pass_rates
from trainers.rollout.collect import GroupRollouts, SharedRollouts
from trainers.stats import Interval, paired_difference
from trainers.tracking.files import write_json


@dataclass(frozen=True)
class PairedReport:
    """A paired evaluation; every rate follows from ``outcomes``, in the panel's order, attempt by attempt.

    ``identity`` is what identifies the tasks beside their names (content of games, catalogue, prices, noun tagger).
    ``episodes``, in the order played, are for transcripts and not part of the JSON. ``agent`` is "" for the policy
    itself; in both conditions it is shown the same. ``warning`` says what makes the rates say little; None where nobody
    looked, as in reports of earlier versions.
    """

    outcomes: tuple[PairedOutcome, ...]
    seed: int
    sampling: Mapping[str, Any]
    identity: Mapping[str, Any] = field(default_factory=dict)
    episodes: tuple[Episode, ...] = field(default=(), compare=False, repr=False)
    agent: str = ""
    warning: str | None = None

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """The panel: each task once, in its order."""
        return tuple(dict.fromkeys(outcome.task_id for outcome in self.outcomes))

    @property
    def attempts(self) -> int:
        """Pairs of episodes per task."""
        return len(self.outcomes) // len(self.tasks) if self.tasks else 1

    @cached_property
    def overall(self) -> PairedCounts:
        """All tasks together, each weighing the same."""
        return PairedCounts.of(self.outcomes, self.attempts)

    @cached_property
    def per_type(self) -> dict[str, PairedCounts]:
        """Each task type by itself, sorted by name."""
        by_type: dict[str, list[PairedOutcome]] = {}
        for outcome in self.outcomes:
            by_type.setdefault(outcome.task_type, []).append(outcome)
        return {kind: PairedCounts.of(by_type[kind], self.attempts) for kind in sorted(by_type)}

    @property
    def panel_sha256(self) -> str:
        """Hash of the tasks' names and of what identifies them; reports are comparable task by task where it agrees."""
        names = panel_hash(self.tasks)
        if not self.identity:
            return names
        return hashlib.sha256(f"{names}\n{json.dumps(self.identity, sort_keys=True)}".encode()).hexdigest()

    def cuts(self, cut: str = "context") -> dict[str, int]:
        """How many episodes with and without the skill were cut for a reason ("context" or "steps")."""
        return {arm: sum(each.arm(skill).cut == cut for each in self.outcomes) for arm, skill in ARMS.items()}

    def actions(self) -> dict[str, dict[str, float | None]]:
        """Shares of turns that were ``well_formed`` and ``admissible``, by condition; None where nobody counted."""
        names = ("well_formed", "admissible")
        return {arm: {name: self._share(name, skill=skill) for name in names} for arm, skill in ARMS.items()}

    def _share(self, name: str, *, skill: bool) -> float | None:
        arms = [outcome.arm(skill) for outcome in self.outcomes]
        counts, steps = [getattr(arm, name) for arm in arms], sum(arm.steps for arm in arms)
        return None if None in counts or not steps else sum(counts) / steps

    @property
    def sr_with(self) -> dict[str, float]:
        """Success rate with the skill per type, as the curriculum takes it."""
        return {kind: counts.sr_with for kind, counts in self.per_type.items()}

    @property
    def sr_without(self) -> dict[str, float]:
        """Success rate without the skill per type."""
        return {kind: counts.sr_without for kind, counts in self.per_type.items()}

    @property
    def gap_standard_error(self) -> dict[str, float]:
        """Standard error of the gap per type, for the curriculum's margin."""
        return {kind: counts.gap_standard_error for kind, counts in self.per_type.items()}

    def to_json(self) -> dict[str, Any]:
        """The report as JSON-able values: derived rates for readers, outcomes for :meth:`from_json`."""
        return {
            "panel_sha256": self.panel_sha256,
            "identity": dict(self.identity),
            "seed": self.seed,
            "sampling": dict(self.sampling),
            **({"agent": self.agent} if self.agent else {}),
            **({} if self.warning is None else {"warning": self.warning}),
            "attempts": self.attempts,
            "overall": self.overall.to_json(),
            "per_type": {kind: counts.to_json() for kind, counts in self.per_type.items()},
            "pass_at": pass_rates(self.outcomes, self.attempts) if self.attempts > 1 else {},
            "scores": mean_scores(self.outcomes) if graded(self.outcomes) else None,
            "actions": self.actions(),
            "cut_by_context": self.cuts("context"),
            "cut_by_steps": self.cuts("steps"),
            "outcomes": [outcome.to_json() for outcome in self.outcomes],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PairedReport:
        """Reads a report back; a ConfigError if it is none, or its outcomes do not match its panel's hash."""
        try:
            outcomes = tuple(PairedOutcome.from_json(outcome) for outcome in data["outcomes"])
            report = cls(
                outcomes,
                int(data["seed"]),
                dict(data["sampling"]),
                dict(data.get("identity", {})),
                agent=str(data.get("agent", "")),
                warning=None if data.get("warning") is None else str(data["warning"]),
            )
            recorded = data["panel_sha256"]
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ConfigError(
                f"This is no paired report ({error}); expected what PairedReport.to_json wrote"
            ) from error
        if not outcomes:
            raise ConfigError("This is no paired report: it has no outcomes")
        if report.panel_sha256 != recorded:
            raise ConfigError("The report's outcomes do not match its panel's hash; the file was changed")
        return report

    def save(self, path: str | Path) -> None:
        """Writes the report as a JSON file, whole or not at all."""
        write_json(Path(path), self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> PairedReport:
        """Reads a report from a JSON file; errors as in :meth:`from_json`, and a MissingDataError without a file."""
        try:
            found = json.loads(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise MissingDataError(f"{path} is not there; `skillc evaluate` writes a report") from error
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{path} is no paired report: it is not JSON ({error})") from error
        try:
            return cls.from_json(found)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from error


@dataclass(frozen=True)
class Change:
    """How a success rate changed on a panel of ``n`` tasks; 95 % interval of ``after - before``, paired by task."""

    n: int
    before: float
    after: float
    interval: Interval

    @property
    def change(self) -> float:
        """``after - before``."""
        return self.after - self.before


def compare_reports(before: PairedReport, after: PairedReport, *, skill: bool) -> dict[str, Change]:
    """How success with or without the skill changed, task by task: by type, and of all tasks under ``"overall"``.

    A ConfigError if the reports are of different panels, or of different numbers of attempts.
    """
    if before.panel_sha256 != after.panel_sha256:
        raise ConfigError("The two reports are of different panels; evaluate both on the same one")
    if before.attempts != after.attempts:
        raise ConfigError(
            f"The two reports played each task {before.attempts} and {after.attempts} times; evaluate both alike"
        )
    pairs = [
        (b.task_type, b.arm(skill).won, a.arm(skill).won) for b, a in zip(before.outcomes, after.outcomes, strict=True)
    ]
    kinds = sorted({kind for kind, _, _ in pairs})
    changes = {kind: _change([(b, a) for other, b, a in pairs if other == kind], before.attempts) for kind in kinds}
    return {**changes, "overall": _change([(b, a) for _, b, a in pairs], before.attempts)}


def _change(pairs: Sequence[tuple[bool, bool]], attempts: int) -> Change:
    found, played = Counter(pairs), len(pairs)
    cells = ((True, True), (False, True), (True, False), (False, False))
    both, gained, lost, neither = (found[cell] / attempts for cell in cells)
    interval = paired_difference(both, gained, lost, neither)
    return Change(played // attempts, sum(b for b, _ in pairs) / played, sum(a for _, a in pairs) / played, interval)


def paired_evaluation(
    rollouts: GroupRollouts | SharedRollouts,
    panel: Sequence[str],
    *,
    seed: int,
    sampling: Sampling,
    attempts: int = 1,
    identity: Mapping[str, Any] | None = None,
    best_scores: Mapping[str, float] | None = None,
) -> PairedReport:
    """Plays every task of a panel with the skill and without, from the same seed, ``attempts`` times in each condition.

    ``identity``, of the tasks beside their names, is part of the panel's hash; ``best_scores`` are those within reach.
    """
    tasks, size = list(panel), 2 * attempts
    if attempts < 1:
        raise ConfigError(f"attempts, how often each task is played in each condition, is at least 1; got {attempts}")
    if not tasks or len(set(tasks)) != len(tasks):
        raise ConfigError(
            f"A panel names each task once and is not empty; got {len(tasks)} names of {len(set(tasks))} tasks"
        )
    played = rollouts.collect(tasks, [attempts] * len(tasks), size, seed=seed, sampling=sampling)
    episodes = tuple(result.episode for result in played)
    best = best_scores or {}
    outcomes = tuple(
        _outcome(task, played[start + attempt], played[start + attempts + attempt], attempt, best.get(task))
        for attempt in range(attempts)
        for task, start in zip(tasks, range(0, len(played), size), strict=True)
    )
    return PairedReport(outcomes, int(seed), asdict(sampling), dict(identity or {}), episodes)


def _outcome(task: str, with_: Trajectory, without: Trajectory, attempt: int, best: float | None) -> PairedOutcome:
    got = [(each.episode.task_id, int(each.episode.condition)) for each in (with_, without)]
    if got != [(task, 1), (task, 0)]:
        raise ConfigError(f"Expected task {task!r} with the skill and then without, got {got}")
    return PairedOutcome(task, with_.episode.task_type, _arm(with_), _arm(without), attempt, best)


def _arm(played: Trajectory) -> ArmOutcome:
    episode, usage = played.episode, played.usage
    return ArmOutcome(
        won=episode.won,
        score=float(episode.task_score),
        steps=len(episode),
        cut=episode.cut,
        well_formed=sum(turn.format_valid for turn in episode.turns),
        admissible=sum(turn.action_valid for turn in episode.turns),
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        seconds=played.seconds,
    )


def action_warning(report: PairedReport, cause: str = "", *, commands_alone: bool = False) -> str:
    """A sentence where less than half of the replies or commands were good, with the likely cause; "" elsewhere.

    ``commands_alone``: an engine wrote the replies around commands that it chose, so that their form says nothing.
    """
    said = (
        (
            "well_formed",
            "replies had the asked form",
            "it does not know this wording (chat=, form=), or its replies are cut (max_reply_tokens=)",
        ),
        ("admissible", "commands were possible", "it was made for other tasks or prompts (env=, data=, chat=)"),
    )
    for name, what, usual in said[commands_alone:]:
        shares = [share for arm in report.actions().values() if (share := arm[name]) is not None]
        if shares and min(shares) < 0.5:
            found = f"Only {100 * min(shares):.0f} % of the policy's {what}, so its success says little. "
            return f"{found}Likely cause: {cause or usual}."
    return ""


def cut_warning(report: PairedReport, max_context: int | None) -> str:
    """A sentence on episodes that the context cut (a server's own where ``max_context`` is None); "" without any."""
    cut, played = report.cuts("context"), len(report.outcomes)
    if not any(cut.values()):
        return ""
    limit, remedy = ("of the server's model", "Serve the model with a longer context")
    if max_context is not None:
        limit, remedy = (f"(max_context={max_context})", "Raise max_context")
    return (
        f"The context {limit} cut {cut['with']} of {played} episodes with the skill and "
        f"{cut['without']} of {played} without; they count as failed. {remedy}, or use form=window:5."
    )

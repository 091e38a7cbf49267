"""The main line in one call: evaluate a warm-started policy, train it, evaluate it again, draw the report."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillc_gym.envs.registry import warm_started
from skillc_gym.envs.warm_start import DemoTasks, WarmStart
from skillc_gym.errors import ConfigError, MissingDataError
from skillc_lab.report import ReportFiles, make_report
from trainers.base import REAL, SHIPPED, shipped_names, shipped_policy
from trainers.config import TrainConfig
from trainers.tracking.progress import Progress, SilentProgress
from trainers.tracking.run_folder import make_folder, write_json
from trainers.warmstart import data_recipe, small_policy_settings

if TYPE_CHECKING:
    from trainers.evaluation.paired_report import Change, PairedCounts, PairedReport

__all__ = ["DemoConfig", "check_demo", "check_same", "run_demo", "stop_watch", "warm_start"]


_QUICK: Mapping[str, Any] = {"share_prefixes": True, "engine_options": {"draft_tokens": 3}}
"""What the engine in this process does to take half the time, at the same figures up to rounding."""


@dataclass(frozen=True)
class DemoConfig:
    """Settings of the demonstration."""

    out: Path
    """Run folder; an interrupted demonstration goes on from there."""
    env: str = "alfworld"
    """Environment: alfworld or webshop."""
    data: str = "generated"
    """The environment's tasks: "generated", or a folder or archive of real ones."""
    policy: Path | None = None
    """Warm-started policy; None takes a shipped one, and warm-starts one where none knows the tasks."""
    shipped: str = SHIPPED
    """Which of the environment's shipped policies that is."""
    preset: str = "skillc"
    """The method."""
    seed: int = 0
    """Seed of training and of the evaluations."""
    steps: int = 45
    """Updates."""
    held_out_per_type: int | None = None
    """Held-out tasks per task type, 0 for whole splits, None for the environment's number; each is played with and
    without the skill."""
    held_out_splits: tuple[str, ...] = ()
    """Splits of the held-out tasks; the first one is the headline. Empty: the environment's."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the training configuration."""

    @property
    def generated(self) -> bool:
        """Whether the tasks are generated."""
        return self.data == "generated"

    @property
    def warm_start(self) -> WarmStart:
        """How a policy starts in the environment."""
        return warm_started(self.env)[1]

    @property
    def tasks(self) -> DemoTasks:
        """What the environment decides."""
        return self.warm_start.demo

    @property
    def start(self) -> Path:
        """The folder of the warm-started policy."""
        return self.policy or self.shipped_start or self.out / "warm_start"

    @property
    def shipped_start(self) -> Path | None:
        """The shipped policy that knows the tasks; None where none does."""
        if self.generated:
            return shipped_policy(self.env, self.shipped)
        of_data = self.shipped.replace(SHIPPED, REAL, 1)
        return shipped_policy(self.env, of_data) if of_data in shipped_names(self.env) else None

    @property
    def splits(self) -> tuple[str, ...]:
        """Splits of the held-out tasks, the headline first."""
        return self.held_out_splits or self.tasks.held_out_splits

    @property
    def per_type(self) -> int | None:
        """Held-out tasks per task type; None for whole splits."""
        return (self.tasks.held_out_per_type if self.held_out_per_type is None else self.held_out_per_type) or None

    def evaluation(self, when: str, split: str) -> Path:
        """Folder of the evaluation "before" or "after" on a split; the headline's is the one that the page shows."""
        return self.out / (when if split == self.splits[0] else f"{when}_{split}")

    def settings(self) -> dict[str, Any]:
        """What decides the figures, as JSON-able values."""
        chosen = {name: value for name, value in asdict(self).items() if name != "out"}
        policy = None if self.policy is None else str(self.policy)
        return {**chosen, "held_out_splits": list(self.splits), "held_out_per_type": self.per_type, "policy": policy}

    def training(self) -> TrainConfig:
        """The training configuration behind the demonstration."""
        settings: dict[str, Any] = {
            "model": str(self.start),
            "method": self.preset,
            "steps": self.steps,
            "seed": self.seed,
            "run": str(self.out),
            **small_policy_settings(self.env, self.data),
            **self._quick(),
        }
        return TrainConfig(**{**settings, **self.options})

    def _quick(self) -> Mapping[str, Any]:
        """What halves the time, unless a policy or an option of the user's own might not go with it."""
        theirs = self.policy is not None or self.options.keys() & {"engine", "attention", "lora_dropout"}
        return {} if theirs else _QUICK


def run_demo(config: DemoConfig, *, progress: Progress | None = None) -> dict[str, Any]:
    """Runs the demonstration, or goes on with one that was interrupted.

    Args:
        config: What to run.
        progress: Told what happens.

    Returns:
        The summary, as it was written to ``summary.json``: seconds, steps, success rates of the held-out tasks with and
        without skills before and after training (with 95 % intervals), the gap per task type, and where the pictures
        and transcripts are.

    Raises:
        SkillCError: For missing data or extras, and for a folder that holds another run.
    """
    training = config.training()
    check_demo(config)
    with stop_watch(config.out / "elapsed.json") as elapsed:
        return _run(config, training, progress or SilentProgress(), elapsed)


def _run(config: DemoConfig, training: TrainConfig, progress: Progress, elapsed: Callable[[], float]) -> dict[str, Any]:
    from trainers.training import run

    warm_start(config, progress)
    before = _evaluations(config, training, "before", progress)
    result = run(training, progress=progress)
    if not result.finished:
        return {"finished": False, "steps": result.step}
    after = _evaluations(config, replace(training, model=str(result.policy)), "after", progress)
    report = make_report(config.out)
    summary = _summary(config, before, after, report)
    summary["seconds"] = round(elapsed(), 1)
    write_json(config.out / "summary.json", summary)
    return summary


@contextmanager
def stop_watch(path: Path) -> Iterator[Callable[[], float]]:
    """Counts seconds, those of earlier, interrupted invocations included."""
    before = float(json.loads(path.read_text(encoding="utf-8"))["seconds"]) if path.exists() else 0.0
    started = time.perf_counter()
    try:
        yield lambda: before + time.perf_counter() - started
    finally:
        write_json(path, {"seconds": before + time.perf_counter() - started})


def check_same(config: DemoConfig) -> None:
    """Writes down a demonstration's settings, or compares them with those of the one that its folder holds.

    Raises:
        ConfigError: The folder holds another demonstration; the message says in what it differs.
    """
    # As JSON gives it back: a tuple would differ from the list that it becomes.
    path, wanted = config.out / "demo.json", json.loads(json.dumps(config.settings()))
    if path.exists():
        found = json.loads(path.read_text(encoding="utf-8"))
        differing = [
            f"{name} was {found.get(name)!r} and is {wanted.get(name)!r}"
            for name in sorted({*found, *wanted})
            if found.get(name) != wanted.get(name)
        ]
        if differing:
            raise ConfigError(
                f"{config.out} holds another demonstration ({'; '.join(differing)}); name another folder."
            )
    write_json(path, wanted)


def check_demo(config: DemoConfig) -> None:
    """Finds mistakes before anything takes time, and writes the settings down.

    Raises:
        SkillCError: For missing data, settings out of range, and a folder that holds another demonstration.
    """
    from trainers.recipes import recipe_in
    from trainers.rollout import tasks_of

    training = config.training()
    recipe_in(training.env, training.method, training.method_options)
    if config.held_out_per_type is not None and config.held_out_per_type < 0:
        raise ConfigError(f"held_out_per_type must be at least 1, or 0 for all, got {config.held_out_per_type}.")
    if config.policy is not None and not config.policy.is_dir():
        raise MissingDataError(f"There is no checkpoint folder {config.policy}; make one with `skillc make-policy`.")
    make_folder(config.out)
    for split in (training.split, *config.splits):
        tasks_of(replace(training, split=split))
    check_same(config)


def warm_start(config: DemoConfig, progress: Progress) -> None:
    """Clones a policy from demonstrations in the training split where none is named, unless that was done before."""
    from trainers.warmstart import CARD, make_policy

    if config.policy is not None or config.generated or (config.start / CARD).exists():
        return
    progress.note(f"Warm-starting a policy by behaviour cloning in {config.data}; once, some half an hour on a core.")
    make_policy(
        data_recipe(config.data, config.env),
        config.start,
        progress=lambda phase, done, of, _: progress.phase(phase, done, of),
    )


def _evaluations(config: DemoConfig, training: TrainConfig, name: str, progress: Progress) -> dict[str, PairedReport]:
    """Evaluates a policy on every held-out split."""
    return {
        split: _evaluation(config, replace(training, split=split), config.evaluation(name, split), progress)
        for split in config.splits
    }


def _evaluation(config: DemoConfig, held_out: TrainConfig, folder: Path, progress: Progress) -> PairedReport:
    """Evaluates a policy on a held-out panel; an evaluation that lies there from an interrupted run is taken."""
    from trainers.evaluation.paired_report import PairedReport
    from trainers.evaluation.policy import evaluate_policy

    if (folder / "report.json").exists():
        return PairedReport.load(folder / "report.json")
    progress.note(f"Playing held-out tasks of {held_out.split}: {folder.name}.")
    report = evaluate_policy(held_out, per_type=config.per_type, progress=progress)
    report.save_all(folder)
    return report.paired


def _summary(
    config: DemoConfig, before: Mapping[str, PairedReport], after: Mapping[str, PairedReport], report: ReportFiles
) -> dict[str, Any]:
    splits = {split: _compared(before[split], after[split]) for split in config.splits}
    headline = config.splits[0]
    return {
        "finished": True,
        "env": config.env,
        "preset": config.preset,
        "data": config.data,
        "seed": config.seed,
        "steps": config.steps,
        "split": headline,
        **splits[headline],
        "splits": splits,
        "page": str(report.page),
        "pictures": {name: str(path) for name, path in sorted(report.figures.items())},
        "transcripts": [str(config.out / name / "transcripts.jsonl") for name in ("before", "after")],
    }


def _compared(before: PairedReport, after: PairedReport) -> dict[str, Any]:
    from trainers.evaluation.paired_report import compare_reports

    return {
        "games": before.overall.n,
        "panel_sha256": before.panel_sha256,
        **_rates(before.overall, "before"),
        **_rates(after.overall, "after"),
        "change_without": _change(compare_reports(before, after, skill=False)["overall"]),
        "gap_before": {kind: counts.gap for kind, counts in before.per_type.items()},
        "gap_after": {kind: counts.gap for kind, counts in after.per_type.items()},
    }


def _rates(counts: PairedCounts, when: str) -> dict[str, Any]:
    return {
        f"sr_with_{when}": counts.sr_with,
        f"sr_with_{when}_interval": list(asdict(counts.sr_with_interval).values()),
        f"sr_without_{when}": counts.sr_without,
        f"sr_without_{when}_interval": list(asdict(counts.sr_without_interval).values()),
    }


def _change(change: Change) -> dict[str, Any]:
    return {"points": 100 * change.change, "interval": [100 * change.interval.low, 100 * change.interval.high]}

"""The main line in one call: evaluate a warm-started policy, train it, evaluate it again, draw the report."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillc_gym.errors import ConfigError, MissingDataError
from trainers.config import TrainConfig
from trainers.policy.recipes import GENERATOR, SHIPPED_POLICY, games_recipe
from trainers.progress import Progress, SilentProgress
from trainers.report import ReportFiles, make_report
from trainers.runs import make_folder, write_json

if TYPE_CHECKING:
    from trainers.paired_report import Change, PairedCounts, PairedReport

__all__ = ["DemoConfig", "check_same", "run_demo"]


@dataclass(frozen=True)
class DemoConfig:
    """Settings of the demonstration."""

    out: Path
    """Run folder; an interrupted demonstration goes on from there."""
    data: str = "generated"
    """ALFWorld games: "generated", or a folder or archive of real ones."""
    policy: Path | None = None
    """Warm-started policy; None takes the shipped one for generated games and warm-starts one for others."""
    preset: str = "skillc"
    """The method."""
    seed: int = 0
    """Seed of training and of the evaluations."""
    steps: int = 45
    """Updates."""
    held_out_per_type: int | None = 40
    """Held-out games per task type, None for whole splits; each is played with and without the skill."""
    held_out_splits: tuple[str, ...] = ("valid_unseen",)
    """Splits of the held-out games; the first one, scenes that training has not seen, is the headline."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the training configuration."""

    @property
    def generated(self) -> bool:
        """Whether the games are generated."""
        return self.data == "generated"

    @property
    def start(self) -> Path:
        """The folder of the warm-started policy."""
        return self.policy or (SHIPPED_POLICY if self.generated else self.out / "warm_start")

    def preset_options(self) -> dict[str, Any]:
        """What is changed of the method: with generated games, SkillC also retires skills of no visible use.

        A panel of 16 games per type knows a gap to some 0.1 only, so one that stays below 0.05 counts as none.
        """
        return {"tau_retire": 0.05} if self.generated and self.preset == "skillc" else {}

    def settings(self) -> dict[str, Any]:
        """What decides the figures, as JSON-able values."""
        chosen = {name: value for name, value in asdict(self).items() if name != "out"}
        policy = None if self.policy is None else str(self.policy)
        return {**chosen, "held_out_splits": list(self.held_out_splits), "policy": policy}

    def training(self) -> TrainConfig:
        """The training configuration behind the demonstration."""
        settings: dict[str, Any] = {
            "model": str(self.start),
            "preset": self.preset,
            "preset_options": self.preset_options(),
            "data": self.data,
            "env_options": {"generator": GENERATOR} if self.generated else {},
            "max_episode_steps": 20 if self.generated else 30,
            "chat": "compact",
            "steps": self.steps,
            "seed": self.seed,
            "draw": "types",
            "max_reply_tokens": 20,
            "max_context": 2048,
            "learning_rate": 3e-4,
            "adam_beta2": 0.98,
            "beta": 0.0,
            "validate_every": 5,
            "panel_per_type": 16,
            "save_every": 5,
            "run": str(self.out),
        }
        return TrainConfig(**{**settings, **self.options})


def run_demo(config: DemoConfig, *, progress: Progress | None = None) -> dict[str, Any]:
    """Runs the demonstration, or goes on with one that was interrupted.

    Args:
        config: What to run.
        progress: Told what happens.

    Returns:
        The summary, as it was written to ``summary.json``: seconds, steps, success rates of the held-out games with and
        without skills before and after training (with 95 % intervals), the gap per task type, and where the pictures
        and transcripts are.

    Raises:
        SkillCError: For missing data or extras, and for a folder that holds another run.
    """
    training = config.training()
    _check(config, training)
    with _stop_watch(config.out / "elapsed.json") as elapsed:
        return _run(config, training, progress or SilentProgress(), elapsed)


def _run(config: DemoConfig, training: TrainConfig, progress: Progress, elapsed: Callable[[], float]) -> dict[str, Any]:
    from trainers.train import run

    if config.policy is None and not config.generated:
        _warm_start(config, progress)
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
def _stop_watch(path: Path) -> Iterator[Callable[[], float]]:
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
    path, wanted = config.out / "demo.json", config.settings()
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


def _check(config: DemoConfig, training: TrainConfig) -> None:
    """Finds mistakes before anything takes time."""
    from trainers.presets import get_preset
    from trainers.session import tasks_of

    get_preset(training.preset, **training.method_options)
    if config.held_out_per_type is not None and config.held_out_per_type < 1:
        raise ConfigError(f"held_out_per_type must be at least 1, got {config.held_out_per_type}.")
    if config.policy is not None and not config.policy.is_dir():
        raise MissingDataError(f"There is no checkpoint folder {config.policy}; make one with scripts/make_policy.py.")
    make_folder(config.out)
    for split in (training.split, *config.held_out_splits):
        tasks_of(replace(training, split=split))
    check_same(config)


def _warm_start(config: DemoConfig, progress: Progress) -> None:
    """Clones a policy from demonstrations in the games' training split, unless that was done before."""
    from trainers.policy.make import CARD, make_policy

    if (config.start / CARD).exists():
        return
    progress.note(f"Warm-starting a policy by behaviour cloning in {config.data}; once, some half an hour on a core.")
    make_policy(
        games_recipe(config.data), config.start, progress=lambda phase, done, of, _: progress.phase(phase, done, of)
    )


def _evaluations(config: DemoConfig, training: TrainConfig, name: str, progress: Progress) -> dict[str, PairedReport]:
    """Evaluates a policy on every held-out split; the first split's folder is the one that the report page shows."""
    first, *rest = config.held_out_splits
    folders = {first: config.out / name, **{split: config.out / f"{name}_{split}" for split in rest}}
    return {
        split: _evaluation(config, replace(training, split=split), folder, progress)
        for split, folder in folders.items()
    }


def _evaluation(config: DemoConfig, held_out: TrainConfig, folder: Path, progress: Progress) -> PairedReport:
    """Evaluates a policy on a held-out panel; an evaluation that lies there from an interrupted run is taken."""
    from trainers.evaluate_policy import evaluate_policy
    from trainers.paired_report import PairedReport

    if (folder / "report.json").exists():
        return PairedReport.load(folder / "report.json")
    report = evaluate_policy(held_out, per_type=config.held_out_per_type, progress=progress)
    report.save_all(folder)
    return report.paired


def _summary(
    config: DemoConfig, before: Mapping[str, PairedReport], after: Mapping[str, PairedReport], report: ReportFiles
) -> dict[str, Any]:
    splits = {split: _compared(before[split], after[split]) for split in config.held_out_splits}
    headline = config.held_out_splits[0]
    return {
        "finished": True,
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
    from trainers.paired_report import compare_reports

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

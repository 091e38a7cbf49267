"""The demonstration without training: shipped policies play held-out tasks with and without the skill, in a minute."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillc_gym.errors import ConfigError, MissingDataError
from skillc_lab.commands.demo import DemoConfig
from skillc_lab.report import make_report
from trainers.base import hardest_start, shipped_policy, shipped_trained_policy
from trainers.config import TrainConfig
from trainers.tracking.progress import Progress, SilentProgress
from trainers.tracking.run_folder import make_folder, write_json

if TYPE_CHECKING:
    from skillc_gym.episodes import Episode
    from trainers.evaluation.paired_report import PairedReport

__all__ = ["QuickDemoConfig", "QuickDemoResult", "run_quick_demo"]


@dataclass(frozen=True)
class QuickDemoConfig:
    """Settings of the demonstration without training.

    Raises:
        ConfigError: A number lies outside its range.
        MissingDataError: The policy is not there.
    """

    out: Path
    """Folder of evaluations and page."""
    env: str = "alfworld"
    """Environment; its tasks are generated."""
    policy: Path | None = None
    """Trained policy to show beside its start; None takes the shipped one where there is one."""
    seed: int = 0
    """Seed of the episodes."""
    tasks_per_type: int | None = None
    """Held-out tasks per task type; None for a tenth of what the whole demonstration evaluates on."""

    def __post_init__(self) -> None:
        if self.tasks_per_type is not None and self.tasks_per_type < 1:
            raise ConfigError(f"The held-out tasks per task type must be at least 1, got {self.tasks_per_type}.")
        if self.policy is not None and not (self.policy / "config.json").is_file():
            raise MissingDataError(f"There is no checkpoint folder {self.policy}; make one with `skillc demo`.")

    @property
    def demo(self) -> DemoConfig:
        """The whole demonstration, whose tasks and wording are taken."""
        return DemoConfig(out=self.out, env=self.env, seed=self.seed)

    @property
    def per_type(self) -> int:
        """Held-out tasks per task type."""
        return self.tasks_per_type or max(1, self.demo.tasks.held_out_per_type // 10)

    @property
    def policies(self) -> dict[str, Path]:
        """Folders of the policies: "start", and "trained" where there is one.

        Raises:
            MissingDataError: No policy comes with the environment, and none is named.
        """
        try:
            start = shipped_policy(self.env, hardest_start(self.env))
        except MissingDataError:
            if self.policy is None:
                raise
            return {"start": self.policy}
        trained = self.policy or shipped_trained_policy(self.env)
        return {"start": start, **({"trained": trained} if trained else {})}


@dataclass(frozen=True)
class QuickDemoResult:
    """What the demonstration found.

    Attributes:
        split: The held-out split.
        reports: The evaluation of each policy, the start first.
        page: The page with pictures and transcripts.
        seconds: Wall-clock time of all of it.
    """

    split: str
    reports: Mapping[str, PairedReport]
    page: Path
    seconds: float

    @property
    def example(self) -> dict[str, Episode]:
        """Episodes of the task that shows most, by policy and condition: the skill decides it before training."""
        from skillc_lab.report import choose_tasks, group_by_task

        start, *later = (report.episodes for report in self.reports.values())
        task, *_ = choose_tasks(start, later[-1] if later else start, 2)  # of one alone, a failure where there is any
        with_skill, without = group_by_task(start)[task].pair
        trained = {"trained, without": group_by_task(later[-1])[task].without_skill[0]} if later else {}
        return {"start, with the skill": with_skill, "start, without": without, **trained}

    def to_json(self) -> dict[str, Any]:
        """JSON-able values."""
        policies = {name: report.overall.to_json() for name, report in self.reports.items()}
        return {"split": self.split, "policies": policies, "page": str(self.page), "seconds": round(self.seconds, 1)}


def run_quick_demo(config: QuickDemoConfig, *, progress: Progress | None = None) -> QuickDemoResult:
    """Evaluates the start and the trained policy on held-out tasks, with and without the skill, and writes the page.

    Each policy's evaluation goes into the folder of its name, the figures into ``summary.json``.

    Args:
        config: What to show.
        progress: Told how far it has come.

    Raises:
        SkillCError: For missing extras and unknown environments.
    """
    started = time.perf_counter()
    policies = config.policies
    make_folder(config.out)
    for name in policies:
        _require_loadable(_held_out(config, name))
    reports = {name: _evaluation(config, name, progress or SilentProgress()) for name in policies}
    folders = [config.out / name for name in policies]
    before = folders[0] if len(folders) > 1 else None
    title = f"With the skill and without: {config.env}, held-out tasks"
    page = make_report(folders[-1], before=before, out=config.out / "report", title=title).page
    result = QuickDemoResult(config.demo.splits[0], reports, page, time.perf_counter() - started)
    write_json(config.out / "summary.json", result.to_json())
    return result


def _evaluation(config: QuickDemoConfig, name: str, progress: Progress) -> PairedReport:
    from trainers.evaluation.policy import evaluate_policy

    report = evaluate_policy(_held_out(config, name), per_type=config.per_type, progress=progress)
    report.save_all(config.out / name)
    return report.paired


def _held_out(config: QuickDemoConfig, name: str) -> TrainConfig:
    return replace(config.demo.training(), split=config.demo.splits[0], model=str(config.policies[name]))


def _require_loadable(config: TrainConfig) -> None:
    """Finds out that a checkpoint is broken before minutes are spent on playing another one."""
    from trainers.models import load_model, load_plain_tokenizer, without_bars

    with without_bars():
        load_plain_tokenizer(config)
        load_model(config)

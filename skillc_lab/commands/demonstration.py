"""The main line in one call: evaluate a warm-started policy, train it, evaluate it again, draw the report.

Two methods are two such demonstrations, from the same start on the same tasks, in a process each.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

from skillc_gym.envs.registry import warm_started
from skillc_gym.envs.warm_start import DemoTasks, WarmStart
from skillc_gym.errors import ConfigError, MissingDataError
from skillc_lab.report import RunRecords, make_report
from skillc_lab.studies import run_jobs
from trainers.base import REAL, SHIPPED, shipped_names, shipped_policy
from trainers.config import RECOMMENDED, TrainConfig
from trainers.evaluation import Change, PairedCounts, PairedReport, compare_reports, evaluate_policy
from trainers.recipes import recipe_in
from trainers.rollout import tasks_of
from trainers.tracking import PlainProgress, Progress, SilentProgress, make_folder, write_json
from trainers.training import run
from trainers.warmstart import CARD, data_recipe, make_policy, small_policy_settings

__all__ = ["DemoConfig", "check_same", "log_relay", "run_demo", "run_demo_versus"]

Say = Callable[[str], object]

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
    preset: str = RECOMMENDED
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
    def tasks(self) -> DemoTasks:
        """What the environment decides."""
        start: WarmStart = warm_started(self.env)[1]
        return start.demo

    @property
    def start(self) -> Path:
        """The folder of the warm-started policy."""
        return self.policy or self.shipped_start or self.out / "warm_start"

    @property
    def shipped_start(self) -> Path | None:
        """The shipped policy that knows the tasks; None where none does."""
        if self.data == "generated":
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
        # What halves the time might not go with a policy or an option of the user's own.
        theirs = self.policy is not None or self.options.keys() & {"engine", "attention", "lora_dropout"}
        settings: dict[str, Any] = {
            "model": str(self.start),
            "method": self.preset,
            "steps": self.steps,
            "seed": self.seed,
            "run": str(self.out),
            **small_policy_settings(self.env, self.data),
            **({} if theirs else _QUICK),
        }
        return TrainConfig(**{**settings, **self.options})


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
    training, told = config.training(), progress or SilentProgress()
    _check(config)
    with _stop_watch(config.out / "elapsed.json") as elapsed:
        _warm_start(config, told)
        before = _evaluations(config, training, "before", told)
        result = run(training, progress=told)
        if not result.finished:
            return {"finished": False, "steps": result.step}
        after = _evaluations(config, replace(training, model=str(result.policy)), "after", told)
        summary = _summary(config, before, after)
        summary["seconds"] = round(elapsed(), 1)
    write_json(config.out / "summary.json", summary)
    return summary


def check_same(config: DemoConfig) -> None:
    """Writes down a demonstration's settings, or compares them with those of the one that its folder holds.

    Raises:
        ConfigError: The folder holds another demonstration; the message says in what it differs.
    """
    # As JSON gives it back: a tuple would differ from the list that it becomes.
    path, wanted = config.out / "demo.json", json.loads(json.dumps(config.settings()))
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else wanted
    differing = [
        f"{name} was {found.get(name)!r} and is {wanted.get(name)!r}"
        for name in sorted({*found, *wanted})
        if found.get(name) != wanted.get(name)
    ]
    if differing:
        raise ConfigError(f"{config.out} holds another demonstration ({'; '.join(differing)}); name another folder.")
    write_json(path, wanted)


def _check(config: DemoConfig) -> None:
    """Finds mistakes before anything takes time, and writes the settings down.

    Raises:
        SkillCError: For missing data, settings out of range, and a folder that holds another demonstration.
    """
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


@contextmanager
def _stop_watch(path: Path) -> Iterator[Callable[[], float]]:
    """Counts seconds, those of earlier, interrupted invocations included."""
    before = float(json.loads(path.read_text(encoding="utf-8"))["seconds"]) if path.exists() else 0.0
    started = time.perf_counter()
    try:
        yield lambda: before + time.perf_counter() - started
    finally:
        write_json(path, {"seconds": before + time.perf_counter() - started})


def _warm_start(config: DemoConfig, progress: Progress) -> None:
    """Clones a policy from demonstrations in the training split where none is named, unless that was done before."""
    if config.policy is not None or config.data == "generated" or (config.start / CARD).exists():
        return
    progress.note(f"Warm-starting a policy by behaviour cloning in {config.data}; once, some half an hour on a core.")
    recipe = data_recipe(config.data, config.env)
    make_policy(recipe, config.start, progress=lambda phase, done, of, _: progress.phase(phase, done, of))


def _evaluations(config: DemoConfig, training: TrainConfig, when: str, progress: Progress) -> dict[str, PairedReport]:
    """Evaluates a policy on every held-out split; what lies there from an interrupted run is taken."""
    found = {}
    for split in config.splits:
        folder = config.evaluation(when, split)
        if not (folder / "report.json").exists():
            progress.note(f"Playing held-out tasks of {split}: {folder.name}.")
            report = evaluate_policy(replace(training, split=split), per_type=config.per_type, progress=progress)
            report.save_all(folder)
        found[split] = PairedReport.load(folder / "report.json")
    return found


def _summary(
    config: DemoConfig, before: Mapping[str, PairedReport], after: Mapping[str, PairedReport]
) -> dict[str, Any]:
    splits = {split: _compared(before[split], after[split]) for split in config.splits}
    headline = config.splits[0]
    return {
        "finished": True,
        **{name: getattr(config, name) for name in ("env", "preset", "data", "seed", "steps")},
        "split": headline,
        **splits[headline],
        "splits": splits,
        **_page(config),
        "transcripts": [str(config.out / name / "transcripts.jsonl") for name in ("before", "after")],
    }


def _page(config: DemoConfig, **options: Any) -> dict[str, Any]:
    """Writes the report; its files, as a summary names them."""
    made = make_report(config.out, **options)
    return {"page": str(made.page), "pictures": {name: str(path) for name, path in sorted(made.figures.items())}}


def _compared(before: PairedReport, after: PairedReport) -> dict[str, Any]:
    return {
        "games": before.overall.n,
        "panel_sha256": before.panel_sha256,
        **_rates(before.overall, "before"),
        **_rates(after.overall, "after"),
        "change_without": _points(compare_reports(before, after, skill=False)["overall"]),
        "gap_before": {kind: counts.gap for kind, counts in before.per_type.items()},
        "gap_after": {kind: counts.gap for kind, counts in after.per_type.items()},
    }


def _rates(counts: PairedCounts, when: str) -> dict[str, Any]:
    found = counts.to_json()
    names = {"sr_with": f"sr_with_{when}", "sr_without": f"sr_without_{when}"}
    intervals = {f"{new}_interval": found[f"{name}_interval"] for name, new in names.items()}
    return {**{new: found[name] for name, new in names.items()}, **intervals}


def _points(change: Change) -> dict[str, Any]:
    return {"points": 100 * change.change, "interval": [100 * end for end in change.interval]}


# Two methods ----------------------------------------------------------------------------------------------------------


def run_demo_versus(
    config: DemoConfig, other: str, *, say: Say = lambda line: None, workers: int | None = None
) -> dict[str, Any]:
    """Runs the demonstration of a method and of another one, or goes on with what was interrupted.

    The other one's run lies in ``beside/`` of the folder; what each of them says goes to ``logs/`` and to ``say``.

    Args:
        config: What to run.
        other: The other method.
        say: Told every line, with the method's name before it.
        workers: Processes at a time, one thread each; as many as there are cores, at most two, if None.

    Returns:
        The summary of the first method, as :func:`run_demo` gives it, with that of the other under ``beside`` and how
        they differ on the held-out tasks under ``differences``.

    Raises:
        SkillCError: For missing data or extras, for a folder that holds other runs, and where one of them failed.
    """
    _check(config)
    with _stop_watch(config.out / "elapsed_beside.json") as elapsed:
        _warm_start(config, _Spoken(say))
        policy = None if config.policy is None and config.shipped_start else config.start
        second = replace(config, preset=other, out=config.out / "beside", policy=policy)
        _check(second)
        _run_both([config, second], config.out / "logs", say, workers or _cores())
        first_summary, second_summary = _summary_of(config), _summary_of(second)
        if not (first_summary["finished"] and second_summary["finished"]):
            return {"finished": False, "steps": min(first_summary["steps"], second_summary["steps"])}
        reports = [PairedReport.load(each.out / "after" / "report.json") for each in (second, config)]
        changes = {arm: compare_reports(*reports, skill=arm == "with")["overall"] for arm in ("without", "with")}
        summary = {
            **first_summary,
            "beside": second_summary,
            "differences": {arm: _points(each) for arm, each in changes.items()},
            **_page(config, versus=[second.out]),
        }
        summary["seconds"] = round(elapsed(), 1)
    write_json(config.out / "summary.json", summary)
    return summary


@contextmanager
def log_relay(logs: Mapping[str, Path], say: Say, every: float = 0.5) -> Iterator[Callable[[], None]]:
    """Passes on what is added to several logs, line by line with each one's name, while it is open.

    Yields:
        A function that passes on at once the whole lines that have come.
    """
    at = {name: path.stat().st_size if path.exists() else 0 for name, path in logs.items()}
    width, closing = max(map(len, logs), default=0), Event()

    def pass_on() -> None:
        for name, path in logs.items():
            if not path.exists():
                continue
            with path.open("rb") as file:
                file.seek(at[name])
                whole, end, _ = file.read().rpartition(b"\n")
            at[name] += len(whole + end)
            for line in whole.decode("utf-8", "replace").splitlines():
                say(f"{name:<{width}}  {line}")

    def follow() -> None:
        while not closing.wait(every):
            pass_on()
        pass_on()

    thread = Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield pass_on
    finally:
        closing.set()
        thread.join()


class _Spoken(SilentProgress):
    """Says notes alone."""

    def __init__(self, say: Say) -> None:
        self._say = say

    def note(self, text: str) -> None:
        self._say(text)


def _run_both(configs: list[DemoConfig], folder: Path, say: Say, workers: int) -> None:
    """Runs what is not finished."""
    left = [config for config in configs if not (config.out / "summary.json").is_file()]
    jobs = {folder / f"{config.preset.replace(':', '_')}.log": config for config in left}
    logs = {config.preset: path for path, config in jobs.items()}
    with log_relay(logs, say):
        failed = [job.preset for job, well in run_jobs(_demonstrate, jobs, workers) if not well]
    if failed:
        named = ", ".join(str(logs[name]) for name in failed)
        raise ConfigError(f"{' and '.join(failed)} failed; {named} says why. The same command goes on with it")


def _demonstrate(config: DemoConfig) -> None:
    """What a process does."""
    run_demo(config, progress=PlainProgress(sys.stdout))


def _summary_of(config: DemoConfig) -> dict[str, Any]:
    path = config.out / "summary.json"
    if path.is_file():
        return dict(json.loads(path.read_text(encoding="utf-8")))
    begun = (config.out / "metrics.jsonl").is_file()
    return {"finished": False, "steps": RunRecords.read(config.out).last_step if begun else 0}


def _cores() -> int:
    """Processes at a time: as many as there are cores, at most two."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(2, usable)

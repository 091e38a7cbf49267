"""The demonstration of two methods beside each other: the same start, seed, tasks and updates, in two processes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Any

from skillc_gym.errors import ConfigError
from skillc_lab.commands.demo import DemoConfig, check_demo, run_demo, stop_watch, warm_start
from skillc_lab.report import make_report
from skillc_lab.studies import run_jobs
from trainers.tracking.progress import PlainProgress, SilentProgress
from trainers.tracking.run_folder import write_json

__all__ = ["LogRelay", "run_demo_beside"]

Say = Callable[[str], object]


def run_demo_beside(
    config: DemoConfig, other: str, *, say: Say = lambda line: None, workers: int | None = None
) -> dict[str, Any]:
    """Runs the demonstration of a method and of another one beside it, or goes on with one that was interrupted.

    The other one's run lies in ``beside/`` of the folder; what each of them says goes to ``logs/`` and to ``say``.

    Args:
        config: What to run.
        other: The other method.
        say: Told every line, with the method's name before it.
        workers: Processes at a time, one thread each; as many as there are cores, at most two, if None.

    Returns:
        The summary of the first method, as :func:`~skillc_lab.commands.demo.run_demo` gives it, with that of the other
        under ``beside`` and how they differ on the held-out tasks under ``differences``.

    Raises:
        SkillCError: For missing data or extras, for a folder that holds other runs, and where one of them failed.
    """
    configs = {config.preset: config}
    check_demo(config)
    with stop_watch(config.out / "elapsed_beside.json") as elapsed:
        warm_start(config, _Spoken(say))
        policy = None if config.policy is None and config.shipped_start else config.start
        configs[other] = replace(config, preset=other, out=config.out / "beside", policy=policy)
        check_demo(configs[other])
        _run(configs, config.out / "logs", say, workers or _cores())
        summaries = {name: _summary(each) for name, each in configs.items()}
        if not all(summary["finished"] for summary in summaries.values()):
            return {"finished": False, "steps": min(summary["steps"] for summary in summaries.values())}
        summary = _together(config, configs[other], summaries)
        summary["seconds"] = round(elapsed(), 1)
    write_json(config.out / "summary.json", summary)
    return summary


class LogRelay(AbstractContextManager["LogRelay"]):
    """Passes on what is added to several logs, line by line with each one's name, while it is open."""

    def __init__(self, logs: Mapping[str, Path], say: Say, every: float = 0.5) -> None:
        self._say, self._every = say, every
        self._logs = dict(logs)
        self._at = {name: path.stat().st_size if path.exists() else 0 for name, path in logs.items()}
        self._width = max(map(len, logs), default=0)
        self._closing = Event()
        self._thread = Thread(target=self._follow, daemon=True)

    def __enter__(self) -> LogRelay:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._thread.join()

    def pass_on(self) -> None:
        """Passes on the whole lines that have come."""
        for name, path in self._logs.items():
            if not path.exists():
                continue
            with path.open("rb") as file:
                file.seek(self._at[name])
                whole, _, _ = file.read().rpartition(b"\n")
            if whole:
                self._at[name] += len(whole) + 1
            for line in whole.decode("utf-8", "replace").splitlines():
                self._say(f"{name:<{self._width}}  {line}")

    def _follow(self) -> None:
        while not self._closing.wait(self._every):
            self.pass_on()
        self.pass_on()


class _Spoken(SilentProgress):
    """Says notes alone."""

    def __init__(self, say: Say) -> None:
        self._say = say

    def note(self, text: str) -> None:
        """Says it."""
        self._say(text)


def _run(configs: Mapping[str, DemoConfig], folder: Path, say: Say, workers: int) -> None:
    """Runs what is not finished."""
    logs = {name: folder / f"{name.replace(':', '_')}.log" for name, each in configs.items() if not _finished(each)}
    failed = []
    with LogRelay(logs, say):
        for job, well in run_jobs(_demonstrate, {path: configs[name] for name, path in logs.items()}, workers):
            failed += [] if well else [job.preset]
    if failed:
        named = ", ".join(str(logs[name]) for name in failed)
        raise ConfigError(f"{' and '.join(failed)} failed; {named} says why. The same command goes on with it")


def _demonstrate(config: DemoConfig) -> None:
    """What a process does."""
    run_demo(config, progress=PlainProgress(sys.stdout))


def _finished(config: DemoConfig) -> bool:
    return (config.out / "summary.json").is_file()


def _summary(config: DemoConfig) -> dict[str, Any]:
    if _finished(config):
        return dict(json.loads((config.out / "summary.json").read_text(encoding="utf-8")))
    from skillc_lab.report import RunRecords

    begun = (config.out / "metrics.jsonl").is_file()
    return {"finished": False, "steps": RunRecords.read(config.out).last_step if begun else 0}


def _together(config: DemoConfig, other: DemoConfig, summaries: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    from trainers.evaluation.paired_report import PairedReport, compare_reports

    title = f"{config.preset} beside {other.preset} on {config.env}, seed {config.seed}"
    report = make_report(config.out, versus=[other.out], title=title)
    first, second = (PairedReport.load(each.out / "after" / "report.json") for each in (config, other))
    changes = {arm: compare_reports(second, first, skill=arm == "with")["overall"] for arm in ("without", "with")}
    return {
        **summaries[config.preset],
        "beside": summaries[other.preset],
        "differences": {
            arm: {"points": 100 * each.change, "interval": [100 * end for end in each.interval.to_json()]}
            for arm, each in changes.items()
        },
        "page": str(report.page),
        "pictures": {name: str(path) for name, path in sorted(report.figures.items())},
    }


def _cores() -> int:
    """Processes at a time: as many as there are cores, at most two."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(2, usable)

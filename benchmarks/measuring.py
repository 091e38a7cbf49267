"""How every measurement is run: options, a record as JSON, errors in a sentence; figures and their goals."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from skillc_gym.errors import SkillCError
from skillc_gym.version import __version__
from skillc_lab.tables import Table, write_record
from trainers.stats import MeanEstimate
from trainers.tracking import provenance, require_clean

RECORDS = Path(__file__).parent / "records"


def exit_status(work: Callable[[], int | None]) -> int:
    """What the work returns, 0 for nothing; 2 if it was refused, which has been said."""
    try:
        return work() or 0
    except SkillCError as error:
        print(error, file=sys.stderr)
        return 2


def figure(value: float | None) -> str:
    """A measured value with three digits; nothing where there is none."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def estimated(found: MeanEstimate) -> dict[str, Any]:
    """A mean and its interval, as records have them."""
    return {"mean": found.mean, "interval": found.interval and found.interval.to_json()}


def versions_of(*packages: str) -> dict[str, str]:
    """Versions of this package, of Python, and of those packages that are installed."""
    found = {"skillc-gym": __version__, "python": platform.python_version()}
    for package in packages:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def options_parser(text: str | None) -> argparse.ArgumentParser:
    """A command's options: where the record goes, and whether the tree may have changes; its help is a docstring."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="the record, a JSON file (default: it is printed alone)")
    parser.add_argument("--allow-changes", action="store_true", help="measure a changed working tree, and say so")
    return parser


def measurement(
    parser: argparse.ArgumentParser,
    measure: Callable[[argparse.Namespace], dict[str, Any]],
    words: Sequence[str] | None,
    *,
    failed: Callable[[dict[str, Any]], bool] = lambda record: False,
) -> int:
    """Measures, prints what was found, and writes the record where ``--out`` names a place.

    The exit status is 2 where the measurement was refused, which has been said, 1 where the record says ``failed``.
    """
    options = parser.parse_args(words)

    def work() -> int:
        if options.out:
            require_clean(allow_changes=options.allow_changes)
        git = provenance()["git"]
        found = measure(options)
        print(json.dumps(found, indent=1, ensure_ascii=False))
        if options.out:
            write_record(options.out.with_suffix(".json"), found, git)
        return int(failed(found))

    return exit_status(work)


def seconds_of(work: Callable[[], object]) -> float:
    """How long the work takes by the clock."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def in_fresh_process(work: Callable[..., float], *arguments: Any) -> float:
    """What the work comes to in a process that has done nothing else."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


@dataclass(frozen=True)
class Figure:
    """One measurement with its unit, beside upstream's value and a goal where there are some.

    Upstream's is of the same run unless it is ``recorded``.
    """

    name: str
    ours: float
    upstream: float | None = None
    goal: float | None = None
    more_is_better: bool = False
    recorded: bool = False

    @property
    def met(self) -> bool:
        """Whether the goal is reached; true without a goal."""
        if self.goal is None:
            return True
        return self.ours >= self.goal if self.more_is_better else self.ours <= self.goal


@dataclass(frozen=True)
class Bench:
    """The figures of one part, what they were measured on, and whether generated content stood in for real data."""

    subject: str
    figures: Sequence[Figure]
    stand_in: bool = False

    def table(self) -> Table:
        """A row per figure."""
        rows = [[each.name, figure(each.ours), *_beside(each), "" if each.met else "MISSED"] for each in self.figures]
        return Table(["measured", "ours", "upstream", "goal", ""], rows, numbers=(1, 2, 3))


def _beside(found: Figure) -> tuple[str, str]:
    """Upstream's value and the goal."""
    upstream = figure(found.upstream) + " (recorded)" * (found.recorded and found.upstream is not None)
    return upstream, "" if found.goal is None else f"{'>=' if found.more_is_better else '<='} {figure(found.goal)}"

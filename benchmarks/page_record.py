"""A measurement that is printed as a page and, if asked for, kept as a page with its record."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.revision import write_record
from skillc_gym.errors import SkillCError

__all__ = ["measure_and_write", "record_names"]

Measure = Callable[[argparse.Namespace], dict[str, Any]]
Page = Callable[[dict[str, Any]], str]


def measure_and_write(options: argparse.Namespace, measure: Measure, page: Page) -> dict[str, Any] | None:
    """Measures, prints the page, and writes it with its record and revision where ``options.out`` names a place.

    Returns:
        The record; None if the measurement was refused, which has been said.
    """
    try:
        record = measure(options)
    except SkillCError as error:
        print(error, file=sys.stderr)
        return None
    print(page(record))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        write_record(options.out.with_suffix(".json"), record)
        options.out.with_suffix(".md").write_text(page(record), encoding="utf-8")
    return record


def record_names(paths: Sequence[Path]) -> list[str]:
    """What a page calls the records that it was made from: no folder of a machine, only what was given below it."""
    return [path.name if path.is_absolute() else path.as_posix() for path in paths]

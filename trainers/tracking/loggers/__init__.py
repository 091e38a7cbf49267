"""Who else is told a run's records, beside ``metrics.jsonl``.

A logger is a class with a ``name`` that is made without arguments; those of others are written ``module:CLASS``.
What every logger writes are a record's numbers under names, those of the method in sections of their own.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from skillc_gym.envs.registry import short_type
from skillc_gym.files import replace_file
from trainers.base import Registry, Wanted

__all__ = ["LOGGERS", "PANELS", "PROJECT", "Logger", "kept_id", "scalars"]


class Logger(Protocol):
    """Receives what is written to ``metrics.jsonl``."""

    def start(self, folder: Path, config: Mapping[str, Any]) -> None:
        """A run begins, or goes on."""

    def log(self, record: Mapping[str, Any]) -> None:
        """A record of an update or a validation: ``step``, ``event``, figures, figures by task type."""

    def close(self) -> None:
        """The run is over, for whatever reason."""


_CLASS = Wanted(
    "a class with start, log and close",
    lambda found: callable(found) and all(hasattr(found, method) for method in ("start", "log", "close")),
)
LOGGERS = Registry("logger", __name__, "LOGGER", "skillc_gym.loggers", _CLASS)
"""Built-in loggers, entry points, and ``module:CLASS``: the names that ``report_to=`` takes."""

PROJECT = "skillc-gym"
"""The project under which runs are listed where nobody names another one."""

PANELS: Mapping[tuple[str, str], str] = {
    ("validation", "overall_with"): "success/with_skill",
    ("validation", "overall_without"): "success/without_skill",
    ("validation", "gap_smoothed"): "gap",
    ("validation", "gate"): "gate",
    ("train", "rollout_fraction_with"): "share_with_skill",
}
"""Event and figure of a record to the section that shows it; figures by task type get a line per type."""


def scalars(record: Mapping[str, Any]) -> dict[str, float]:
    """Every number of a record as ``<event>/<figure>[/<key>]``, those of `PANELS` under their section's name too."""
    event = str(record["event"])
    found = dict(_numbers(event, {name: value for name, value in record.items() if name != "step"}))
    for (where, name), section in PANELS.items():
        if where == event and name in record:
            figure = record[name]
            by_type = isinstance(figure, Mapping)
            found |= _numbers(section, {short_type(kind): figure[kind] for kind in figure} if by_type else figure)
    return found


def _numbers(name: str, figure: Any) -> Iterator[tuple[str, float]]:
    if isinstance(figure, Mapping):
        for key, value in figure.items():
            yield from _numbers(f"{name}/{key}", value)
    elif isinstance(figure, int | float) and not isinstance(figure, bool):
        yield name, float(figure)


def kept_id(folder: Path, logger: str) -> str:
    """The name under which a logger knows the run in a folder; drawn once, so that a run that goes on keeps its own."""
    path = folder / f"{logger}_id"
    if not path.is_file():
        replace_file(path, [uuid.uuid4().hex[:12].encode()])
    return path.read_text(encoding="utf-8").strip()

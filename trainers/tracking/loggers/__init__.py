"""Who else is told a run's records, beside ``metrics.jsonl``: one file per logger.

A module here offers ``LOGGER``, a class with a ``name`` that is made without arguments; others write ``module:CLASS``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from trainers.base import Registry

__all__ = ["LOGGERS", "Logger"]

LOGGERS = Registry("logger", "trainers.tracking.loggers", "LOGGER", "skillc_gym.loggers")
"""Built-in loggers, entry points, and ``module:CLASS``: the names that ``report_to=`` takes."""


class Logger(Protocol):
    """Receives what is written to ``metrics.jsonl``."""

    def start(self, folder: Path, config: Mapping[str, Any]) -> None:
        """A run begins, or goes on."""

    def log(self, record: Mapping[str, Any]) -> None:
        """A record of an update or a validation: ``step``, ``event``, figures, figures by task type."""

    def close(self) -> None:
        """The run is over, for whatever reason."""

"""The former place of :mod:`trainers.training`."""

from __future__ import annotations

import warnings

from trainers.training import RunResult, prepare, run

__all__ = ["RunResult", "prepare", "run"]

warnings.warn("trainers.train is trainers.training now; import run from there", DeprecationWarning, stacklevel=2)

"""Fixtures of the trainers' tests that those of the benchmarks need, too."""

from __future__ import annotations

from tests.trainers.conftest import toy_folder

__all__ = ["toy_folder"]

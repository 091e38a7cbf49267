"""A small run file of a study."""

from __future__ import annotations

from pathlib import Path

TEXT = "starts: {easy: shipped}\nmethods: [grpo, ppo]\nseeds: [0, 1]\nbudget_tokens: 100\nsteps: 4\nevaluate_every: 2\n"


def write_run_file(folder: Path) -> Path:
    """Writes it as ``own.yaml``."""
    path = folder / "own.yaml"
    path.write_text(TEXT)
    return path

from __future__ import annotations

import io
from typing import Any

import pytest

from trainers.tracking import make_progress
from trainers.tracking.progress import PlainProgress

TRAIN = {
    "event": "train", "step": 3, "success": 0.5, "success_with": 0.75, "success_without": None, "loss": -0.125,
    "tokens_generated": 3000, "seconds_generate": 2.0, "grad_norm": 0.4, "kl": 0.001, "episode_length": 7.5,
    "format_valid": 1.0, "n_plus": {"pick_heat_then_place_in_recep": 6.0},
}  # fmt: skip
VALIDATION = {
    "event": "validation", "step": 3, "overall_with": 0.5, "overall_without": 0.25,
    "sr_with": {"pick_heat_then_place_in_recep": 0.5}, "sr_without": {"pick_heat_then_place_in_recep": 0.25},
    "gap_smoothed": {"pick_heat_then_place_in_recep": 0.25}, "active": ["pick_heat_then_place_in_recep"],
}  # fmt: skip


def show(progress: Any) -> None:
    progress.start("a run", 0, 10)
    progress.phase("episodes", 3, 64)
    progress.record(VALIDATION)
    progress.record(TRAIN)
    progress.note("a note")


def test_without_a_terminal_each_event_is_a_line() -> None:
    stream = io.StringIO()
    progress = make_progress(stream)
    assert isinstance(progress, PlainProgress)
    show(progress)
    title, validation, step, note = stream.getvalue().splitlines()
    assert (title, note) == ("a run", "a note")
    assert "smoothed gaps: heat +0.25" in validation
    assert "active: heat" in validation
    assert "step    3/10" in step
    assert "with  75%, without   --" in step
    assert "1,500 tokens/s" in step


def test_on_a_terminal_bars_stand_below_the_lines() -> None:
    pytest.importorskip("rich")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal, plain = Terminal(), io.StringIO()
    for stream in (terminal, plain):
        progress = make_progress(stream)
        show(progress)
        progress.close()
    for piece in (*plain.getvalue().splitlines(), "3/10", "episodes", "3/64"):
        assert piece in terminal.getvalue()


def test_episodes_that_the_context_cut_are_said_on_the_line() -> None:
    stream = io.StringIO()
    progress = PlainProgress(stream)
    progress.record({**VALIDATION, "cut_by_context": {"with": 0.5, "without": 0.25}})
    progress.record({**TRAIN, "cut_by_context_with": None, "cut_by_context_without": 0.125})
    progress.record({**TRAIN, "cut_by_context_with": 0.0, "cut_by_context_without": 0.0})
    validation, step, uncut = stream.getvalue().splitlines()
    assert "cut by the context: with  50%, without  25%" in validation
    assert "cut by the context: with   --, without  12%" in step
    assert "cut" not in uncut

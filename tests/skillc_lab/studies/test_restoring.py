"""Going on from a record on another machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skillc_gym.errors import CheckpointError
from skillc_lab.studies import (
    CellResult,
    ComparisonPlan,
    CurvePoint,
    RunFile,
    TaskOutcome,
    Usage,
    read_cell,
    read_record,
    restore_cells,
    write_comparison,
)


def plan_of(folder: Path, **changes: Any) -> ComparisonPlan:
    fields: dict[str, Any] = {
        "methods": ["grpo", "ppo"],
        "starts": {"easy": "shipped"},
        "budget_tokens": 100,
        "steps": 4,
        "evaluate_every": 2,
        "seeds": [0, 1],
    }
    return RunFile(**{**fields, **changes}).plan("own", folder)


def result(method: str, seed: int) -> CellResult:
    outcomes = (TaskOutcome("a", "kind", True, seed == 0, 1.0, 0.5), TaskOutcome("b", "kind", False, True, 0.0, 1.0))
    curve = (CurvePoint(0, 0.0, 1.0, 0, 0, "00", "11"), CurvePoint(100, 0.5, 1.0, 2, 30, "01", "11"))
    return CellResult("easy", method, seed, "p", outcomes, curve, Usage(100, 0, 30, 2, 0.1, 1.0), {}, {"git": None})


def test_finished_cells_come_back_as_they_were(tmp_path):
    here, there = plan_of(tmp_path / "here"), plan_of(tmp_path / "there", methods=["grpo", "ppo", "rloo"])
    done = [result("grpo", 0), result("ppo", 1)]
    write_comparison(here, done)
    record = read_record(here.folder / "own.json")
    assert [cell.name for cell in restore_cells(there, record)] == ["easy-grpo-seed0", "easy-ppo-seed1"]
    assert [found for cell in there.jobs if (found := read_cell(there, cell))] == done
    assert restore_cells(there, record) == []


def test_settings_that_came_later_count_as_their_defaults(tmp_path):
    plan = plan_of(tmp_path / "there")
    record = read_record_of(plan_of(tmp_path / "here"))
    older = {name: value for name, value in record.protocol["settings"].items() if name != "clip_high"}
    assert restore_cells(plan, replace(record, protocol={**record.protocol, "settings": older}))
    gone = {**older, "no_more": 1}
    with pytest.raises(CheckpointError, match="no_more was 1 and is nothing"):
        restore_cells(plan, replace(record, protocol={**record.protocol, "settings": gone}))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"budget_tokens": 200}, "budget_tokens was 100 and is 200"),
        ({"held_out_per_type": 3}, "per_type"),
        ({"starts": {"easy": "shipped-hard"}}, "start was"),
        ({"overrides": {"grpo": {"learning_rate": 1e-5}}}, "overrides was"),
    ],
)
def test_another_protocol_is_refused(tmp_path, changes, named):
    record = read_record_of(plan_of(tmp_path / "here"))
    other = plan_of(tmp_path / "there", **changes)
    with pytest.raises(CheckpointError, match=named):
        restore_cells(other, record)
    assert not (other.folder / "cells").exists()


def read_record_of(plan: ComparisonPlan):
    write_comparison(plan, [result("grpo", 0)])
    return read_record(plan.folder / "own.json")

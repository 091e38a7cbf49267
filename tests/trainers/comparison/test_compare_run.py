"""A whole comparison on the toy: cells, table, resumption, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillc_gym.errors import CheckpointError, ConfigError, UnknownNameError
from tests.trainers.toys import toy_config
from trainers.comparison.plan import ComparisonPlan, read_method

pytest.importorskip("trl", reason="needs the train extra")

from trainers.comparison import run as comparison


def plan_of(toy_folder: Path, out: Path, **changes: Any) -> ComparisonPlan:
    config = toy_config(toy_folder, steps=9, temperature=2.0, transcripts_every=0, budget_tokens=100)
    fields: dict[str, Any] = {
        "config": config,
        "methods": ("grpo", "skillc:omega=0.2"),
        "seeds": (0, 1),
        "folder": out,
        "held_out": "test",
        "per_type": 2,
    }
    return ComparisonPlan(**{**fields, **changes})


def test_a_comparison_is_written_and_gone_on_with(toy_folder, tmp_path, monkeypatch):
    notes: list[str] = []
    plan = plan_of(toy_folder, tmp_path)
    first = comparison.compare(plan, note=notes.append)
    assert [(cell.method, cell.seed) for cell in first] == [(m, s) for s in (0, 1) for m in plan.methods]
    assert len(notes) == 4
    assert all(cell.tokens_generated >= 100 and cell.updates < 9 for cell in first)
    assert len({cell.panel_sha256 for cell in first}) == 1
    assert all(cell.curve[0].tokens == 0 and cell.curve[-1].tokens == cell.tokens_generated for cell in first)
    assert all(cell.prompt_tokens > 0 for cell in first)

    record = json.loads((tmp_path / "comparison.json").read_text())
    assert [row["method"] for row in record["rows"]] == list(plan.methods)
    assert len(record["cells"][0]["outcomes"]) == 4
    assert "skillc:omega=0.2" in (tmp_path / "table.md").read_text()
    assert (tmp_path / "comparison.png").is_file()

    monkeypatch.setattr(comparison, "run_cell", lambda plan, cell: pytest.fail(f"{cell.name} was run again"))
    assert comparison.compare(plan) == first
    with pytest.raises(CheckpointError, match="another protocol"):
        comparison.compare(plan_of(toy_folder, tmp_path, per_type=1))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods": ()}, "needs methods"),
        ({"methods": ("grpo", "grpo")}, "each once"),
        ({"seeds": ()}, "needs seeds"),
        ({"methods": ("grpo:omega",)}, "option=value"),
    ],
)
def test_a_plan_that_makes_no_table_is_refused(changes, message, toy_folder, tmp_path):
    with pytest.raises(ConfigError, match=message):
        plan_of(toy_folder, tmp_path, **changes)


def test_a_method_is_a_recipe_with_options():
    assert read_method("skillc+baseline:raise_by=0.3,gate=null") == ("skillc+baseline", {"raise_by": 0.3, "gate": None})
    with pytest.raises(UnknownNameError, match="skillc"):
        read_method("skilc")
    with pytest.raises(UnknownNameError, match="omega"):
        read_method("skillc:omgea=1")

"""The paper's figures from records: which methods are one parameter away from the baseline, and that all is drawn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.paper_figures import main, parameters_of
from skillc_lab.studies import (
    CellResult,
    ComparisonRecord,
    CurvePoint,
    TaskOutcome,
    Usage,
    read_run_file,
    regimes_of,
    write_comparison,
)

METHODS = ("skillc", "skillc:omega=0.8", "skillc:omega=0.2", "skillc:lam=0.5", "skillc:lam=0,omega=0.1", "grpo")
TEXT = "starts: {hard: shipped-hard}\nbudget_tokens: 100\nsteps: 4\nevaluate_every: 2\nseeds: [0, 1]\nmethods:\n"


@pytest.fixture
def record(tmp_path: Path) -> ComparisonRecord:
    path = tmp_path / "own.yaml"
    path.write_text(TEXT + "".join(f"  - {method}\n" for method in METHODS))
    plan = read_run_file(path, tmp_path)
    return write_comparison(plan, [cell(method, seed) for method in METHODS for seed in (0, 1)])


def cell(method: str, seed: int) -> CellResult:
    won = [(i + seed) % 4 < len(method) % 4 for i in range(8)]
    outcomes = tuple(TaskOutcome(f"t{i}", "kind", True, w, 1.0, float(w)) for i, w in enumerate(won))
    curve = (CurvePoint(0, 0.0, 1.0), CurvePoint(100, sum(won) / 8, 1.0, 2, 30))
    return CellResult("hard", method, seed, "p", outcomes, curve, Usage(100, 50, 30, 2, 0.5, 1.0))


def test_methods_with_one_changed_option_stand_in_the_order_of_its_values(record):
    found = parameters_of(regimes_of([record])[0])
    assert {option: [value for value, _ in points] for option, points in found.items()} == {
        "omega": [0.2, 0.4, 0.8],
        "lam": [0.5, 1.0],
    }
    assert [row.method for _, row in found["omega"]] == ["skillc:omega=0.2", "skillc", "skillc:omega=0.8"]


def test_cost_and_sensitivity_are_drawn_and_a_missing_record_is_said(record, tmp_path, capsys):
    path, out = str(tmp_path / "own.json"), tmp_path / "pictures"
    costs = [{"method": name, "to_grpo": 1.5, "to_grpo_on_its_rollouts": 1.0} for name in ("grpo", "skillc")]
    (tmp_path / "costs.json").write_text(json.dumps({"methods": costs}))
    assert main(["--costs", str(tmp_path / "costs.json"), "--sensitivity", path, "--out", str(out)]) == 0
    assert {found.name for found in out.iterdir()} == {"cost.png", "sensitivity.png"}
    assert main(["--costs", path, "--out", str(out)]) == 2
    assert "benchmarks.method_costs" in capsys.readouterr().err
    assert main(["--sensitivity", str(tmp_path / "none.json"), "--out", str(out)]) == 2
    assert main(["--run", str(tmp_path), "--out", str(out)]) == 2
    assert "metrics.jsonl" in capsys.readouterr().err

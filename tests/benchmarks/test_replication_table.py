"""The paper's differences beside records', and the simulated tables that say what intervals can see."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.interval_coverage import Setting, coverage, power
from benchmarks.replication_table import main, visible
from skillc_lab.studies import CellResult, CurvePoint, TaskOutcome, Usage, read_run_file, write_comparison
from trainers.stats import Difference

TEXT = (
    "starts: {hard: shipped-hard}\nmethods: [grpo, skillc, fixed_rho]\nbudget_tokens: 100\nsteps: 4\n"
    "evaluate_every: 2\n"
)


def cell(method: str, seed: int) -> CellResult:
    won = [(i + seed) % 20 < {"grpo": 2, "skillc": 14, "fixed_rho": 14}[method] for i in range(40)]
    outcomes = tuple(TaskOutcome(f"t{i:02d}", "kind", True, w, 1.0, float(w)) for i, w in enumerate(won))
    curve = (CurvePoint(0, 0.0, 1.0), CurvePoint(100, sum(won) / 40, 1.0, 2, 30))
    return CellResult("hard", method, seed, "p", outcomes, curve, Usage(100, 50, 30, 2, 0.5, 1.0))


def test_each_claim_has_what_the_record_says_or_that_it_says_nothing(tmp_path: Path, capsys):
    (tmp_path / "own.yaml").write_text(TEXT)
    plan = read_run_file(tmp_path / "own.yaml", tmp_path)
    write_comparison(plan, [cell(m, s) for m in ("grpo", "skillc") for s in range(3)] + [cell("fixed_rho", 0)])
    assert main([str(tmp_path / "own.json"), "--out", str(tmp_path / "table")]) == 0
    page = (tmp_path / "table.md").read_text()
    assert "| skillc minus grpo | +13.0 | +60.0 [" in page
    assert "| better |" in page
    assert "| skillc minus skill0 | +4.7 | not yet measured |" in page
    assert "| skillc minus fixed_rho | +0.8 | +0.0 | 1 |  | one seed |" in page
    (found,) = [
        entry for entry in json.loads((tmp_path / "table.json").read_text())["regimes"]["alfworld, hard start"]
        if entry["second"] == "grpo"
    ]  # fmt: skip
    assert 0 < found["found"]["visible"] < 0.6
    assert main([str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err


def test_what_is_visible_grows_with_the_error_and_needs_two_seeds():
    assert visible(Difference(0.1, 0.02, 10, 3)) == pytest.approx(0.02 * (2.228 + 0.879), abs=1e-4)
    assert visible(Difference(0.1, 0.02, 10, 1)) is None
    assert visible(Difference(0.0, 0.0, 1, 3)) is None


def test_simulated_tables_of_equal_methods_are_covered_and_large_differences_seen():
    quiet = Setting(3, 0.5, 0.0, 0.0)
    found = coverage(quiet, tables=40)
    assert found["coverage"] > 0.9
    seen = power(quiet, tables=10)
    assert seen is not None
    assert found["half_width"] < seen < 0.4

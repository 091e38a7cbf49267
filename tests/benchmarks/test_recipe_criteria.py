"""The recommended recipe beside others, regime by regime, from records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.recipe_criteria import main
from skillc_lab.studies import UNTRAINED, CellResult, CurvePoint, TaskOutcome, Usage, read_run_file, write_comparison

METHODS = {"grpo": 2, "skillc": 1, "contrastive_relabelling": 14}
TEXT = (
    f"starts: {{hard: shipped-hard}}\nmethods: [{', '.join(METHODS)}]\nbudget_tokens: 100\nsteps: 4\n"
    "evaluate_every: 2\n"
)


def cell(method: str, seed: int) -> CellResult:
    won = [(7 * i + seed * (i % 3)) % 20 < METHODS.get(method, 1) for i in range(40)]
    outcomes = tuple(TaskOutcome(f"t{i:02d}", "kind", i % 5 > 0, w, 1.0, float(w)) for i, w in enumerate(won))
    curve = (CurvePoint(0, 0.0, 1.0), CurvePoint(100, sum(won) / 40, 1.0, 2, 30))
    return CellResult("hard", method, seed, "p", outcomes, curve, Usage(100, 50, 30, 2, 0.5, 1.0))


def written(folder: Path, methods: tuple[str, ...] = tuple(METHODS)) -> str:
    (folder / "own.yaml").write_text(TEXT)
    plan = read_run_file(folder / "own.yaml", folder)
    write_comparison(plan, [cell(UNTRAINED, 0), *(cell(method, seed) for seed in range(3) for method in methods)])
    return str(folder / "own.json")


def test_each_other_method_is_judged_by_both_measures(tmp_path: Path):
    assert main([written(tmp_path), "--out", str(tmp_path / "table")]) == 0
    (regime,) = json.loads((tmp_path / "table.json").read_text())["regimes"]
    assert (regime["record"], regime["seeds"], regime["tokens"]) == ("own", [0, 1, 2], 100)
    ends = {name: found["end"] for name, found in regime["beside"].items()}
    assert ends["grpo"]["mean"] == pytest.approx(0.6, abs=0.05)
    assert {found["verdict"] for found in ends.values()} == {"better"}
    assert min(found["adjusted_p"] - found["p_value"] for found in ends.values()) == 0
    assert max(found["adjusted_p"] / found["p_value"] for found in ends.values()) == pytest.approx(2)
    assert all(found["not_lower_p"] < 0.01 for found in ends.values())
    assert regime["with_skill_change"]["mean"] == 0
    assert "| 3 | grpo | +6" in (tmp_path / "table.md").read_text()


def test_a_record_without_the_method_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    record = written(tmp_path, ("grpo", "skillc"))
    assert main([record]) == 2
    assert "there are grpo, skillc" in capsys.readouterr().err


def test_what_was_not_run_is_left_out_and_equal_methods_are_not_better(tmp_path: Path, capsys):
    assert main([written(tmp_path), "--method", "grpo", "--beside", "grpo", "ppo"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| [own]")]
    assert "| grpo | +0.0: inside the noise |" in line

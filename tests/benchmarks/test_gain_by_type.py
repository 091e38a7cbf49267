"""What a method gains, task type by task type, beside what its starting point could do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.gain_by_type import main
from skillc_lab.studies import UNTRAINED, CellResult, CurvePoint, TaskOutcome, Usage, read_run_file, write_comparison

TEXT = "starts: {hard: shipped-hard}\nmethods: [grpo, skillc]\nbudget_tokens: 100\nsteps: 4\nevaluate_every: 2\n"
WON = {UNTRAINED: {"pick": 10, "heat": 0}, "grpo": {"pick": 12, "heat": 1}, "skillc": {"pick": 12, "heat": 11}}


def cell(method: str, seed: int) -> CellResult:
    outcomes = tuple(
        TaskOutcome(f"{kind}{i:02d}", kind, i < 15, (i + seed) % 20 < wins, 1.0, 0.0)
        for kind, wins in WON[method].items()
        for i in range(20)
    )
    return CellResult("hard", method, seed, "p", outcomes, (CurvePoint(0, 0.0, 1.0),), Usage(100, 50, 30, 2, 0.5, 1.0))


def written(folder: Path, cells: list[CellResult]) -> str:
    (folder / "own.yaml").write_text(TEXT)
    write_comparison(read_run_file(folder / "own.yaml", folder), cells)
    return str(folder / "own.json")


def trained() -> list[CellResult]:
    return [cell(method, seed) for method in ("grpo", "skillc") for seed in range(3)]


def test_a_type_that_the_method_alone_solves_gains_and_the_others_do_not(tmp_path: Path):
    record = written(tmp_path, [cell(UNTRAINED, 0), *trained()])
    assert main([record, "--method", "skillc", "--out", str(tmp_path / "gains")]) == 0
    heat, pick = json.loads((tmp_path / "gains.json").read_text())["types"]
    assert (heat["task_type"], heat["tasks"], heat["seeds"]) == ("heat", 20, 3)
    assert (heat["without_before"], heat["with_before"], heat["mean"]) == pytest.approx((0.0, 0.75, 0.5))
    assert heat["interval"][0] > 0.2
    assert (pick["without_before"], pick["mean"], pick["interval"]) == (0.5, 0.0, None)
    assert "| heat | 20 | 3 | 0.0 | 75.0 | +50.0" in (tmp_path / "gains.md").read_text()
    assert (tmp_path / "gains.png").stat().st_size > 5000


@pytest.mark.parametrize("missing", [UNTRAINED, "skillc"])
def test_what_a_record_lacks_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], missing: str):
    cells = [each for each in (cell(UNTRAINED, 0), *trained()) if each.method != missing]
    assert main([written(tmp_path, cells), "--method", "skillc", "--out", str(tmp_path / "gains")]) == 2
    assert "needs cells of skillc, of grpo and of its starting point" in capsys.readouterr().err
    assert not list(tmp_path.glob("gains*"))

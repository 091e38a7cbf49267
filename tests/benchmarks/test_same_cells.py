from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.same_cells import main, page, same_cells
from skillc_lab.studies import CellResult, ComparisonRecord, read_record

RECORD = read_record(Path("docs/results/confirmation.json"))


def with_more_won(cell: CellResult, tasks: int) -> CellResult:
    """A cell in which so many failures without the skill are successes."""
    failed = [index for index, outcome in enumerate(cell.outcomes) if not outcome.won_without][:tasks]
    changed = [
        replace(outcome, won_without=True, score_without=1.0) if index in failed else outcome
        for index, outcome in enumerate(cell.outcomes)
    ]
    return replace(cell, outcomes=tuple(changed))


def test_a_record_does_not_differ_from_itself() -> None:
    found = same_cells(RECORD, RECORD)
    assert len(found["cells"]) == sum(bool(cell.curve) for cell in RECORD.results) == 30
    assert {name: mean["mean"] for name, mean in found["means"].items()} == {"area": 0.0, "without": 0.0, "with": 0.0}
    assert found["settings"] == {}


def test_differences_are_counted_by_task_and_averaged_over_the_common_cells() -> None:
    trained = [cell for cell in RECORD.results if cell.curve][:3]
    changed = [with_more_won(cell, more) for cell, more in zip(trained, (0, 3, 6), strict=True)]
    settings = {**RECORD.protocol["settings"], "share_prefixes": False}
    new = ComparisonRecord("new", {**RECORD.protocol, "settings": settings}, changed)
    found = same_cells(RECORD, new)
    assert [cell["tasks_differing"] for cell in found["cells"]] == [
        {"without": 0, "with": 0},
        {"without": 3, "with": 0},
        {"without": 6, "with": 0},
    ]
    assert found["means"]["without"]["mean"] == pytest.approx(3 / len(trained[0].outcomes))
    low, high = found["means"]["without"]["interval"]
    assert low < 0 < high
    assert found["settings"] == {"share_prefixes": [True, False]}
    assert "\n1 of the cells are equal in every task" in page(found)


def test_the_page_and_its_figures_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same = str(Path("docs/results/confirmation.json"))
    assert main([same, same, "--out", str(tmp_path / "both")]) == 0
    assert capsys.readouterr().out.strip() == (tmp_path / "both.md").read_text().strip()
    assert len(json.loads((tmp_path / "both.json").read_text())["cells"]) == 30
    assert "| hard | contrastive_relabelling | 3 | 59.0 -> 59.0 |" in (tmp_path / "both.md").read_text()


def test_records_of_other_tasks_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    shop = "docs/results/shop_confirmation.json"
    assert main(["docs/results/confirmation.json", shop]) == 2
    assert "different tasks or budgets" in capsys.readouterr().err
    assert main(["docs/results/screening.json", shop]) == 2
    assert "no trained cell in common" in capsys.readouterr().err

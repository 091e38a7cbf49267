from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.study_page import main, seed_table, study_tables
from skillc_lab.studies import read_record

RECORD = Path("docs/results/shop_hard.json")


def test_the_page_and_the_records_rows_are_renewed(tmp_path: Path) -> None:
    record, page = tmp_path / "shop.json", tmp_path / "shop.md"
    shutil.copy(RECORD, record)
    page.write_text("# Shop\n\n<!-- tables:start -->\nold\n<!-- tables:end -->\nend\n")
    assert main([str(record)]) == 0
    assert study_tables(read_record(RECORD)) in page.read_text()
    assert page.read_text().endswith("<!-- tables:end -->\nend\n")
    assert read_record(record).results == read_record(RECORD).results


def test_success_stands_by_seed_and_a_missing_cell_is_empty() -> None:
    lines = seed_table(read_record(RECORD), "hard").splitlines()
    assert lines[0] == "| without / with, by seed | 0 | 1 | 2 |"
    assert lines[2] == "| grpo | 62.5 / 62.5 | 54.9 / 53.5 | 0.7 / 85.4 |"
    assert lines[-1].endswith("|  |  |")


def test_a_page_without_marks_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(RECORD, tmp_path / "shop.json")
    (tmp_path / "shop.md").write_text("# Shop\n")
    assert main([str(tmp_path / "shop.json")]) == 2
    assert "tables:start" in capsys.readouterr().err
    assert (tmp_path / "shop.md").read_text() == "# Shop\n"

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.method_results import main, results_table
from skillc_lab.studies import read_record

RECORD = Path("docs/results/first_table.json")
RECORDS = [RECORD, RECORD.with_name("first_table_easy.json")]
ONE_SEED = [RECORD.with_name("memory.json"), RECORD.with_name("shop_methods.json")]


@pytest.fixture
def page(tmp_path: Path) -> Path:
    file = tmp_path / "methods.md"
    file.write_text("<!-- results:start -->\n<!-- results:end -->\n")
    return file


def test_a_row_per_method_with_the_figures_of_the_records_table(page: Path) -> None:
    assert main([str(RECORD), "--page", str(page)]) == 0
    record = read_record(RECORD)
    lines = {line.split("|")[1].strip(" `"): line for line in page.read_text().splitlines() if line.startswith("| `")}
    assert set(lines) == {row.method for start in record.starts for row in record.rows(start)}
    for start in record.starts:
        for row in record.rows(start):
            assert f"| {100 * row.without.mean:.1f}" in lines[row.method]
            assert row.against is None or row.against.verdict in lines[row.method]
    assert lines["grpo"].count("(baseline)") == len(record.starts)


def test_the_page_of_methods_shows_what_the_record_says() -> None:
    assert results_table([read_record(path) for path in RECORDS]) in Path("docs/methods.md").read_text()


@pytest.mark.parametrize("record", ONE_SEED, ids=lambda path: path.stem)
def test_the_page_of_methods_shows_what_the_smaller_records_say(record: Path) -> None:
    assert results_table([read_record(record)], with_skill=True) in Path("docs/methods.md").read_text()


def test_success_with_the_skill_gets_a_column_behind_that_without(page: Path) -> None:
    record = read_record(RECORD)
    assert main([str(RECORD), "--page", str(page), "--with-skill"]) == 0
    lines = {line.split("|")[1].strip(" `"): line.split("|") for line in page.read_text().splitlines() if "| `" in line}
    for row in record.rows(record.starts[0]):
        assert lines[row.method][2].split()[0] == f"{100 * row.without.mean:.1f}"
        assert lines[row.method][3].split()[0] == f"{100 * row.with_skill.mean:.1f}"


def test_another_block_of_a_page_is_renewed_alone(page: Path) -> None:
    page.write_text(page.read_text() + "<!-- other:start -->\n<!-- other:end -->\n")
    assert main([str(RECORD), "--page", str(page), "--block", "other"]) == 0
    first, _, other = page.read_text().partition("<!-- results:end -->")
    assert "grpo" not in first
    assert "`grpo`" in other


def test_records_of_different_runs_are_refused(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(RECORD), "docs/results/shop_hard.json", "--page", str(page)]) == 2
    assert "one world, budget and number of tasks" in capsys.readouterr().err


def test_a_missing_record_is_said(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nowhere.json", "--page", str(page)]) == 2
    assert "nowhere.json" in capsys.readouterr().err

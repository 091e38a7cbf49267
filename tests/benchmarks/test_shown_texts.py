"""Policies shown other texts: one table from a study's record and those of its replays."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.shown_texts import main
from skillc_lab.studies import UNTRAINED, CellResult, Changed, read_run_file, write_comparison
from tests.benchmarks.test_recipe_criteria import TEXT, cell


def fooled(found: CellResult) -> CellResult:
    """The same with every task lost that was shown a text."""
    return replace(found, outcomes=tuple(replace(each, won_with=False, score_with=0.0) for each in found.outcomes))


@pytest.fixture
def records(tmp_path: Path) -> list[str]:
    (tmp_path / "own.yaml").write_text(TEXT)
    plan = read_run_file(tmp_path / "own.yaml", tmp_path)
    cells = [cell(UNTRAINED, 0), *(cell("grpo", seed) for seed in range(3))]
    write_comparison(plan, cells)
    wrong = Changed(library="alfworld:wrong").plan(plan)
    wrong.folder.mkdir()
    write_comparison(wrong, list(map(fooled, cells)))
    return [str(tmp_path / "own.json"), str(wrong.folder / "own_alfworld.wrong.json")]


def test_each_text_has_a_line_with_what_came_before_and_after(records: list[str], tmp_path: Path):
    assert main([*records, "--out", str(tmp_path / "table")]) == 0
    page = (tmp_path / "table.md").read_text()
    assert "| the skill | 80.0 [65, 90] | 80.0 [" in page
    assert "| alfworld:wrong | 0.0 [0, 9] | 0.0" in page
    assert "contrastive_relabelling" not in page
    right, wrong = json.loads((tmp_path / "table.json").read_text())["starts"]["hard"]
    assert (right["shown"], wrong["shown"]) == ("the skill", "alfworld:wrong")
    assert right["after"]["grpo"]["without"] == wrong["after"]["grpo"]["without"]
    assert right["after"]["grpo"]["change"]["mean"] == 0


def test_records_of_other_tasks_are_refused(records: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    other = tmp_path / "other.json"
    values = json.loads(Path(records[1]).read_text())
    (values["panels"]["q"],) = values["panels"].values()
    for each in values["cells"]:
        each["panel_sha256"] = "q"
    other.write_text(json.dumps(values))
    assert main([records[0], str(other)]) == 2
    assert "2 panels" in capsys.readouterr().err

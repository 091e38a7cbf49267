from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.course_record import main
from tests.skillc_lab.report.synthetic_run import report, write_run

GIT = {"revision": "a" * 40, "changed": False}
CARD = {
    "parameters": 1000,
    "loss_held_out": [1.5, 0.25],
    "demonstrator_success": {},
    "recipe": {"episodes": 12},
    "versions": {"git": GIT},
}


def write(path: Path, values: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values))


@pytest.fixture
def course(tmp_path: Path) -> Path:
    folder = tmp_path / "course"
    write(folder / "start" / "policy_card.json", CARD)
    write_run(folder / "run", steps=12)
    for part, step in (("before", 0), ("after", 180)):
        write(folder / part / "report.json", report(step, seed=1).to_json())
    for part in ("before", "run", "after"):
        write(folder / part / "versions.json", {"git": GIT})
    return folder


def test_a_course_becomes_a_record_a_page_and_pictures(course: Path, tmp_path: Path) -> None:
    out = tmp_path / "results" / "tried"
    assert main([str(course), "--out", str(out)]) == 0
    record = json.loads(out.with_suffix(".json").read_text())
    before, after = (report(step, seed=1) for step in (0, 180))
    gained = after.to_json()["overall"]["sr_without"] - before.to_json()["overall"]["sr_without"]
    assert record["change"]["without"]["points"] == pytest.approx(100 * gained)
    assert len(record["evaluations"]["after"]["outcomes"]) == len(after.outcomes)
    assert record["versions"]["git"] == {"revisions": ["a" * 40], "clean": True}
    page = out.with_suffix(".md").read_text()
    assert f"{100 * gained:+.1f}" in page
    assert "1.50 before, 0.25 after" in page
    pictures = [line.split("(")[1].strip(")") for line in page.splitlines() if line.startswith("![")]
    assert len(pictures) == 2
    assert all((out.parent / picture).stat().st_size > 10_000 for picture in pictures)


def test_parts_of_two_revisions_are_refused(course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(course / "after" / "versions.json", {"git": {"revision": "b" * 40, "changed": False}})
    out = tmp_path / "tried"
    assert main([str(course), "--out", str(out)]) == 2
    assert "2 revisions" in capsys.readouterr().err
    assert not out.with_suffix(".json").exists()
    assert main([str(course), "--out", str(out), "--allow-changes"]) == 0


def test_a_course_that_is_not_finished_says_what_is_missing(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (course / "after" / "report.json").unlink()
    assert main([str(course), "--out", str(tmp_path / "tried")]) == 2
    assert "after" in capsys.readouterr().err

"""Figures and page of a run, from a simulated learner's records."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from synthetic_run import SPEEDS, episode, metrics, report, write_run

from skillc_gym.episodes import write_jsonl
from skillc_gym.errors import MissingDataError
from trainers.report.make import make_report
from trainers.report.records import RunRecords, Series, moving_mean
from trainers.report.transcripts import choose_tasks

pytest.importorskip("matplotlib", reason="needs the extra 'train'")
PNG = b"\x89PNG\r\n\x1a\n"


class Outline(HTMLParser):
    """Checks that tags close, and collects what the page refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sources: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def outline(page: Path) -> Outline:
    parsed = Outline()
    parsed.feed(page.read_text(encoding="utf-8"))
    assert parsed.open == []
    return parsed


def evaluate(folder: Path, step: int) -> None:
    folder.mkdir()
    paired = report(step, seed=1)
    paired.save(folder / "report.json")
    write_jsonl(folder / "transcripts.jsonl", paired.episodes)


def test_a_full_report(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", steps=60)
    evaluate(run / "before", 0)
    evaluate(run / "after", 60)
    made = make_report(run, title="A <run> & its report")
    assert set(made.figures) == {
        "overview",
        "success",
        "success_by_type",
        "gap",
        "gate",
        "active",
        "rollout_fraction",
        "diagnostics",
        "before_after",
    }
    for path in made.figures.values():
        assert path.read_bytes().startswith(PNG)
        assert path.stat().st_size > 5_000
    page = outline(made.page)
    assert page.sources
    assert all(source.startswith("data:image/png;base64,") for source in page.sources)
    assert "A <run> & its report" in page.text
    before, after = report(0, 1).overall, report(60, 1).overall
    assert f"{100 * before.sr_without:.1f} % → {100 * after.sr_without:.1f} %" in page.text
    assert "see a <b>bread 1</b>" in page.text
    for name in ("pick", "look", "clean", "heat", "cool", "pick2", "cut by the budget"):
        assert name in page.text


@pytest.mark.parametrize("preset", ["grpo", "no_pairing"])
def test_a_run_without_evaluations_or_with_no_skills(tmp_path: Path, preset: str) -> None:
    made = make_report(write_run(tmp_path / "run", preset, steps=20), out=tmp_path / "elsewhere")
    assert made.page == tmp_path / "elsewhere" / "index.html"
    assert "before_after" not in made.figures
    assert "no evaluation before and after" in outline(made.page).text


def test_an_interrupted_run_still_has_a_report(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    lines = [json.dumps(record) for record in metrics(steps=10)]
    (run / "metrics.jsonl").write_text("\n".join(lines[:4]) + '\n{"step": 4, "ev')
    assert RunRecords.read(run).last_step == 3
    assert "No type retired" in outline(make_report(run).page).text


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match=r"metrics\.jsonl"):
        make_report(tmp_path)
    run = write_run(tmp_path / "run", steps=5)
    with pytest.raises(MissingDataError, match=r"report\.json"):
        make_report(run, before=tmp_path / "nowhere")


def test_records_are_read_back_as_written() -> None:
    records = metrics(steps=60)
    run = RunRecords.of(list(reversed(records)), {"preset": "skillc", "steps": 60})
    assert run.task_types == tuple(SPEEDS)
    assert [r["step"] for r in run.train] == list(range(1, 61))
    assert run.validated("sr_with", "look_at_obj_in_light").steps == list(range(0, 61, 10))
    assert (run.panel_size(), run.panel_size("pick_two_obj_and_place")) == (144, 24)
    assert run.capacity == (6, 3, 0)
    retired = {kind for r in records if r["event"] == "validation" for kind in [e["type"] for e in r["retired"]]}
    assert set(run.retirements) == retired


def test_moving_means_look_back_over_steps_not_values() -> None:
    smooth = moving_mean(Series([1, 2, 10], [1.0, 3.0, 5.0]), window=3)
    assert smooth == Series([1, 2, 10], [1.0, 2.0, 5.0])


def test_the_most_telling_tasks_come_first_and_types_take_turns() -> None:
    kinds = {"a": "heat", "b": "heat", "c": "cool"}
    before = [episode(t, k, z, won=bool(z)) for t, k in kinds.items() for z in (1, 0)]
    after = [episode(t, k, z, won=t != "a" or bool(z)) for t, k in kinds.items() for z in (1, 0)]
    assert choose_tasks(before, after, 3) == ("b", "c", "a")
    assert choose_tasks([], after, 1) == ("b",)

"""Two methods demonstrated and compared."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the train extra")

from skillc_gym.errors import ConfigError, UnknownNameError
from skillc_lab.commands import demonstration
from skillc_lab.commands.demo import DemoConfig, describe
from skillc_lab.commands.demonstration import log_relay, run_demo_versus
from tests.skillc_lab.commands.small_demo import SMALL


@pytest.fixture
def config(tmp_path: Path) -> DemoConfig:
    return DemoConfig(
        out=tmp_path / "run", preset="contrastive_relabelling", steps=1, held_out_per_type=1, options=SMALL
    )


def test_lines_of_all_logs_come_whole_and_with_their_names(tmp_path):
    first, second, said = tmp_path / "a.log", tmp_path / "b.log", []
    first.write_text("of an earlier run\n")
    with log_relay({"a": first, "longer": second}, said.append, every=3600) as pass_on:
        with first.open("a") as log:
            log.write("one\ntw")
        pass_on()
        assert said == ["a       one"]
        with first.open("a") as log:
            log.write("o\n")
        second.write_text("three\n")
    assert said == ["a       one", "a       two", "longer  three"]


def test_mistakes_are_found_before_a_process_starts(config, monkeypatch):
    monkeypatch.setattr(demonstration, "run_jobs", lambda *_: pytest.fail("a process was started"))
    with pytest.raises(UnknownNameError, match="grop"):
        run_demo_versus(config, "grop")


def test_a_run_that_failed_is_named_with_its_log(config, monkeypatch):
    monkeypatch.setattr(
        demonstration, "run_jobs", lambda work, jobs, workers: iter([(job, False) for job in jobs.values()])
    )
    with pytest.raises(ConfigError, match=r"contrastive_relabelling and grpo failed; .*grpo\.log says why"):
        run_demo_versus(config, "grpo")


@pytest.mark.slow
def test_both_are_trained_and_shown_on_one_page(config, monkeypatch):
    begun: list[str] = []

    def here(work: Any, jobs: Mapping[Path, DemoConfig], workers: int) -> Iterator[tuple[DemoConfig, bool]]:
        for path, job in jobs.items():
            begun.append(job.preset)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"step of {job.preset}\n")
            work(job)
            yield job, True
            if stop_after == job.preset:
                raise KeyboardInterrupt

    monkeypatch.setattr(demonstration, "run_jobs", here)
    stop_after, said = "contrastive_relabelling", []
    with pytest.raises(KeyboardInterrupt):
        run_demo_versus(config, "grpo", say=said.append)
    assert said == ["contrastive_relabelling  step of contrastive_relabelling"]
    stop_after = ""
    summary = run_demo_versus(config, "grpo")
    # What was finished is not run again.
    assert begun == ["contrastive_relabelling", "grpo"]
    assert json.loads((config.out / "summary.json").read_text()) == json.loads(json.dumps(summary))
    assert (summary["preset"], summary["beside"]["preset"]) == ("contrastive_relabelling", "grpo")
    arms = ("sr_with_before", "sr_without_before", "panel_sha256", "steps", "seed")
    assert [summary[name] for name in arms] == [summary["beside"][name] for name in arms]
    points = 100 * (summary["sr_without_after"] - summary["beside"]["sr_without_after"])
    assert summary["differences"]["without"]["points"] == pytest.approx(points)
    page = Path(summary["page"]).read_text()
    assert "contrastive relabelling minus GRPO" in page
    assert Path(summary["pictures"]["beside"]).stat().st_size > 1000
    assert "contrastive_relabelling minus grpo, without skills" in describe(summary)

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the train extra")

from benchmarks import revision
from benchmarks.demo_record import one_panel
from benchmarks.record_demos import main
from benchmarks.revision import one_revision, require_clean, write_record
from skillc_gym.errors import ConfigError
from trainers.tracking import revision as trees


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def copied(run: Path, preset: str) -> None:
    """Leaves a finished run of another method beside one, with the same figures."""
    other = run.with_name(run.name.replace("skillc", preset))
    shutil.copytree(run, other)
    for name in ("summary.json", "demo.json"):
        (other / name).write_text(json.dumps({**read(other / name), "preset": preset}))


@pytest.mark.slow
def test_a_record_has_the_figures_the_command_and_the_pictures(tmp_path):
    words = ["--seeds", "0", "--steps", "1", "--held-out", "1", "--allow-changes"]
    words += ["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "found")]
    assert main([*words, "--presets", "skillc"]) == 0
    copied(tmp_path / "runs" / "skillc-seed0", "grpo")
    summary = tmp_path / "runs" / "skillc-seed0" / "summary.json"
    finished = summary.stat().st_mtime_ns
    assert main([*words, "--presets", "skillc", "grpo", "--parallel", "2"]) == 0
    assert summary.stat().st_mtime_ns == finished
    record = read(tmp_path / "found.json")
    run, other = record["runs"]
    assert (run["finished"], run["preset"], other["preset"]) == (True, "skillc", "grpo")
    assert [found["step"] for found in run["validations"]] == [0]
    assert run["splits"]["valid_unseen"]["games"] == 6
    assert len(record["panels"]["valid_unseen"]["tasks"]) == 6
    won = run["outcomes"]["valid_unseen"]["after"]["without"]
    assert len(won) == 6
    assert won.count("1") / 6 == pytest.approx(run["sr_without_after"])
    assert [(entry["second"], entry["points"]) for entry in record["differences"]] == [("grpo", 0.0)]
    assert len(record["revisions"]) == 1
    assert str(tmp_path) not in json.dumps(record)
    text = (tmp_path / "found.md").read_text(encoding="utf-8")
    assert "--presets skillc grpo --seeds 0 --steps 1 --held-out 1" in text
    assert "(found/methods.png)" in text
    for name in ("overview", "methods"):
        assert (tmp_path / "found" / f"{name}.png").exists()


def test_an_unknown_method_is_named(tmp_path, capsys):
    words = ["--presets", "skilc", "--allow-changes", "--runs", str(tmp_path), "--out", str(tmp_path / "found")]
    assert main(words) == 2
    assert "skillc" in capsys.readouterr().err


def test_a_changed_tree_is_refused(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(trees, "provenance", lambda: {"git": {"revision": "a" * 40, "changed": True}})
    assert main(["--runs", str(tmp_path), "--out", str(tmp_path / "found")]) == 2
    assert "the working tree has changes" in capsys.readouterr().err
    require_clean(allow_changes=True)
    monkeypatch.setattr(trees, "provenance", lambda: {"git": {"revision": "a" * 40, "changed": False}})
    require_clean()


def test_a_record_is_of_one_clean_revision():
    clean, other = ({"revision": letter * 40, "changed": False} for letter in "ab")
    assert one_revision([clean, clean]) == {"revisions": ["a" * 40], "clean": True}
    for bad in ([clean, other], [{**clean, "changed": True}], [None]):
        with pytest.raises(ConfigError, match="one clean revision"):
            one_revision(bad)
        assert not one_revision(bad, allow_changes=True)["clean"]


def test_every_record_names_its_revision(tmp_path, monkeypatch):
    monkeypatch.setattr(revision, "provenance", lambda: {"git": {"revision": "a" * 40, "changed": True}})
    write_record(tmp_path / "found.json", {"figure": 1})
    assert read(tmp_path / "found.json") == {"figure": 1, "git": {"revision": "a" * 40, "changed": True}}


def test_a_record_is_of_one_panel():
    def run(held_out: str, training: str) -> dict[str, Any]:
        return {"panel_sha256_of_training": training, "splits": {"test": {"panel_sha256": held_out}}}

    one_panel([run("a", "t"), run("a", "t")])
    with pytest.raises(ConfigError, match="2 versions of the panel of test"):
        one_panel([run("a", "t"), run("b", "t")])
    with pytest.raises(ConfigError, match="the curriculum's panel"):
        one_panel([run("a", "t"), run("a", "u")])

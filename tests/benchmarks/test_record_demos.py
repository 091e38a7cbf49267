from __future__ import annotations

import json

import pytest

pytest.importorskip("trl", reason="needs the train extra")

from benchmarks.record_demos import main


@pytest.mark.slow
def test_a_record_has_the_figures_the_command_and_the_pictures(tmp_path, monkeypatch):
    words = ["--seeds", "0", "--presets", "skillc", "--steps", "1", "--held-out", "1"]
    words += ["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "found")]
    assert main(words) == 0
    record = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    (run,) = record["runs"]
    assert run["finished"] is True
    assert [found["step"] for found in run["validations"]] == [0]
    assert run["splits"]["valid_unseen"]["games"] == 6
    assert str(tmp_path) not in json.dumps(record)
    text = (tmp_path / "found.md").read_text(encoding="utf-8")
    assert "--presets skillc --seeds 0 --steps 1 --held-out 1" in text
    assert (tmp_path / "found" / "overview.png").exists()

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a finished run is run again")

    monkeypatch.setattr("benchmarks.record_demos.run_demo", never)
    assert main(words) == 0


def test_an_unknown_method_is_named(tmp_path, capsys):
    assert main(["--presets", "skilc", "--runs", str(tmp_path), "--out", str(tmp_path / "found")]) == 2
    assert "skillc" in capsys.readouterr().err

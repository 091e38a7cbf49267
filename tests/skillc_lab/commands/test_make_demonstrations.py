from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillc_lab.cli.main import main as skillc


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("expert", ["explorer", "planner"])
def test_experts_win_and_every_task_is_shown_in_both_conditions(tmp_path, expert):
    out = tmp_path / "demos.jsonl"
    assert skillc(["tools", "make-demonstrations", "--out", str(out), "--count", "6", "--expert", expert]) == 0
    found = lines(out)
    assert [line["condition"] for line in found] == [1, 0] * 6
    assert all(line["won"] for line in found)
    for with_skill, without in zip(found[::2], found[1::2], strict=True):
        assert with_skill["task_id"] == without["task_id"]
        assert "skill" in with_skill["messages"][0]["content"].lower()
        assert with_skill["messages"][0]["content"] != without["messages"][0]["content"]
        roles = [message["role"] for message in without["messages"]]
        assert roles == ["system", *["user", "assistant"] * (len(roles) // 2)]


def test_datasets_loads_the_messages_column(tmp_path):
    datasets = pytest.importorskip("datasets", reason="needs the train extra")
    out = tmp_path / "demos.jsonl"
    skillc(["tools", "make-demonstrations", "--out", str(out), "--count", "2", "--skills", "off", "--chat", "compact"])
    loaded = datasets.load_dataset("json", data_files=str(out), cache_dir=str(tmp_path / "cache"), split="train")
    assert loaded.num_rows == 2
    assert loaded[0]["messages"][0]["role"] == "system"


def test_a_file_is_not_overwritten_and_bad_names_are_named(tmp_path, capsys):
    out = tmp_path / "demos.jsonl"
    out.write_text("mine")
    assert skillc(["tools", "make-demonstrations", "--out", str(out)]) == 2
    assert "exists" in capsys.readouterr().err
    assert out.read_text() == "mine"
    assert skillc(["tools", "make-demonstrations", "--out", str(tmp_path / "other"), "--split", "tests"]) == 2
    assert "split" in capsys.readouterr().err

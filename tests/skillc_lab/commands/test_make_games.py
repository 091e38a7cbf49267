"""Commands that write generated games, in upstream's layout, and demonstrations of experts; clear refusals."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from skillc_gym.envs.alfworld.data.games import open_games
from skillc_gym.envs.alfworld.generate import GeneratedGames
from skillc_gym.envs.alfworld.tasks import SPLITS
from skillc_lab.cli.main import main as skillc

SMALL = ["--games-per-type", "2", "--seed", "3"]


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "games"
    assert skillc(["tools", "make-games", "--out", str(folder), *SMALL]) == 0
    return folder


def test_the_layout_is_upstreams(written: Path):
    files = [path.relative_to(written).parts for path in written.rglob("*") if path.is_file()]
    assert len(files) == 4 * 6 * 2
    assert {parts[0] for parts in files} == {"json_2.1.1"}
    assert {parts[1] for parts in files} == set(SPLITS)
    assert {len(parts) for parts in files} == {5}
    assert {parts[-1] for parts in files} == {"game.tw-pddl"}


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("inner", ["", "json_2.1.1"])
def test_the_same_games_are_read_again(written: Path, split: str, inner: str):
    read, made = open_games(written / inner, split=split), GeneratedGames(split, games_per_type=2, seed=3)
    assert read.task_ids == made.task_ids
    assert [read.raw(name) for name in read.task_ids] == [made.raw(name) for name in made.task_ids]


def test_choices_are_kept_and_progress_goes_to_stderr(tmp_path: Path, capsys):
    words = ["--out", str(tmp_path), "--splits", "valid_seen", "--task-types", "heat", "pick2", "--size", "medium"]
    assert skillc(["tools", "make-games", *words, "--games-per-type", "1"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == {"valid_seen": {"games": 2}}
    assert said.err.split() == ["valid_seen", "2/2"]
    made = GeneratedGames("valid_seen", ["heat", "pick2"], games_per_type=1, size="medium")
    assert open_games(tmp_path, split="valid_seen").task_ids == made.task_ids


def test_difficulty_mix_and_knobs_are_kept(tmp_path: Path, capsys):
    words = ["--out", str(tmp_path), "--splits", "train", "--games-per-type", "2", "--prove"]
    knobs = ["--difficulty", "0", "1", "--receptacles", "6", "8", "--objects", "9", "--mix", "heat=1", "pick2=1"]
    assert skillc(["tools", "make-games", *words, *knobs]) == 0
    assert json.loads(capsys.readouterr().out) == {"train": {"games": 24, "won_by_planner": 24}}
    made = GeneratedGames(
        "train", games_per_type=2, difficulty=[0, 1], receptacles=[6, 8], objects=9, mix={"heat": 1, "pick2": 1}
    )
    assert open_games(tmp_path, split="train").task_ids == made.task_ids


@pytest.mark.slow
@pytest.mark.upstream
@pytest.mark.skipif(importlib.util.find_spec("fast_downward") is None, reason="upstream is not installed")
def test_a_sample_is_won_in_upstream(tmp_path: Path, capsys):
    words = ["--splits", "valid_seen", "--games-per-type", "1", "--size", "real", "--mix", "real"]
    assert skillc(["tools", "make-games", "--out", str(tmp_path), *words, "--prove-upstream", "2"]) == 0
    assert json.loads(capsys.readouterr().out) == {"valid_seen": {"games": 6, "won_in_upstream": 2}}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--difficulty", "3"], "difficulty is a number between 0 and 1"),
        (["--mix", "pick=many", "heat=1"], "--mix takes 'real' or weights"),
        (["--splits", "valid_sen"], "Did you mean 'valid_seen'"),
        (["--task-types", "warm"], "task type 'warm'"),
    ],
)
def test_bad_choices_are_named_and_nothing_is_written(tmp_path: Path, capsys, words: list[str], message: str):
    out = tmp_path / "games"
    assert skillc(["tools", "make-games", "--out", str(out), *words]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_a_folder_in_use_is_refused_and_left_alone(tmp_path: Path, capsys):
    (tmp_path / "notes.txt").write_text("mine")
    assert skillc(["tools", "make-games", "--out", str(tmp_path), *SMALL]) == 2
    assert "is not an empty folder; name a new folder" in capsys.readouterr().err
    assert skillc(["tools", "make-games", "--out", str(tmp_path / "notes.txt"), *SMALL]) == 2
    assert skillc(["tools", "make-games", "--out", str(tmp_path / "notes.txt" / "below"), *SMALL]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


# Demonstrations -------------------------------------------------------------------------------------------------------


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

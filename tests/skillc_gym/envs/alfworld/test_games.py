from __future__ import annotations

import json
import shutil
import tarfile
import zipfile

import pytest

from skillc_gym.envs.alfworld.data.game_set import LOADED_GAMES, FileGames
from skillc_gym.envs.alfworld.data.games import open_games
from skillc_gym.envs.alfworld.data.sources import open_source
from skillc_gym.envs.alfworld.tasks import TASK_TYPES
from skillc_gym.errors import MissingDataError, UnknownNameError


@pytest.fixture(params=["tar.xz", "tar.gz", "tar", "zip"])
def archive(request, folder, tmp_path):
    path = tmp_path / f"games.{request.param}"
    files = sorted(folder.rglob("*.tw-pddl"), reverse=True)
    if request.param == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
            for file in files:
                zipped.write(file, file.relative_to(folder))
    else:
        with tarfile.open(path, f"w:{request.param[4:]}") as tar:
            for file in files:
                tar.add(file, file.relative_to(folder))
    return path


def copied(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "copy")


def test_a_folder_lists_what_upstream_would_play_in_sorted_order(folder):
    games = open_games(folder, split="valid_seen")
    assert games.task_ids == tuple(sorted(games.task_ids))
    assert len(games.task_ids) == len(TASK_TYPES)
    assert {games.task_type(task_id) for task_id in games.task_ids} == set(TASK_TYPES)
    assert not any("Sliced" in task_id or "movable" in task_id for task_id in games.task_ids)


def test_an_archive_holds_what_the_folder_holds(folder, archive):
    for split in ("valid_seen", "valid_unseen"):
        ours, theirs = open_games(archive, split=split), open_games(folder, split=split)
        assert ours.task_ids == theirs.task_ids
        assert ours.manifest_sha256 == theirs.manifest_sha256
        for task_id in ours.task_ids:
            assert ours.raw(task_id) == theirs.raw(task_id)
            assert ours.load(task_id).commands == theirs.load(task_id).commands


def test_the_folder_json_2_1_1_itself_will_do(folder):
    inner = open_games(folder / "json_2.1.1", split="valid_seen")
    assert inner.manifest_sha256 == open_games(folder, split="valid_seen").manifest_sha256


def test_the_same_arguments_give_the_same_games(folder):
    games = open_games(folder, split="valid_seen", task_types=["heat", "pick"])
    assert open_games(str(folder), split="valid_seen", task_types=[TASK_TYPES[0], TASK_TYPES[3]]) is games
    assert games.load(games.task_ids[0]) is games.load(games.task_ids[0])
    assert len(games.task_ids) == 2


def test_the_manifest_tells_content_from_content(folder, tmp_path):
    copy = copied(folder, tmp_path)
    before = open_games(folder, split="valid_seen").manifest_sha256
    file = next(
        file for file in sorted(copy.rglob("*.tw-pddl")) if "Cabinet-0" in str(file) and "valid_seen" in str(file)
    )
    raw = json.loads(file.read_text())
    file.write_text(json.dumps({**raw, "walkthrough": ["look"]}))
    assert open_games(copy, split="valid_seen").manifest_sha256 != before


def test_only_so_many_games_stay_loaded(folder, monkeypatch):
    monkeypatch.setattr("skillc_gym.envs.alfworld.data.game_set.LOADED_GAMES", 2)
    games = FileGames(open_source(folder, "valid_unseen"))
    loaded = [games.load(task_id) for task_id in games.task_ids[:3]]
    assert games.load(games.task_ids[2]) is loaded[2]
    assert games.load(games.task_ids[0]) is not loaded[0]
    assert LOADED_GAMES >= 128


def test_unknown_names_are_named(folder):
    games = open_games(folder, split="valid_seen")
    with pytest.raises(UnknownNameError, match=r"Unknown split 'valid_sen'.*valid_seen"):
        open_games(folder, split="valid_sen")
    with pytest.raises(UnknownNameError, match="Unknown task type 'toast'"):
        open_games(folder, split="valid_seen", task_types=["toast"])
    with pytest.raises(UnknownNameError, match="Unknown task id"):
        games.load(games.task_ids[0] + "x")
    with pytest.raises(UnknownNameError, match="Unknown task id"):
        games.raw("../../etc/passwd")


def test_missing_data_says_where_it_looked_and_what_to_do(folder, tmp_path, monkeypatch):
    with pytest.raises(MissingDataError, match=r"nowhere.*alfworld-download.*data='generated'"):
        open_games(tmp_path / "nowhere", split="valid_seen")
    with pytest.raises(MissingDataError, match="No folder 'train'"):
        open_games(folder, split="train")
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "gone"))
    with pytest.raises(MissingDataError, match=r"ALFWORLD_DATA=.*gone"):
        open_games(split="valid_seen")
    monkeypatch.delenv("ALFWORLD_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(MissingDataError, match=r"ALFWORLD_DATA is not set.*\.cache/alfworld"):
        open_games(split="valid_seen")


def test_the_variable_and_the_cache_folder_are_found(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("ALFWORLD_DATA", str(folder))
    assert open_games(split="valid_seen").task_ids
    monkeypatch.delenv("ALFWORLD_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    shutil.copytree(folder, tmp_path / ".cache" / "alfworld")
    assert open_games(split="valid_seen").task_ids


def test_an_archive_without_the_split_is_named(archive):
    with pytest.raises(MissingDataError, match="no game of the split 'train'"):
        open_games(archive, split="train")

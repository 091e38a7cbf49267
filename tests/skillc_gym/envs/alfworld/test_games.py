import shutil
from pathlib import Path

import pytest
from odd_houses import replaced, write_game

from skillc_gym.envs.alfworld.data import sources
from skillc_gym.envs.alfworld.data.game_set import FileGames, manifest_of, require_official
from skillc_gym.envs.alfworld.data.games import open_games
from skillc_gym.envs.alfworld.data.sources import open_source
from skillc_gym.envs.alfworld.env import ALFWorldEnv
from skillc_gym.envs.alfworld.tasks import TASK_TYPES, task_type_of
from skillc_gym.errors import InvalidGameError, MissingDataError, UnknownNameError


@pytest.fixture(params=["xztar", "gztar", "tar", "zip"])
def archive(request, folder, tmp_path):
    return Path(shutil.make_archive(str(tmp_path / "games"), request.param, folder, "json_2.1.1"))


def test_a_folder_lists_what_upstream_would_play_in_sorted_order(folder):
    games = open_games(folder / "json_2.1.1", split="valid_seen")
    assert games.task_ids == tuple(sorted(games.task_ids))
    assert games.manifest_sha256 == open_games(folder, split="valid_seen").manifest_sha256
    assert sorted(map(task_type_of, games.task_ids)) == sorted(TASK_TYPES)
    assert not any("Sliced" in task_id or "movable" in task_id for task_id in games.task_ids)


def test_an_archive_holds_what_the_folder_holds(folder, archive):
    for split in ("valid_seen", "valid_unseen"):
        ours, theirs = open_games(archive, split=split), open_games(folder, split=split)
        assert ours.task_ids == theirs.task_ids
        assert ours.manifest_sha256 == theirs.manifest_sha256
        for task_id in ours.task_ids:
            assert ours.raw(task_id) == theirs.raw(task_id)
            assert ours.load(task_id).commands == theirs.load(task_id).commands
    with pytest.raises(MissingDataError, match="no game of the split 'train'"):
        open_games(archive, split="train")


def test_the_same_arguments_give_the_same_games(folder):
    games = open_games(folder, split="valid_seen", task_types=["heat", "pick"])
    assert open_games(str(folder), split="valid_seen", task_types=[TASK_TYPES[0], "pick", TASK_TYPES[3]]) is games
    assert games.load(games.task_ids[0]) is games.load(games.task_ids[0])
    assert len(games.task_ids) == 2


def test_only_so_many_games_stay_loaded(folder, monkeypatch):
    monkeypatch.setattr("skillc_gym.envs.alfworld.data.game_set.LOADED_GAMES", 2)
    games = FileGames(open_source(folder, "valid_unseen"))
    loaded = [games.load(task_id) for task_id in games.task_ids[:3]]
    assert games.load(games.task_ids[2]) is loaded[2]
    assert games.load(games.task_ids[0]) is not loaded[0]


def test_a_game_that_was_written_again_is_played_as_it_is(template, tmp_path):
    task_id = "valid_seen/pick_and_place_simple-Mug-None-Cabinet-1/trial_T0"
    write_game(tmp_path, task_id, template)
    games = open_games(tmp_path, split="valid_seen")
    before = games.load(task_id)
    assert games.load(task_id) is before
    env = ALFWorldEnv(data=tmp_path, split="valid_seen")
    env.reset(options={"task_id": task_id})
    shutil.rmtree(tmp_path / "json_2.1.1")
    write_game(tmp_path, task_id, replaced("grammar", before.task, "Your task is to: sing aloud.")(template))
    assert games.load(task_id).goal == "sing aloud."
    assert env.reset(options={"task_id": task_id})[1]["goal"] == "sing aloud."
    (tmp_path / "json_2.1.1" / task_id / "game.tw-pddl").unlink()
    with pytest.raises(InvalidGameError):
        games.load(task_id)


def test_unknown_names_are_named(folder):
    games = open_games(folder, split="valid_seen")
    with pytest.raises(UnknownNameError, match=r"Unknown split 'valid_sen'.*valid_seen"):
        open_games(folder, split="valid_sen")
    with pytest.raises(UnknownNameError, match="Unknown task id"):
        games.raw("../../etc/passwd")
    for names in (["fry"], "fry", [], [3], 3):
        with pytest.raises(UnknownNameError, match="Unknown task type"):
            open_games(folder, split="valid_seen", task_types=names)


def test_missing_data_says_where_it_looked_and_what_to_do(folder, tmp_path, monkeypatch):
    with pytest.raises(MissingDataError, match=r"nowhere.*alfworld-download.*data='generated'"):
        open_games(tmp_path / "nowhere", split="valid_seen")
    for unreadable in ("~nosuchuser/games", "a" * 5000):
        with pytest.raises(MissingDataError, match="no such file or folder"):
            open_games(unreadable)
    with pytest.raises(MissingDataError, match="No folder 'train'"):
        open_games(folder, split="train")
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "gone"))
    with pytest.raises(MissingDataError, match=r"ALFWORLD_DATA=.*gone"):
        open_games(split="valid_seen")
    monkeypatch.setenv("ALFWORLD_DATA", str(folder))
    assert open_games(split="valid_seen").task_ids
    monkeypatch.delenv("ALFWORLD_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(MissingDataError, match=r"ALFWORLD_DATA is not set.*\.cache/alfworld"):
        open_games(split="valid_seen")
    shutil.copytree(folder, tmp_path / ".cache" / "alfworld")
    for unset in (None, ""):  # a shell's "$ALFWORLD_DATA" gives the latter
        assert open_games(unset, split="valid_seen").task_ids


def test_generated_games_are_of_the_types_asked_for_have_a_manifest_and_are_not_alfworlds():
    given = {"data": "generated", "split": "valid_seen", "generator": {"games_per_type": 2}}
    games = open_games(**given)
    for asked, of_type in (("heat", TASK_TYPES[3:4]), (None, TASK_TYPES)):
        found = open_games(task_types=asked, **given).task_ids
        assert sorted(map(task_type_of, found)) == sorted(2 * of_type)
        assert all(task_id.startswith("valid_seen/") for task_id in found)
    manifest = manifest_of(games)
    assert (manifest.tasks, sum(manifest.by_type.values())) == (12, 12)
    with pytest.raises(InvalidGameError, match=r"12 tasks.*where 140 tasks"):
        require_official(games)


def test_a_set_that_was_opened_follows_what_is_fetched_later(folder, tmp_path):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    whole = open_games(tmp_path, split="valid_seen")
    assert open_games(tmp_path, split="valid_seen") is whole
    one = tmp_path / "json_2.1.1" / whole.task_ids[0]
    shutil.move(one.parent, tmp_path / "away")
    partly = open_games(tmp_path, split="valid_seen")
    assert partly.task_ids == whole.task_ids[1:]
    shutil.move(tmp_path / "away", one.parent)
    again = open_games(tmp_path, split="valid_seen")
    assert again.task_ids == whole.task_ids
    assert again.manifest_sha256 == open_games(folder, split="valid_seen").manifest_sha256
    before = again.manifest_sha256
    (one / "game.tw-pddl").write_bytes((one / "game.tw-pddl").read_bytes() + b"\n")
    assert again.manifest_sha256 != before


def test_games_that_are_still_being_unpacked_are_found_when_they_are_there(folder, tmp_path):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    whole = open_games(folder, split="valid_seen").task_ids
    last = tmp_path / "json_2.1.1" / whole[-1] / "game.tw-pddl"
    content = last.read_bytes()
    last.unlink()  # its folder is there, as while an archive is unpacked over another
    assert open_games(tmp_path, split="valid_seen").task_ids == whole[:-1]
    last.write_bytes(content)
    assert open_games(tmp_path, split="valid_seen").task_ids == whole
    trial, opened = last.parent, open_games(folder, split="valid_seen")
    shutil.move(trial, tmp_path / "away")
    assert open_games(tmp_path, split="valid_seen").task_ids == whole[:-1]
    shutil.move(tmp_path / "away", trial)
    assert open_games(tmp_path, split="valid_seen").task_ids == whole
    assert open_games(folder, split="valid_seen") is opened


def test_a_file_that_was_half_written_or_is_written_again_is_judged_anew(folder, tmp_path):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    whole = open_games(folder, split="valid_seen").task_ids
    last = tmp_path / "json_2.1.1" / whole[-1] / "game.tw-pddl"
    content = last.read_bytes()
    lost = content.replace(b'"solvable": true', b'"solvable": false')
    assert lost != content
    for written, found in ((content[:500], whole), (lost, whole[:-1]), (content, whole)):
        last.write_bytes(written)
        assert open_games(tmp_path, split="valid_seen").task_ids == found


def test_a_file_that_is_finished_while_others_are_judged_is_judged_again(folder, tmp_path, monkeypatch):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    place = tmp_path / "json_2.1.1" / open_games(folder, split="valid_seen").task_ids[0] / "game.tw-pddl"
    content = place.read_bytes()
    place.write_bytes(content[:500])
    judge = sources._solvable_file

    def judged(path):
        found = judge(path)
        if path == place:
            place.write_bytes(content)
        return found

    monkeypatch.setattr(sources, "_solvable_file", judged)
    assert sources.FolderSource(tmp_path, "valid_seen").has_grown()


def test_games_of_some_types_are_not_called_foreign(alfworld_data):
    with pytest.raises(InvalidGameError, match=r"types heat of the split 'valid_seen'.*without task_types"):
        require_official(open_games(alfworld_data, split="valid_seen", task_types="heat"))


@pytest.mark.parametrize("split", ["valid_seen", "valid_unseen", "valid_train", "train"])
def test_real_splits_are_whole(alfworld_data, split):
    assert require_official(open_games(alfworld_data, split=split)).split == split


def test_a_task_id_or_folder_tells_its_type():
    folder = "pick_heat_then_place_in_recep-Mug-None-Desk-1"
    assert task_type_of(folder) == task_type_of(f"valid_seen/{folder}/trial_1") == TASK_TYPES[3]
    with pytest.raises(UnknownNameError, match="bake"):
        task_type_of("train/bake-Mug-None-Desk-1/trial_1")

from __future__ import annotations

import pytest

from skillc_gym.envs.alfworld.data.games import open_games
from skillc_gym.envs.alfworld.data.manifest import manifest_of, official_manifests, require_official
from skillc_gym.errors import InvalidGameError


def test_generated_games_have_a_manifest_and_are_not_alfworlds():
    games = open_games("generated", split="valid_seen", generator={"games_per_type": 2})
    found = manifest_of(games)
    assert (found.tasks, sum(found.by_type.values())) == (12, 12)
    assert not found.official
    with pytest.raises(InvalidGameError, match=r"12 tasks.*where 140 tasks"):
        require_official(games)


def test_another_seed_gives_another_manifest_and_the_same_one_the_same():
    first, again, other = (
        manifest_of(open_games("generated", generator={"games_per_type": 1, "seed": seed})) for seed in (0, 0, 1)
    )
    assert first == again
    assert first.sha256 != other.sha256


def test_the_counts_are_alfworlds():
    counts = {split: known.tasks for split, known in official_manifests().items()}
    assert counts == {"train": 3553, "valid_seen": 140, "valid_unseen": 134, "valid_train": 200}


@pytest.mark.parametrize("split", ["valid_seen", "valid_unseen", "valid_train", "train"])
def test_real_splits_are_whole(alfworld_data, split):
    assert require_official(open_games(alfworld_data, split=split)).official


def test_real_splits_share_no_game_and_unseen_rooms_are_unseen(alfworld_data):
    splits = {
        split: open_games(alfworld_data, split=split).task_ids
        for split in ("train", "valid_seen", "valid_unseen", "valid_train")
    }
    trials = {split: {task_id.split("/", 1)[1] for task_id in ids} for split, ids in splits.items()}
    scenes = {split: {name.split("/")[0].rsplit("-", 1)[1] for name in names} for split, names in trials.items()}
    for split, names in trials.items():
        for other, others in trials.items():
            assert split == other or "valid_train" in (split, other) or not names & others
    assert not scenes["valid_unseen"] & scenes["train"]
    assert scenes["valid_seen"] <= scenes["train"]
    assert trials["valid_train"] <= trials["train"] or not trials["valid_train"] & trials["train"]

"""Generated games: deterministic, disjoint, solvable, and clear about options that make no sense."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from typing import Any

import pytest
from odd_houses import generate_game

from benchmarks.parity_alfworld import compare
from skillc_gym.envs.alfworld.data.games import open_games
from skillc_gym.envs.alfworld.generate import GeneratedGames, proved_by_planner
from skillc_gym.envs.alfworld.generate.games import GameSpec
from skillc_gym.envs.alfworld.generate.knobs import SIZES
from skillc_gym.envs.alfworld.tasks import SHORT_NAMES, SPLITS
from skillc_gym.errors import ConfigError, InvalidGameError, UnknownNameError

KINDS = tuple(SHORT_NAMES.values())


def scene(task_id: str) -> int:
    return int(task_id.split("/")[1].rsplit("-", 1)[1])


PROGRAM = """
from skillc_gym.envs.alfworld.generate import GeneratedGames
from skillc_gym.envs.alfworld.tasks import SPLITS
print([GeneratedGames(split, games_per_type=2, size="real").manifest_sha256 for split in SPLITS])
"""


def test_another_process_generates_the_same():
    env = {**os.environ, "PYTHONHASHSEED": "4242"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True)
    here = [GeneratedGames(split, games_per_type=2, size="real").manifest_sha256 for split in SPLITS]
    assert done.stdout == f"{here}\n"


@pytest.mark.parametrize(
    ("size", "scenes", "split", "expected"),
    [
        ("small", 25, "train", "509531df65a94cf8e5899435d86e9c7dcefe46cc3ea5c899527c57489894f7b4"),
        ("small", 4, "valid_seen", "098e2c58fda6349d460ce469cc53ce9b5b2deda30745c620706f151056f198c1"),
        ("medium", 25, "valid_unseen", "e0cbceb71f9079ad6dbc1ff2e62417a2dd2b3aac2b73643705466c24d447c38f"),
        ("large", 25, "train", "0d94c15ff81558c960477cbccc0e0dd1f82cc532c5181beb984734b926fc3c02"),
    ],
)
def test_games_that_policies_were_trained_on_stay_as_they_are(size: str, scenes: int, split: str, expected: str):
    games = GeneratedGames(split, games_per_type=6, size=size, scenes=scenes, seed=1)
    assert games.manifest_sha256 == expected


def test_a_game_depends_on_every_option():
    options = [{}, {"seed": 1}, {"games_per_type": 3}, {"size": "medium"}, {"task_types": ["heat"]}]
    found = [GeneratedGames("train", **{"games_per_type": 2, **one}).manifest_sha256 for one in options]
    assert len(set(found)) == len(options)
    task_id, raw = generate_game("heat", seed=3, index=7)
    assert re.fullmatch(r"train/pick_heat_then_place_in_recep-\w+-None-\w+-\d+/trial_G00000003_000007", task_id)
    other = generate_game("pick_heat_then_place_in_recep", seed=3, index=7, size="small", split="train")
    assert other == (task_id, raw)


@pytest.mark.parametrize("size", ["small", "real"])
def test_no_house_is_in_two_splits_whatever_the_seeds(size: str):
    splits_of: dict[Any, set[str]] = {}
    for split, seed, kind, index in itertools.product(SPLITS, range(2), KINDS, range(10)):
        house = GameSpec(kind, seed, index, split, size).house()[0]
        places = tuple((receptacle.kind, receptacle.location) for receptacle in house.receptacles)
        things = tuple(sorted((thing.kind, thing.place) for thing in house.things))
        splits_of.setdefault((house.scene, places, things, house.task), set()).add(split)
    assert len(splits_of) > 200
    assert all(len(splits) == 1 for splits in splits_of.values())


@pytest.mark.parametrize("scenes", [1, 40, 1000])
def test_more_or_fewer_scenes_leave_the_unseen_ones_alone(scenes: int):
    usual = GeneratedGames("valid_unseen", games_per_type=30)
    assert GeneratedGames("valid_unseen", games_per_type=30, scenes=scenes).task_ids == usual.task_ids
    found = {scene(name) for name in GeneratedGames("train", games_per_type=60, scenes=scenes).task_ids}
    assert not found & set(map(scene, usual.task_ids))
    assert found & set(map(scene, GeneratedGames("valid_seen", games_per_type=60, scenes=scenes).task_ids))
    assert len(found) <= 4 * scenes
    assert scenes < 40 or len(found) > 100


def test_a_scene_looks_the_same_in_every_game():
    games = GeneratedGames("train", games_per_type=40)
    furniture: dict[int, set[tuple[str, ...]]] = {}
    for task_id in games.task_ids:
        places = re.findall(r"^  (\w+?)_bar_\S+ - receptacle$", games.raw(task_id)["pddl_problem"], re.MULTILINE)
        furniture.setdefault(scene(task_id), set()).add(tuple(places))
    assert all(len(seen) == 1 for seen in furniture.values())
    assert sum(len(seen) for seen in furniture.values()) > 30


def test_bad_arguments_are_named(tmp_path):
    with pytest.raises(ConfigError, match="a dictionary such as"):
        open_games("generated", generator="small")
    with pytest.raises(ConfigError, match="data='generated'"):
        open_games(tmp_path, generator={"size": "small"})
    with pytest.raises(ConfigError, match="index"):
        generate_game("heat", seed=0, index=-1)
    with pytest.raises(UnknownNameError, match="valid_unseen"):
        generate_game("heat", seed=0, split="test")
    with pytest.raises(UnknownNameError, match="task id"):
        GeneratedGames("train", games_per_type=1).raw("train/none/trial_0")


class Impossible(GeneratedGames):
    """Games whose object cannot be taken."""

    def raw(self, task_id):
        raw = super().raw(task_id)
        return {**raw, "pddl_problem": raw["pddl_problem"].replace("(pickupable ", "(cleanable ")}


def test_every_game_is_played_to_its_end_and_one_that_cannot_be_won_is_named():
    games = GeneratedGames("train", games_per_type=2)
    assert len(proved_by_planner(games)) == 12
    assert all(2 <= steps <= 12 for steps in proved_by_planner(games))
    with pytest.raises(InvalidGameError, match="trial_G00000000_000000"):
        proved_by_planner(Impossible("train", ["heat"], games_per_type=1))


@pytest.mark.upstream
@pytest.mark.parametrize("kind", KINDS)
def test_small_games_are_played_alike(kind: str, upstream):
    task_id, raw = generate_game(kind, seed=5, size="small", split="valid_unseen")
    found = compare(task_id, raw, upstream, oracle="cached")
    assert found.differences == []
    assert found.wins > 0
    assert found.answers > 90


@pytest.mark.upstream
@pytest.mark.slow
@pytest.mark.parametrize("size", [size for size in SIZES if size != "small"])
def test_larger_games_are_played_alike(size: str, upstream):
    for index, kind in enumerate(KINDS):
        task_id, raw = generate_game(kind, seed=6, size=size, index=index)
        found = compare(task_id, raw, upstream, oracle="cached")
        assert (found.task_id, found.differences) == (task_id, [])
        assert found.wins > 0

"""Generated games: deterministic, disjoint, solvable, and clear about options that make no sense."""

import itertools
import re
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


@pytest.mark.parametrize(
    ("size", "scenes", "split", "expected"),
    [
        ("small", 25, "train", "509531df65a94cf8e5899435d86e9c7dcefe46cc3ea5c899527c57489894f7b4"),
        ("small", 4, "valid_seen", "098e2c58fda6349d460ce469cc53ce9b5b2deda30745c620706f151056f198c1"),
        ("medium", 25, "valid_unseen", "e0cbceb71f9079ad6dbc1ff2e62417a2dd2b3aac2b73643705466c24d447c38f"),
        ("real", 25, "valid_seen", "59f96eb991b007928f72f124d4feb4c0eb03eab4baa7d8dce7bfe9a19c97f3cc"),
        ("large", 25, "train", "0d94c15ff81558c960477cbccc0e0dd1f82cc532c5181beb984734b926fc3c02"),
    ],
)
def test_games_that_policies_were_trained_on_stay_as_they_are(size: str, scenes: int, split: str, expected: str):
    """And are the same in every process, each of which has another seed for Python's hashes."""
    games = GeneratedGames(split, games_per_type=6, size=size, scenes=scenes, seed=1)
    assert games.manifest_sha256 == expected


def test_a_game_depends_on_every_option():
    options = [{}, {"seed": 1}, {"games_per_type": 3}, {"size": "medium"}, {"task_types": ["heat"]}]
    assert len({GeneratedGames(**{"games_per_type": 2, **one}).manifest_sha256 for one in options}) == 5
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


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda: open_games("generated", generator="small"), ConfigError, "a dictionary such as"),
        (lambda: open_games("/tmp", generator={"size": "small"}), ConfigError, "data='generated'"),
        (lambda: generate_game("heat", seed=0, index=-1), ConfigError, "index"),
        (lambda: generate_game("heat", seed=0, split="test"), UnknownNameError, "valid_unseen"),
        (lambda: GeneratedGames(games_per_type=1).raw("train/none/trial_0"), UnknownNameError, "task id"),
    ],
)
def test_bad_arguments_are_named(ask, error, words):
    with pytest.raises(error, match=words):
        ask()


def test_every_game_is_played_to_its_end_and_one_that_cannot_be_won_is_named(monkeypatch):
    steps = proved_by_planner(GeneratedGames("train", games_per_type=2))
    assert len(steps) == 12
    assert all(2 <= count <= 12 for count in steps)
    games = GeneratedGames("train", ["heat"], games_per_type=1)
    raw = games.raw(games.task_ids[0])
    problem = raw["pddl_problem"].replace("(pickupable ", "(cleanable ")
    monkeypatch.setattr(games, "raw", lambda task_id: {**raw, "pddl_problem": problem})
    with pytest.raises(InvalidGameError, match="trial_G00000000_000000"):
        proved_by_planner(games)


@pytest.mark.upstream
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", ["small", *(pytest.param(size, marks=pytest.mark.slow) for size in [*SIZES][1:])])
def test_upstream_plays_them_alike(kind: str, size: str, upstream):
    task_id, raw = generate_game(kind, seed=5, size=size, split="valid_unseen")
    found = compare(task_id, raw, upstream, oracle="cached")
    assert (found.task_id, found.differences) == (task_id, [])
    assert found.wins > 0
    assert found.answers >= 90

"""Options of the generator beyond its sizes: the mix of types, the knobs, and difficulty in their names."""

import re
from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from odd_houses import generate_game

from skillc_gym.envs.alfworld.data.games import open_games
from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.engine.world import World
from skillc_gym.envs.alfworld.experts.explorer import Explorer, parse_goal
from skillc_gym.envs.alfworld.experts.planner import Planner
from skillc_gym.envs.alfworld.generate import GeneratedGames
from skillc_gym.envs.alfworld.generate import games as games_module
from skillc_gym.envs.alfworld.generate import house as sampling
from skillc_gym.envs.alfworld.generate.games import difficulty_of, numbers
from skillc_gym.envs.alfworld.generate.knobs import SIZES
from skillc_gym.envs.alfworld.tasks import SHORT_NAMES, SPLITS
from skillc_gym.errors import ConfigError, UnknownNameError

KINDS = tuple(SHORT_NAMES.values())
ROOMS = {"kitchen": 0, "living room": 200, "bedroom": 300, "bathroom": 400}
"""Kind of room -> the number before its first scene."""


def game(kind: str, **options) -> Game:
    return Game.parse(*generate_game(kind, **options))


SHARES = st.floats(0, 1)
KNOBS = {"receptacles": st.integers(4, 45), "objects": st.integers(1, 50), "spares": st.integers(0, 5)}


@settings(max_examples=120)
@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 2**40),
    index=st.integers(0, 10_000),
    size=st.sampled_from(list(SIZES)),
    split=st.sampled_from(SPLITS),
    difficulty=st.none() | SHARES,
    knobs=st.fixed_dictionaries({}, optional=KNOBS | {"closed": SHARES, "hidden": SHARES}),
)
def test_any_game_is_won_by_its_walkthrough_and_not_before_its_end(kind, difficulty, knobs, **options):
    found = game(kind, difficulty=difficulty, **options, **knobs)
    world = World(found)
    for command in found.walkthrough:
        assert not world.won
        assert world.step(command)[1]
    assert world.won
    assert len(Planner(found).plan()) <= len(found.walkthrough)
    if "receptacles" in knobs:
        assert len(found.receptacles) == max(knobs["receptacles"], 5 if "microwave 1" in found.receptacles else 4)


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_are_those_that_are_asked_for(room: str):
    games = GeneratedGames("train", ["pick", "pick2"], games_per_type=10, rooms=[room])
    assert all(0 < int(name.split("/")[1].rsplit("-", 1)[1]) - ROOMS[room] <= 30 for name in games.task_ids)


@given(st.dictionaries(st.sampled_from(KINDS), st.floats(0, 100)), st.integers(1, 500))
def test_weights_divide_all_games(weights, total):
    whole = sum(weights.values())
    assume(whole > 0.1)
    counts = numbers(KINDS, total, weights)
    assert sum(counts.values()) == total
    assert all(abs(counts[kind] - total * weights.get(kind, 0) / whole) < 1 + 1e-6 for kind in KINDS)


def test_a_list_of_difficulties_gives_games_of_each_and_names_say_which():
    games = GeneratedGames("train", ["heat"], games_per_type=3, difficulty=[0, 0.25, 1])
    assert Counter(map(difficulty_of, games.task_ids)) == {0.0: 3, 0.25: 3, 1.0: 3}
    assert difficulty_of(GeneratedGames("train", games_per_type=1).task_ids[0]) is None
    single = GeneratedGames("train", ["heat"], games_per_type=3, difficulty=0.25)
    assert set(single.task_ids) < set(games.task_ids)
    assert all(single.raw(name) == games.raw(name) for name in single.task_ids)


def explored(**knob: object) -> Counter[str]:
    """What the explorer, which knows what the agent has read, takes to win thirty games, at most 200 steps each."""
    games, taken = GeneratedGames("train", seed=0, games_per_type=5, size="medium", **knob), Counter()
    for game in map(games.load, games.task_ids):
        world, explorer = World(game), Explorer(game.task_type, game.goal, seed=0)
        said, commands = [world.reset()], len(world.admissible)
        while not world.won and len(said) <= 200:
            said.append(world.step(explorer.act(said[-1], world.admissible))[0])
        read = len("".join(said))
        taken.update(plan=len(Planner(game).plan()), explorer=len(said) - 1, read=read, commands=commands)
    return taken


@pytest.mark.parametrize(
    ("knob", "ends", "moves"),
    [
        ("difficulty", (0.0, 1.0), {"plan": 1, "explorer": 1, "read": 1}),
        ("receptacles", (6, 36), {"explorer": 1, "commands": 1}),
        ("objects", (5, 45), {"read": 1}),
        ("closed", (0.0, 1.0), {"plan": 1, "explorer": 1}),
        ("hidden", (0.0, 1.0), {"plan": 1, "explorer": 1}),
        ("spares", (0, 4), {"explorer": -1}),
    ],
)
def test_each_knob_moves_what_it_says_from_end_to_end(knob: str, ends: tuple, moves: dict[str, int]):
    before, after = (explored(**{knob: value}) for value in ends)
    assert all((after[name] - before[name]) * way > 0 for name, way in moves.items())


def test_real_houses_hold_together():
    """Things that lie nowhere else, rooms that a task needs, and objects that cannot be taken."""
    games = GeneratedGames("train", games_per_type=8, size="real", mix="real")
    fixed = 0
    for found in map(games.load, games.task_ids):
        taken = {found.objects[thing].rsplit(" ", 1)[0] for thing in found.pickupable}
        assert parse_goal(found.task).thing in taken
        assert not taken & {"houseplant", "television", "desklamp", "floorlamp"}
        fixed += any(thing.startswith(("houseplant", "television")) for thing in found.objects)
    assert fixed > len(games.task_ids) // 4


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"receptacles": 3}, ConfigError, "receptacles is a whole number from 4 to 100, got 3"),
        ({"receptacles": [9, 6]}, ConfigError, "[lowest, highest]; got [9, 6]"),
        ({"objects": "many"}, ConfigError, "got 'many'"),
        ({"hidden": True}, ConfigError, "got True"),
        ({"spares": -1}, ConfigError, "spares is a whole number from 0 to 20, got -1"),
        ({"rooms": ["kitchin"]}, UnknownNameError, "Did you mean 'kitchen'"),
        ({"rooms": []}, ConfigError, "got none"),
        ({"rooms": ["bathroom"]}, ConfigError, "Tasks of type 'look' need a living room, bedroom"),
        ({"difficulty": 2}, ConfigError, "difficulty is a number between 0 and 1; got 2"),
        ({"difficulty": []}, ConfigError, "got []"),
        ({"difficulty": [0.5, 0.5001]}, ConfigError, "differ by a thousandth"),
        ({"mix": "realistic"}, UnknownNameError, "mix of task types 'realistic'"),
        ({"mix": {"heet": 1}}, UnknownNameError, "heet"),
        ({"mix": {"heat": 0}}, ConfigError, "gives no weight"),
        ({"mix": {"heat": 1e308, "pick": 1e308}}, ConfigError, "too large"),
        ({"mix": [1, 2]}, ConfigError, "weights such as"),
        ({"hiden": 1}, UnknownNameError, "Did you mean 'hidden'"),
        ({"size": "huge"}, UnknownNameError, "small, medium, large, real"),
        ({"seed": -1}, ConfigError, "seed is a whole number from 0 up, got -1"),
        ({"seed": True}, ConfigError, "got True"),
        ({"seed": {1}}, ConfigError, "numbers and names"),
        ({"games_per_type": 0}, ConfigError, "games_per_type is a whole number from 1 up, got 0"),
    ],
)
def test_bad_options_are_named(options, error, message):
    with pytest.raises(error, match=re.escape(message)):
        open_games("generated", generator={"games_per_type": 1, **options})


@pytest.mark.parametrize(
    ("module", "name", "found", "words"),
    [
        (sampling, "_task", None, r"none of a task 'heat'.*more scenes"),
        (games_module, "_hundredth", 0, "belongs to the split 'valid_seen'"),
    ],
)
def test_options_without_a_house_are_an_error_and_not_an_endless_search(monkeypatch, module, name, found, words):
    monkeypatch.setattr(module, name, lambda *_: found)
    monkeypatch.setattr(module, "MAX_TRIES", 20)
    with pytest.raises(ConfigError, match=words):
        generate_game("heat", seed=0, split="valid_seen")


@pytest.mark.parametrize("size", ["small", "real"])
def test_the_largest_house_can_be_written(size: str):
    found = game("pick2", seed=1, size=size, receptacles=100, objects=150, spares=2)
    assert (len(found.receptacles), len(found.pickupable), len(Planner(found).things)) == (100, 150, 4)


def test_the_largest_goal_can_be_played():
    """Two of 22 things in any of 62 drawers: 532,066 ground conditions."""
    assert World(game("pick2", seed=9, size="small", receptacles=100, objects=150, spares=20)).reset()

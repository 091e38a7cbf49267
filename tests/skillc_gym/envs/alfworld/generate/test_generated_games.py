"""Generated games: deterministic, disjoint, solvable, as their options have them, and clear about what cannot be."""

import itertools
import re
from collections import Counter
from typing import Any

import gymnasium
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from odd_houses import generate_game

from benchmarks.parity_alfworld import compare
from skillc_gym.envs.alfworld.data.games import open_games
from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.engine.world import World
from skillc_gym.envs.alfworld.experts.explorer import Explorer, parse_goal
from skillc_gym.envs.alfworld.experts.planner import Planner
from skillc_gym.envs.alfworld.generate import GeneratedGames, convention_skills, proved_by_planner
from skillc_gym.envs.alfworld.generate import games as games_module
from skillc_gym.envs.alfworld.generate import house as sampling
from skillc_gym.envs.alfworld.generate.conventions import skill_of_game
from skillc_gym.envs.alfworld.generate.games import GameSpec, difficulty_of, numbers
from skillc_gym.envs.alfworld.generate.knobs import SIZES
from skillc_gym.envs.alfworld.tasks import FULL_NAMES, SHORT_NAMES, SPLITS, named_kinds, task_type_of
from skillc_gym.errors import ConfigError, InvalidGameError, UnknownNameError
from skillc_gym.wrappers import SkillInjection

KINDS = tuple(SHORT_NAMES.values())
ROOMS = {"kitchen": 0, "living room": 200, "bedroom": 300, "bathroom": 400}
"""Kind of room -> the number before its first scene."""


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


def test_a_game_depends_on_every_option_and_is_named_after_them():
    options = [{}, {"seed": 1}, {"games_per_type": 3}, {"size": "medium"}, {"task_types": ["heat"]}]
    assert len({GeneratedGames(**{"games_per_type": 2, **one}).manifest_sha256 for one in options}) == 5
    name = generate_game("heat", seed=3, index=7)[0]
    assert re.fullmatch(r"train/pick_heat_then_place_in_recep-\w+-None-\w+-\d+/trial_G00000003_000007", name)


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


# Options ----------------------------------------------------------------------------------------------------------


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
    assert all(0 < scene(name) - ROOMS[room] <= 30 for name in games.task_ids)


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
        ({"objects": [9, 6]}, ConfigError, "[lowest, highest]; got [9, 6]"),
        ({"hidden": True}, ConfigError, "got True"),
        ({"spares": -1}, ConfigError, "spares is a whole number from 0 to 20, got -1"),
        ({"convention": "drown"}, ConfigError, "convention (or 'drawn') is a whole number from 0 up, got 'drown'"),
        ({"rooms": ["kitchin"]}, UnknownNameError, "Did you mean 'kitchen'"),
        ({"rooms": []}, ConfigError, "got none"),
        ({"rooms": ["bathroom"]}, ConfigError, "Tasks of type 'look' need a living room, bedroom"),
        ({"difficulty": 2}, ConfigError, "difficulty is a number between 0 and 1; got 2"),
        ({"difficulty": []}, ConfigError, "got []"),
        ({"difficulty": [0.5, 0.5001]}, ConfigError, "differ by a thousandth"),
        ({"mix": "realistic"}, UnknownNameError, "mix of task types 'realistic'"),
        ({"mix": {"heet": 1}}, UnknownNameError, "heet"),
        ({"mix": {"heat": 0}}, ConfigError, "gives no weight"),
        ({"mix": {"heat": 10**400}}, ConfigError, "from 0 to 1e+100"),
        ({"mix": {"heat": 1, "pick_heat_then_place_in_recep": 2}}, ConfigError, "names a task type twice"),
        ({"mix": [1, 2]}, ConfigError, "weights such as"),
        ({"hiden": 1}, UnknownNameError, "Did you mean 'hidden'"),
        *(({"size": size}, UnknownNameError, "small, medium, large, real") for size in ("huge", ["small"])),
        ({"seed": True}, ConfigError, "seed is a whole number from 0 up, got True"),
        ({"seed": {1}}, ConfigError, "numbers and names"),
        ({"games_per_type": 0}, ConfigError, "games_per_type is a whole number from 1 up, got 0"),
    ],
)
def test_bad_options_are_named(options, error, message):
    with pytest.raises(error, match=re.escape(message)):
        open_games("generated", generator={"games_per_type": 1, **options})


def test_options_are_a_dictionary_for_generated_games_and_names_those_there_are():
    for data, generator in (("generated", "small"), ("/tmp", {"size": "small"})):
        with pytest.raises(ConfigError, match=r"a dictionary such as|data='generated'"):
            open_games(data, generator=generator)
    for ask in (GeneratedGames, GeneratedGames(games_per_type=1).raw):
        with pytest.raises(UnknownNameError, match=r"split|task id"):
            ask("nowhere")


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


@pytest.mark.parametrize(("seed", "size", "spares"), [(1, "real", 2), (9, "small", 20)])
def test_the_largest_house_can_be_written_and_the_largest_goal_played(seed: int, size: str, spares: int):
    """Two of 22 things in any of 62 drawers: 532,066 ground conditions."""
    found = game("pick2", seed=seed, size=size, receptacles=100, objects=150, spares=spares)
    assert (len(found.receptacles), len(found.pickupable), len(Planner(found).things)) == (100, 150, 2 + spares)
    assert World(found).reset()


SKILLED = ("pick", "clean", "heat", "cool", "pick2")


def test_a_convention_has_one_place_for_a_task_type_and_no_task_says_it():
    games = GeneratedGames("train", SKILLED, games_per_type=8, convention=3)
    places = {
        kind: {named_kinds(name)[1] for name in games.task_ids if task_type_of(name) == FULL_NAMES[kind]}
        for kind in SKILLED
    }
    assert [*places.values()] == [{"cabinet"}, {"cabinet"}, {"sinkbasin"}, {"countertop"}, {"countertop"}]
    assert all(re.search(r"(in|on) its place\.$", games.load(name).task) for name in games.task_ids)
    drawn = GeneratedGames("train", SKILLED, games_per_type=8, convention="drawn")
    assert len({named_kinds(name)[1] for name in drawn.task_ids}) > 5
    look = [GeneratedGames("train", "look", games_per_type=3, convention=n).manifest_sha256 for n in (None, 3, "drawn")]
    assert len(set(look)) == 1


@pytest.mark.parametrize("convention", [3, "drawn"])
def test_who_is_told_the_convention_wins_and_who_guesses_mostly_does_not(convention):
    won = {told: played_in_their_place(convention, told=told) for told in (True, False)}
    assert all(won[True])
    assert 0 < sum(won[False]) < len(won[False]) / 2


def played_in_their_place(convention: int | str, *, told: bool) -> list[bool]:
    """Whether explorers win games that do not say the place, with the skill of each, or of the convention."""
    options = {"seed": 1, "games_per_type": 8, "convention": convention}
    core = gymnasium.make("skillc/ALFWorld-v0", data="generated", task_types=SKILLED, generator=options)
    env, wins = SkillInjection(core, where="info"), []
    for task_id in core.unwrapped.task_ids:
        observation, info = env.reset(options={"task_id": task_id, "skill": told, "skill_text": skill_of_game})
        if told and convention != "drawn":
            own = [skill.text for skill in convention_skills(convention) if info["task_type"] in skill.task_types]
            assert info["skill_text"].endswith(own[0])
        explorer, over = Explorer(info["task_type"], info["goal"], skill=info["skill_text"]), False
        while not over and explorer.thought != "done":
            observation, _, over, cut, info = env.step(explorer.act(observation, info["admissible_commands"]))
            over = over or cut
            assert info["action_valid"]
        wins.append(info["won"] == 1.0)
    return wins


def test_a_skill_of_another_convention_leaves_no_one_in_a_loop():
    games = GeneratedGames("train", "pick", games_per_type=12, convention=3)
    for game in map(games.load, games.task_ids):
        world, explorer = World(game), Explorer("pick", game.goal, skill="its place is the aquarium")
        observation = world.reset()
        while explorer.thought != "done":
            observation, valid = world.step(explorer.act(observation, world.admissible))
            assert valid


@pytest.mark.parametrize("no_number", ["drawn", None, -1, True, 3.0])
def test_a_convention_is_a_number(no_number):
    with pytest.raises(ConfigError, match="A convention is a whole number from 0 up"):
        convention_skills(no_number)


def test_a_game_that_says_its_place_has_the_skill_of_the_library():
    env = SkillInjection(gymnasium.make("skillc/ALFWorld-v0", data="generated"))
    shown = env.reset(seed=0, options={"skill_text": skill_of_game})[1]
    assert shown["skill_text"] == env.reset(seed=0)[1]["skill_text"]

"""The experts: an explorer that wins by what it reads, and a planner whose plans are shortest."""

import re
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_houses import generate_game

from benchmarks.parity_alfworld import older_wording
from skillc_gym.envs.alfworld.data.games import open_games
from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.engine.tables import State
from skillc_gym.envs.alfworld.engine.world import World
from skillc_gym.envs.alfworld.experts.explorer import Explorer, ParsedGoal, parse_goal
from skillc_gym.envs.alfworld.experts.planner import Planner, shortest_plan
from skillc_gym.envs.alfworld.generate import GeneratedGames
from skillc_gym.envs.alfworld.generate.catalogue import Task
from skillc_gym.envs.alfworld.generate.game_file import game_file, sentences, task_folder
from skillc_gym.envs.alfworld.generate.house import House
from skillc_gym.envs.alfworld.generate.knobs import SIZES
from skillc_gym.envs.alfworld.generate.things import Receptacle, Thing
from skillc_gym.envs.alfworld.tasks import SHORT_NAMES, TASK_TYPES
from skillc_gym.errors import ConfigError, DeadEndError
from skillc_gym.wrappers import SkillInjection, TextHistory

KINDS = tuple(SHORT_NAMES.values())
SMALL = {"seed": 5, "games_per_type": 4, "size": "small"}
MUG = ParsedGoal("mug", "desklamp")


def play(game: Game, *, steps: int = 50, **options: Any) -> tuple[bool, list[str]]:
    """Lets an explorer play; every command it gives must be admissible."""
    world = World(game)
    observation, commands = world.reset(), []
    explorer = Explorer(game.task_type, game.goal, **options)
    while not world.won and len(commands) < steps:
        commands.append(explorer.act(observation, world.admissible))
        assert commands[-1] in world.admissible
        observation, _ = world.step(commands[-1])
    return world.won, commands


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", [0, None])
def test_the_explorer_wins_generated_games(size: str, seed: int | None):
    games = GeneratedGames("valid_seen", games_per_type=6, size=size)
    assert all(play(games.load(task_id), seed=seed, steps=150)[0] for task_id in games.task_ids)


@pytest.mark.parametrize("wrap", [SkillInjection, TextHistory])
def test_it_reads_the_answer_behind_a_skill_or_a_history(wrap: Any):
    env = wrap(gymnasium.make("skillc/ALFWorld-v0", data="generated", split="valid_seen", generator=SMALL))
    for task_id in env.get_wrapper_attr("task_ids"):
        observation, info = env.reset(seed=0, options={"task_id": task_id})
        explorer, over = Explorer(info["task_type"], info["goal"]), False
        while not over:
            command = explorer.act(observation, info["admissible_commands"])
            observation, _, terminated, truncated, info = env.step(command)
            over = terminated or truncated
        assert info["won"]


@pytest.mark.parametrize("kind", KINDS)
def test_it_never_wins_without_the_essential_step(kind: str):
    games = GeneratedGames("train", task_types=[kind], games_per_type=12, size="medium")
    for game in map(games.load, games.task_ids):
        assert not play(game, skip_essential=True, steps=60)[0]
        assert play(game, steps=100)[0]


@pytest.mark.parametrize("kind", ["pick", "heat"])
def test_it_wins_wherever_it_begins(kind: str):
    task_id, raw = generate_game(kind, seed=1)
    places = sorted(set(re.findall(r"receptacleAtLocation \S+ (\S+?)\)", raw["pddl_problem"])))
    for place in places:
        problem = re.sub(r"\(atLocation agent1 \S+?\)", f"(atLocation agent1 {place})", raw["pddl_problem"])
        assert play(Game.parse(task_id, {**raw, "pddl_problem": problem}), steps=100)[0]


def test_it_plays_the_older_wording_too():
    task_id, raw = generate_game("heat", seed=2)
    game = Game.parse(task_id, older_wording(raw))
    won, commands = play(game)
    assert won
    assert any(re.fullmatch(r"put \S+ \d+ in/on \S+ \d+", command) for command in commands)
    assert World(game).step(commands[0])[0].startswith("You arrive at loc ")


def test_the_same_seed_gives_the_same_play_and_seeds_differ():
    game = Game.parse(*generate_game("pick", seed=1, size="real"))
    assert play(game, seed=3) == play(game, seed=3)
    assert len({tuple(play(game, seed=seed, steps=100)[1]) for seed in range(8)}) > 1


def test_task_sentences_are_read_and_others_are_errors():
    for task in (Task(kind, "Mug", "DeskLamp") for kind in KINDS):
        assert {parse_goal(f"Your task is to: {sentence}") for sentence in sentences(task)} == {MUG}
    assert parse_goal("put an egg in microwave.") == ParsedGoal("egg", "microwave")
    for goal in ("", "buy a red shirt", "put", "look at", "make me a coffee", "puté a mug"):
        with pytest.raises(ConfigError, match=re.escape(repr(goal))):
            parse_goal(goal)


SAID = st.text(max_size=60) | st.just("You see a mug 1, and a cabinet 2.")
COMMANDS = ("look", "go to cabinet 2", "open cabinet 2", "take mug 1 from cabinet 2", "inventory")


@settings(max_examples=120)
@given(
    st.sampled_from(KINDS),
    st.booleans(),
    st.lists(SAID, min_size=1, max_size=6),
    st.lists(st.sampled_from(COMMANDS) | st.text(max_size=20), min_size=1, max_size=6),
)
def test_odd_input_gets_a_command_not_an_exception(kind, skip, observations, commands):
    goal = "look at mug under the desklamp." if kind == "look" else "put a mug in cabinet."
    explorer = Explorer(kind, goal, skip_essential=skip)
    for observation in observations:
        assert isinstance(explorer.act(observation, commands), str)
        assert explorer.thought


def test_its_mistake_is_to_take_the_wanted_thing_where_it_stands_without_it():
    explorer, rng = Explorer("heat", "put a hot mug in cabinet.", seed=None), np.random.default_rng(0)
    start = "Looking quickly around you, you see a cabinet 1, a countertop 1, and a microwave 1."
    going = ["go to cabinet 1", "go to countertop 1", "go to microwave 1"]
    assert explorer.act(start, going) == "go to countertop 1"
    assert explorer.mistake(going, rng) is None
    arrival = "You arrive at countertop 1. On the countertop 1, you see a cup 1."
    here = ["go to cabinet 1", "go to microwave 1", "take cup 1 from countertop 1"]
    assert explorer.act(arrival, here) == "go to microwave 1"
    thought, command = explorer.mistake(here, rng)
    assert thought == "take mug for cabinet"
    assert re.fullmatch(r"take mug [123] from countertop 1", command)
    assert explorer.mistake([f"take mug {n} from countertop 1" for n in (1, 2, 3)], rng) is None


# The planner ------------------------------------------------------------------------------------------------------


def small_games(task_type: str) -> list[Game]:
    games = GeneratedGames("train", task_type, **SMALL)
    return [*map(games.load, games.task_ids)]


def fewest_steps(game: Game, start: State, at_most: int) -> int | None:
    """Breadth-first search over every admissible command: slow, and right by construction."""
    world, layer, seen = World(game), {start}, {start}
    for depth in range(at_most + 1):
        following = set()
        for state in layer:
            world.restore(state)
            if world.won:
                return depth
            for command in world.admissible:
                world.restore(state)
                world.step(command)
                following.add(world.state)
        layer = following - seen
        seen |= layer
    return None


def random_state(game: Game, seed: int) -> State:
    rng, world = np.random.default_rng(seed), World(game)
    for _ in range(30):
        world.step(str(rng.choice(world.admissible)))
    return world.state


@pytest.mark.parametrize("task_type", TASK_TYPES)
def test_a_plan_wins_from_anywhere_and_the_bound_never_exceeds_what_is_left(task_type: str):
    for game in small_games(task_type):
        planner, world = Planner(game), World(game)
        assert len(planner.plan()) <= len(game.walkthrough)
        for start in (game.start, *(random_state(game, seed) for seed in range(3))):
            plan = planner.plan(start)
            world.restore(start)
            for index, command in enumerate(plan):
                assert planner.steps_at_least(world.state) <= len(plan) - index
                assert world.step(command)[1]
            assert world.won
            assert planner.plan(world.state) == ()


@pytest.mark.parametrize("task_type", ["pick", "look"])
def test_no_sequence_of_commands_is_shorter(task_type: str):
    for game in small_games(task_type)[:2]:
        assert fewest_steps(game, game.start, at_most=len(Planner(game).plan()) - 1) is None


def test_what_one_step_does_for_two_things_is_counted_once():
    """A way and an opening serve both where they lie behind one door at the target."""
    task = Task("pick2", "SoapBar", "CounterTop")
    bathroom = (Receptacle("CounterTop", 0, False), Receptacle("Cabinet", 0, True), Receptacle("Toilet", 1, False))
    house = House("bathroom", 401, bathroom, (Thing("SoapBar", 1), Thing("SoapBar", 1)), task)
    raw = game_file(house, sentences(task)[0], np.random.default_rng(0))
    game = Game.parse(f"train/{task_folder(house)}/trial_T1", raw)
    assert Planner(game).steps_at_least(game.start) <= len(Planner(game).plan()) == 6


def without_a_place(raw: dict[str, Any], receptacle: str) -> dict[str, Any]:
    problem, count = re.subn(rf"\(receptacleAtLocation {receptacle}\S* \S+?\)", "", raw["pddl_problem"])
    assert count
    return {**raw, "pddl_problem": problem}


def test_what_nobody_can_reach_is_no_way_to_win():
    games = GeneratedGames("train", "pick", games_per_type=10, spares=1)
    won = 0
    for task_id in games.task_ids:
        raw = games.raw(task_id)
        thing = parse_goal(games.load(task_id).goal).thing
        inside = re.findall(r"\(inReceptacle (\S+) (\S+?)\)", raw["pddl_problem"])
        source = next(place for name, place in inside if name.lower().startswith(thing))
        game = Game.parse(task_id, without_a_place(raw, source))
        if play(game, steps=100)[0]:
            world = World(game)
            for command in Planner(game).plan():
                world.step(command)
            assert world.won
            won += 1
    assert won
    task_id, raw = generate_game("heat", seed=2)
    with pytest.raises(DeadEndError, match="from this state any more"):
        Planner(Game.parse(task_id, without_a_place(raw, "Microwave"))).plan()


def test_what_helps_nobody_and_fits_nowhere_is_a_dead_end_at_once(monkeypatch):
    game = Game.parse(*generate_game("heat", seed=2))
    planner = Planner(game)
    held = min(game.pickupable - planner.things)
    stuck = game.start._replace(held=held)
    assert planner.plan(stuck), "it can be put away"
    nowhere = Planner(replace(game, accepts=tuple(fitting - {held} for fitting in game.accepts)))
    monkeypatch.setattr(nowhere, "steps_at_least", None)  # nothing is tried
    with pytest.raises(DeadEndError, match="what is in hand fits nowhere"):
        nowhere.plan(stuck)


def test_a_plan_does_not_depend_on_how_the_task_is_worded():
    task_id, raw = generate_game("look", seed=2)
    words = Game.parse(task_id, raw).task
    told = {**raw, "grammar": raw["grammar"].replace(words, "Examine a clock under the light of the lamp.")}
    assert told != raw
    assert Planner(Game.parse(task_id, told)).plan() == Planner(Game.parse(task_id, raw)).plan()


def test_an_environment_is_planned_from_where_it_stands():
    env = gymnasium.make("skillc/ALFWorld-v0", data="generated", split="train", generator=SMALL)
    with pytest.raises(ConfigError, match="after reset"):
        shortest_plan(env)
    env.reset(seed=3)
    env.step(shortest_plan(env)[0])
    for command in shortest_plan(env):
        *_, info = env.step(command)
    assert info["won"] == 1.0


@pytest.mark.parametrize("split", ["valid_seen", "valid_unseen"])
def test_real_games_are_won_by_both_and_planned_as_short_as_their_walkthroughs(alfworld_data: str, split: str):
    games = open_games(alfworld_data, split=split)
    for game in map(games.load, games.task_ids[::4]):
        assert play(game, steps=150)[0]
        assert not play(game, skip_essential=True, steps=60)[0]
        plan, world = Planner(game).plan(), World(game)
        assert all(world.step(command)[1] for command in plan)
        assert world.won
        assert len(plan) <= len(game.walkthrough)

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import skillc_gym  # noqa: F401 - registers the environments
from skillc_gym.envs.alfworld.data.games import open_games
from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.engine.tables import State
from skillc_gym.envs.alfworld.engine.world import World
from skillc_gym.envs.alfworld.experts.planner import Planner, shortest_plan
from skillc_gym.envs.alfworld.generate.catalogue import Task
from skillc_gym.envs.alfworld.generate.game_file import game_file, sentences, task_folder
from skillc_gym.envs.alfworld.generate.house import House
from skillc_gym.envs.alfworld.generate.things import Receptacle, Thing
from skillc_gym.envs.alfworld.tasks import TASK_TYPES
from skillc_gym.errors import ConfigError

SMALL = {"seed": 5, "games_per_type": 4, "size": "small"}


def small_games(task_type: str) -> list[Game]:
    games = open_games("generated", split="train", task_types=task_type, generator=SMALL)
    return [games.load(task_id) for task_id in games.task_ids]


def won_after(game: Game, start: State, commands: tuple[str, ...]) -> bool:
    world = World(game)
    world.restore(start)
    assert all(world.step(command)[1] for command in commands)
    return world.won


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
def test_a_plan_wins_from_the_start_and_from_anywhere(task_type: str):
    for game in small_games(task_type):
        plan = Planner(game).plan()
        assert won_after(game, game.start, plan)
        assert len(plan) <= len(game.walkthrough)
        for seed in range(3):
            state = random_state(game, seed)
            assert won_after(game, state, Planner(game).plan(state))
    world = World(game)
    for command in plan:
        world.step(command)
    assert Planner(game).plan(world.state) == ()


@pytest.mark.parametrize("task_type", ["pick", "look"])
def test_no_sequence_of_commands_is_shorter(task_type: str):
    for game in small_games(task_type)[:2]:
        plan = Planner(game).plan()
        assert fewest_steps(game, game.start, at_most=len(plan) - 1) is None


@pytest.mark.parametrize("task_type", TASK_TYPES)
def test_the_bound_never_exceeds_what_is_left(task_type: str):
    for game in small_games(task_type):
        planner, world = Planner(game), World(game)
        world.restore(random_state(game, 1))
        plan = planner.plan(world.state)
        for index, command in enumerate(plan):
            assert planner.steps_at_least(world.state) <= len(plan) - index
            world.step(command)


def test_what_one_step_does_for_two_things_is_counted_once():
    """A way and an opening serve both where they lie behind one door at the target."""
    task = Task("pick2", "SoapBar", "CounterTop")
    bathroom = (Receptacle("CounterTop", 0, False), Receptacle("Cabinet", 0, True), Receptacle("Toilet", 1, False))
    house = House("bathroom", 401, bathroom, (Thing("SoapBar", 1), Thing("SoapBar", 1)), task)
    raw = game_file(house, sentences(task)[0], np.random.default_rng(0))
    game = Game.parse(f"train/{task_folder(house)}/trial_T1", raw)
    assert Planner(game).steps_at_least(game.start) <= len(Planner(game).plan()) == 6


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
def test_real_games_are_planned_as_short_as_their_walkthroughs(alfworld_data: str, split: str):
    games = open_games(alfworld_data, split=split)
    for task_id in games.task_ids[::5]:
        game = games.load(task_id)
        plan = Planner(game).plan()
        assert won_after(game, game.start, plan)
        assert len(plan) <= len(game.walkthrough)

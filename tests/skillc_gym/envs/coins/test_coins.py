"""The coin collector: mazes as its family has them, the contract, and an expert that finds every coin."""

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from hypothesis import given
from hypothesis import strategies as st

from skill_library import load_library
from skillc_gym.envs.coins.env import CoinCollectorEnv
from skillc_gym.envs.coins.expert import demonstrator
from skillc_gym.envs.coins.spec import COINS
from skillc_gym.envs.coins.tasks import DEAD_ENDS, MOST_MOVES, OPPOSITE, build_maze
from skillc_gym.errors import ConfigError, UnknownNameError
from skillc_gym.testing import TextEnvContract
from trainers.warmstart import shipped_recipe
from trainers.warmstart.demonstration import demonstrations
from trainers.warmstart.make import success_rates

SMALL = {"tasks_per_type": 10}
NAMES = ("cold pantry", "narrow gallery", "grand pantry", "grand closet", "quiet bedroom")
"""Of one maze, so that another machine or version cannot draw others unnoticed."""


class TestContract(TextEnvContract):
    def make_env(self):
        return gymnasium.make("skillc/CoinCollector-v0", generator=SMALL)


def distances(maze) -> dict[int, int]:
    far, edge = {0: 0}, [0]
    for room in edge:
        new = [other for other in maze.doors[room].values() if other not in far]
        far |= dict.fromkeys(new, far[room] + 1)
        edge += new
    return far


@given(st.integers(1, MOST_MOVES), st.sampled_from([0, 1, 2]), st.integers(0, 2**32))
def test_mazes_are_trees_with_the_coin_at_the_end_of_the_chain(moves, dead_ends, seed):
    maze = build_maze(moves, dead_ends, np.random.default_rng(seed))
    far = distances(maze)
    assert far[maze.coin] == moves == maze.moves
    assert len(far) == len(maze.names) == len(set(maze.names))
    assert sum(map(len, maze.doors)) == 2 * (len(maze.names) - 1)  # connected without a circle
    for room, doors in enumerate(maze.doors):
        assert list(doors) == sorted(doors)
        assert all(maze.doors[other][OPPOSITE[way]] == room for way, other in doors.items())
    rooms = range(moves + 1)  # the chain has the first numbers
    beside = [sum(other not in rooms for other in maze.doors[room].values()) for room in rooms]
    assert max(beside) <= dead_ends
    assert beside[-1] == 0
    assert (len(maze.names) == moves + 1) == (dead_ends == 0)


def play(env, task_id, errs=False):
    observation, info = env.reset(options={"task_id": task_id})
    expert = demonstrator(info, errs)
    ended, steps = False, 0
    while not ended:
        command = expert.act(observation, info["admissible_commands"])
        observation, reward, won, truncated, info = env.step(command)
        ended, steps = won or truncated, steps + 1
        assert info["action_valid"]
    return reward, won, steps


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_the_expert_finds_every_coin_within_the_limit_and_an_erring_one_none_in_easy_mazes(split):
    env = gymnasium.make("skillc/CoinCollector-v0", split=split, generator=SMALL)
    for task_id in env.unwrapped.task_ids:
        reward, terminated, steps = play(env, task_id)
        assert (reward, terminated) == (1.0, True)
        moves = env.unwrapped.tasks.maze(task_id).moves
        assert steps > moves
        if "/easy/" in task_id:
            assert steps == moves + 1, "nothing but the chain is walked"
            assert play(env, task_id, errs=True)[:2] == (0.0, False)


def test_what_is_read():
    env = CoinCollectorEnv(task_types="easy", generator={"shortest": 1, "longest": 1, "tasks_per_type": 1})
    with pytest.raises(ResetNeeded):
        env.action_mask()
    observation, info = env.reset(seed=0)
    assert env.task_ids == ("train/easy/01-0000",)
    way = info["admissible_commands"][0].removeprefix("go ")
    first, last = env.tasks.maze(env.task_ids[0]).names
    task = "Your task is to: find the coin and take it."
    assert observation == f"You are in the {first}. There is an exit to the {way}.\n\n{task}"
    assert env.step("take coin")[0] == "That is not possible."
    there = f"You are in the {last}. There is an exit to the {OPPOSITE[way]}. A coin lies on the floor."
    assert env.step(f"go {way}")[0] == there
    assert env.step("inventory")[0] == "You carry nothing."
    assert env.action_mask().tolist() == [int(c in env.step("look")[4]["admissible_commands"]) for c in env.commands]
    assert env.all_commands() == env.commands
    answer = env.step("take coin")
    assert answer[:4] == ("You take the coin. The task is done.", 1.0, True, False)
    assert answer[4]["won"] == 1.0


def test_mazes_depend_on_nothing_but_seed_and_name():
    one, other = (CoinCollectorEnv(generator={**SMALL, "seed": seed}) for seed in (0, 1))
    task_id = one.task_ids[7]
    assert one.tasks.maze(task_id) == CoinCollectorEnv(task_types="easy", generator=SMALL).tasks.maze(task_id)
    assert one.tasks.maze(task_id) != other.tasks.maze(task_id)
    assert one.identify(one.task_ids) != other.identify(one.task_ids)
    assert one.tasks.maze("train/easy/04-0002").names == NAMES


@pytest.mark.parametrize(
    ("kwargs", "error"),
    [
        ({"split": "dev"}, UnknownNameError),
        ({"task_types": "harder"}, UnknownNameError),
        ({"generator": {"sede": 1}}, UnknownNameError),
        ({"generator": {"longest": MOST_MOVES + 1}}, ConfigError),
        ({"data": "/somewhere"}, ConfigError),
    ],
)
def test_bad_arguments_are_refused(kwargs, error):
    with pytest.raises(error):
        CoinCollectorEnv(**kwargs)


def test_demonstrations_depend_on_the_skill():
    recipe = shipped_recipe("coins").demonstrations
    played = list(demonstrations(recipe, COINS.chat_format("compact"), count=120, seed=0))
    found = success_rates(played)
    assert set(found) == set(load_library(COINS.library).task_types) == set(DEAD_ENDS)
    assert all(rates["with"] >= 0.9 and rates["without"] <= 0.4 for rates in found.values())
    assert all(len(demo.messages) < 2 * recipe.max_steps for demo in played)

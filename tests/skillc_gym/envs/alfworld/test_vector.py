from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode

import skillc_gym  # noqa: F401 - registers the environments
from skillc_gym.envs.alfworld.vector import ALFWorldVectorEnv
from skillc_gym.errors import ConfigError

GAMES = {"data": "generated", "generator": {"seed": 2, "games_per_type": 3, "size": "small"}}


def make(mode: str | None = None, num_envs: int = 5, **options: object) -> gym.vector.VectorEnv:
    return gym.make_vec("skillc/ALFWorld-v0", num_envs=num_envs, vectorization_mode=mode, **{**GAMES, **options})


def same(left: dict, right: dict) -> None:
    assert left.keys() == right.keys()
    for key, column in left.items():
        if isinstance(column, dict):
            same(column, right[key])
        else:
            assert column.tolist() == right[key].tolist(), key


def test_make_vec_gives_the_fast_one():
    envs = make()
    assert isinstance(envs.unwrapped, ALFWorldVectorEnv)
    assert envs.unwrapped.max_episode_steps == 50


@pytest.mark.parametrize("limit", [7, 50])
def test_it_answers_as_the_sync_mode_does(limit: int):
    fast, sync = make(max_episode_steps=limit), make("sync", max_episode_steps=limit)
    rng = np.random.default_rng(0)
    found, expected = fast.reset(seed=11), sync.reset(seed=11)
    for _ in range(60):
        assert found[0] == expected[0]
        same(found[-1], expected[-1])
        actions = [str(rng.choice(commands)) for commands in found[-1]["admissible_commands"]]
        found, expected = fast.step(actions), sync.step(actions)
        for ours, theirs in zip(found[1:4], expected[1:4], strict=True):
            assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, "SameStep", AutoresetMode.NEXT_STEP])
def test_autoreset_modes_are_those_of_the_sync_mode(mode: AutoresetMode | str):
    options = {"vector_kwargs": {"autoreset_mode": mode}, "max_episode_steps": 3}
    fast, sync = make(num_envs=2, **options), make("sync", num_envs=2, **options)
    assert isinstance(fast, ALFWorldVectorEnv)
    assert fast.metadata == sync.metadata
    found, expected = fast.reset(seed=11), sync.reset(seed=11)
    for _ in range(8):
        assert found[0] == expected[0]
        same(found[-1], expected[-1])
        found, expected = fast.step(["look"] * 2), sync.step(["look"] * 2)
        for ours, theirs in zip(found[1:4], expected[1:4], strict=True):
            assert ours.tolist() == theirs.tolist()


def test_a_disabled_autoreset_asks_for_a_reset_of_what_has_ended():
    envs = make(num_envs=2, autoreset_mode="Disabled", max_episode_steps=1)
    envs.reset(seed=0)
    envs.step(["look"] * 2)
    envs.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(ResetNeeded, match=r"\[1\] have ended"):
        envs.step(["look"] * 2)
    envs.reset(options={"reset_mask": np.array([False, True])})
    assert envs.step(["look"] * 2)[3].all()


class Shout(gym.ObservationWrapper):
    def observation(self, observation: str) -> str:
        return observation.upper()


@pytest.mark.parametrize("mode", [None, "vector_entry_point", "sync"])
def test_wrappers_go_around_each_game(mode: str | None):
    envs = make(mode, num_envs=2, wrappers=[Shout], vector_kwargs={"copy": False})
    assert all(observation.isupper() for observation in envs.reset(seed=3)[0])
    assert envs.envs[0].spec.max_episode_steps == 50
    assert make(num_envs=2).reset(seed=3)[0] != envs.reset(seed=3)[0]


def test_a_vector_can_be_made_again_from_its_spec():
    envs = make(num_envs=2, vector_kwargs={"autoreset_mode": "SameStep"})
    again = gym.make_vec(envs.spec)
    assert (again.num_envs, again.autoreset_mode) == (2, AutoresetMode.SAME_STEP)


@pytest.mark.parametrize("mode", [None, "sync"])
def test_games_are_asked_and_drawn_in_both_modes(mode: str | None):
    envs = make(mode, num_envs=2, render_mode="ansi")
    task = envs.get_attr("task_ids")[0][2]
    _, infos = envs.reset(seed=[5, 6], options={"task_id": task})
    assert infos["task_id"].tolist() == [task, task]
    assert envs.render_mode == "ansi"
    assert envs.render() == envs.call("render")
    assert envs.call("task_type_of", task) == tuple(infos["task_type"])
    assert envs.np_random_seed == (5, 6)
    envs.set_attr("goal", ["one", "two"])
    assert envs.get_attr("goal") == ("one", "two")


def test_tasks_can_be_named_and_some_games_reset_alone():
    envs = make(num_envs=3)
    tasks = [envs.unwrapped.task_ids[index] for index in (4, 0, 4)]
    _, infos = envs.reset(seed=0, options={"task_ids": tasks})
    assert infos["task_id"].tolist() == tasks
    before = envs.step(["look"] * 3)[0]
    after, infos = envs.reset(options={"reset_mask": np.array([False, True, False]), "task_ids": tasks})
    assert (after[0], after[2]) == (before[0], before[2])
    assert after[1].startswith("-= Welcome")
    assert infos["_task_id"].tolist() == [False, True, False]


def test_a_won_game_starts_another_task_at_the_next_step():
    envs = make(num_envs=1)
    games = envs.unwrapped.games[0].games
    task = games.task_ids[0]
    envs.reset(seed=0, options={"task_ids": [task]})
    for command in games.load(task).walkthrough:
        _, rewards, terminations, _, _ = envs.step([command])
    assert rewards.tolist() == [1.0]
    assert terminations.tolist() == [True]
    observations, rewards, terminations, _, _ = envs.step(["look"])
    assert observations[0].startswith("-= Welcome")
    assert (rewards.tolist(), terminations.tolist()) == ([0.0], [False])


def test_members_share_games_and_spaces_and_nothing_else():
    envs = make(num_envs=2)
    envs.reset(seed=0)
    first, second = envs.unwrapped.games
    assert first.games is second.games
    assert first.observation_space is second.observation_space
    assert first.np_random is not second.np_random


@pytest.mark.parametrize("bad", [{"actions": ["look"]}, {"actions": "look"}])
def test_actions_of_another_number_are_refused(bad: dict):
    envs = make(num_envs=3)
    envs.reset(seed=0)
    with pytest.raises(ConfigError, match="one entry per game, 3"):
        envs.step(bad["actions"])


def test_numbers_and_arrays_of_numpy_are_taken():
    envs, again = make(num_envs=2), make(num_envs=2)
    tasks = np.array(envs.unwrapped.task_ids[:2])
    assert envs.reset(seed=np.int64(4))[0] == again.reset(seed=4)[0]
    assert envs.reset(options={"task_ids": tasks})[1]["task_id"].tolist() == tasks.tolist()


def test_misuse_is_named():
    envs = make(num_envs=2)
    with pytest.raises(ResetNeeded):
        envs.step(["look", "look"])
    with pytest.raises(ConfigError, match="first reset"):
        envs.reset(options={"reset_mask": [True, False]})
    with pytest.raises(ConfigError, match="task_ids"):
        envs.reset(options={"task_idx": "x"})
    with pytest.raises(ConfigError, match="not both"):
        envs.reset(options={"task_id": "x", "task_ids": ["x", "x"]})
    with pytest.raises(ConfigError, match="at least 1"):
        ALFWorldVectorEnv(0, **GAMES)

from __future__ import annotations

import itertools

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

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


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({}, 60),
        ({"max_episode_steps": 7, "vector_kwargs": {"autoreset_mode": AutoresetMode.NEXT_STEP}}, 20),
        ({"max_episode_steps": 3, "vector_kwargs": {"autoreset_mode": "SameStep"}, "domain_randomization": True}, 8),
    ],
)
def test_it_answers_as_the_sync_mode_does(options: dict, steps: int):
    fast, sync = make(**options), make("sync", **options)
    assert isinstance(fast.unwrapped, ALFWorldVectorEnv)
    assert fast.metadata == sync.metadata
    rng = np.random.default_rng(0)
    found, expected = fast.reset(seed=11), sync.reset(seed=11)
    for _ in range(steps):
        assert found[0] == expected[0]
        same(found[-1], expected[-1])
        actions = [str(rng.choice(commands)) for commands in found[-1]["admissible_commands"]]
        found, expected = fast.step(actions), sync.step(actions)
        for ours, theirs in zip(found[1:4], expected[1:4], strict=True):
            assert ours.tolist() == theirs.tolist()


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


@pytest.mark.parametrize(("asked", "limit"), [(None, 50), (-1, None), (3, 3)])
def test_its_step_limit_is_that_of_the_sync_mode(asked: int | None, limit: int | None):
    for mode, unchecked in itertools.product((None, "sync"), (True, False)):
        envs = make(mode, num_envs=1, max_episode_steps=asked, disable_env_checker=unchecked)
        envs.reset(seed=0)
        assert next((step for step in range(1, 55) if envs.step(["look"])[3][0]), None) == limit
        assert ("PassiveEnvChecker" in str(envs.envs[0])) is not unchecked


def test_some_games_can_be_reset_alone():
    envs = make(num_envs=3)
    envs.reset(seed=0)
    before = envs.step(["look"] * 3)[0]
    after, infos = envs.reset(options={"reset_mask": np.array([False, True, False])})
    assert (after[0], after[2]) == (before[0], before[2])
    assert after[1].startswith("-= Welcome")
    assert infos["_task_id"].tolist() == [False, True, False]


def test_a_vector_has_games():
    with pytest.raises(ConfigError, match="at least 1"):
        ALFWorldVectorEnv(0, **GAMES)

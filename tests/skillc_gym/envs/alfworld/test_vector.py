"""Many games at once: vectors, and the same answers in other processes, in threads, in both, and in Ray's workers."""

import itertools
import multiprocessing
import sys
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from skillc_gym.envs.alfworld.data import game_set as games_module
from skillc_gym.envs.alfworld.data.game_set import FileGames
from skillc_gym.envs.alfworld.data.games import open_games
from skillc_gym.envs.alfworld.data.sources import open_source
from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.env import ALFWorldEnv
from skillc_gym.envs.alfworld.vector import ALFWorldVectorEnv
from skillc_gym.errors import ConfigError

GAMES: dict[str, Any] = {"data": "generated", "generator": {"seed": 2, "games_per_type": 3, "size": "small"}}
METHODS = [name for name in ("fork", "forkserver", "spawn") if name in multiprocessing.get_all_start_methods()]
STEPS = 12


def make(mode: str | None = None, num_envs: int = 5, **options: Any) -> gym.vector.VectorEnv:
    if mode == "sync" and "autoreset_mode" in options:
        options["vector_kwargs"] = {"autoreset_mode": options.pop("autoreset_mode")}
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
        ({"max_episode_steps": 7, "autoreset_mode": AutoresetMode.NEXT_STEP}, 20),
        ({"max_episode_steps": 3, "autoreset_mode": "SameStep", "domain_randomization": True}, 8),
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


@pytest.mark.parametrize("asked", [{"wrappers": [gym.Wrapper]}, {"vector_kwargs": {"copy": False}}])
def test_what_is_for_the_sync_mode_goes_there_and_is_refused_by_the_fast_vector(asked: dict[str, Any]):
    assert make("sync", num_envs=1, **asked).envs[0].spec.max_episode_steps == 50
    with pytest.raises(gym.error.Error, match=next(iter(asked))):
        make(**asked)


def test_a_vector_has_games_and_can_be_made_again_from_its_spec():
    again = gym.make_vec(make(num_envs=2, autoreset_mode="SameStep").spec)
    assert (again.num_envs, again.autoreset_mode) == (2, AutoresetMode.SAME_STEP)
    with pytest.raises(ConfigError, match="num_envs is a whole number from 1 up"):
        ALFWorldVectorEnv(0, **GAMES)


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


# Other processes, and threads --------------------------------------------------------------------------------------


def native_transcript() -> list[Any]:
    """What a vector of environments says along a fixed walk."""
    envs = ALFWorldVectorEnv(3, max_episode_steps=5, **GAMES)
    observations, infos = envs.reset(seed=3)
    said: list[Any] = [observations]
    for step in range(STEPS):
        actions = [some[(7 * step + index) % len(some)] for index, some in enumerate(infos["admissible_commands"])]
        observations, rewards, won, cut, infos = envs.step(actions)
        said.append((observations, rewards.tolist(), won.tolist(), cut.tolist(), infos["task_id"].tolist()))
    return said


@pytest.mark.parametrize("method", METHODS)
def test_a_vector_answers_alike_in_another_process(method):
    expected = native_transcript()
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.apply(native_transcript) == expected


def test_threads_that_share_games_answer_as_one_thread_does(folder, monkeypatch):
    monkeypatch.setattr(games_module, "LOADED_GAMES", 2)
    games = open_games(folder, split="valid_seen")
    work = [games.task_ids[index % len(games.task_ids)] for index in range(48)]

    def play(task_id: str) -> list[Any]:
        env = ALFWorldEnv(data=folder, split="valid_seen")
        said: list[Any] = [env.reset(seed=1, options={"task_id": task_id})]
        for step in range(STEPS):
            commands = said[-1][-1]["admissible_commands"]
            said.append(env.step(commands[(5 * step + 3) % len(commands)]))
        return said

    expected, interval = {task_id: play(task_id) for task_id in games.task_ids}, sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(play, work)) == [expected[task_id] for task_id in work]
    finally:
        sys.setswitchinterval(interval)


class Dropping(OrderedDict):
    def get(self, key, default=None):
        return self.pop(key, default)


def test_another_thread_may_load_or_drop_a_game_at_any_moment(folder, monkeypatch):
    games = FileGames(open_source(folder, "valid_seen"))
    name = games.task_ids[0]
    parse, waiting = Game.parse, [games.load]

    def slowly(task_id: str, raw: Any) -> Game:
        if waiting:
            waiting.pop()(task_id)  # the other thread
        return parse(task_id, raw)

    monkeypatch.setattr(games_module.Game, "parse", slowly)
    game = games.load(name)
    assert games.load(name) is game
    assert len(games._loaded) == 1
    games._loaded = Dropping(games._loaded)
    assert games.load(name) is game


@pytest.mark.slow
def test_rays_workers_answer_alike():
    ray = pytest.importorskip("ray", reason="needs the ray extra")
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers cannot import a test
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        assert ray.get(ray.remote(num_cpus=0)(native_transcript).remote()) == native_transcript()
    finally:
        ray.shutdown()

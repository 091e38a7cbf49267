"""The same answers in other processes, in threads, in vectors of both, and in Ray's actors."""

from __future__ import annotations

import multiprocessing
import sys
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from skillc_gym.envs.alfworld.data import game_set as games_module
from skillc_gym.envs.alfworld.data.game_set import FileGames
from skillc_gym.envs.alfworld.data.games import open_games
from skillc_gym.envs.alfworld.data.sources import open_source
from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.env import ALFWorldEnv
from skillc_gym.envs.alfworld.vector import ALFWorldVectorEnv

GAMES: dict[str, Any] = {"data": "generated", "generator": {"seed": 4, "games_per_type": 2, "size": "small"}}
METHODS = [name for name in ("fork", "forkserver", "spawn") if name in multiprocessing.get_all_start_methods()]
STEPS = 12


def native_transcript(count: int = 3) -> list[Any]:
    """What a vector of environments says along a fixed walk."""
    envs = ALFWorldVectorEnv(count, max_episode_steps=5, **GAMES)
    observations, infos = envs.reset(seed=3)
    said: list[Any] = [observations]
    for step in range(STEPS):
        actions = [some[(7 * step + index) % len(some)] for index, some in enumerate(infos["admissible_commands"])]
        observations, rewards, won, cut, infos = envs.step(actions)
        said.append((observations, rewards.tolist(), won.tolist(), cut.tolist(), infos["task_id"].tolist()))
    return said


def episode(env: ALFWorldEnv, task_id: str) -> list[Any]:
    said: list[Any] = [env.reset(seed=1, options={"task_id": task_id})]
    for step in range(STEPS):
        commands = said[-1][-1]["admissible_commands"]
        said.append(env.step(commands[(5 * step + 3) % len(commands)]))
    return said


@pytest.mark.parametrize("method", METHODS)
def test_a_vector_answers_alike_in_another_process(method):
    expected = native_transcript()
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.apply(native_transcript) == expected


def test_threads_that_share_games_answer_as_one_thread_does(folder, monkeypatch):
    monkeypatch.setattr(games_module, "LOADED_GAMES", 2)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    games = open_games(folder, split="valid_seen")
    work = [games.task_ids[index % len(games.task_ids)] for index in range(48)]

    def play(task_id: str) -> list[Any]:
        return episode(ALFWorldEnv(data=folder, split="valid_seen"), task_id)

    try:
        expected = {task_id: play(task_id) for task_id in games.task_ids}
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(play, work)) == [expected[task_id] for task_id in work]
    finally:
        sys.setswitchinterval(interval)


def test_a_game_may_be_dropped_by_another_thread_just_when_it_is_found(folder):
    class Dropping(OrderedDict):
        def get(self, key, default=None):
            return self.pop(key, default)

    games = FileGames(open_source(folder, "valid_seen"))
    game = games.load(games.task_ids[0])
    games._loaded = Dropping(games._loaded)
    assert games.load(games.task_ids[0]) is game


def test_a_game_that_another_thread_has_just_loaded_is_shared(folder, monkeypatch):
    games = FileGames(open_source(folder, "valid_seen"))
    name = games.task_ids[0]
    first: list[Game] = []
    parse = Game.parse

    def slowly(task_id: str, raw: Any) -> Game:
        if not first:
            first.append(parse(task_id, raw))
            games.load(task_id)  # the other thread
        return parse(task_id, raw)

    monkeypatch.setattr(games_module.Game, "parse", slowly)
    assert games.load(name) is games.load(name)
    assert len(games._loaded) == 1


@pytest.mark.slow
def test_rays_actors_answer_alike():
    ray = pytest.importorskip("ray", reason="needs the ray extra")
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the actors cannot import a test
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        player = ray.remote(num_cpus=0)(Player)
        actors = [player.remote(seed) for seed in range(3)]
        here = [Player(seed) for seed in range(3)]
        assert ray.get([actor.play.remote() for actor in actors]) == [one.play() for one in here]
        moment = ray.get(actors[0].snapshot.remote())
        assert moment == here[0].snapshot()
        assert ray.get(actors[1].go_on.remote(moment)) == here[2].go_on(moment)
        assert ray.get(ray.remote(num_cpus=0)(native_transcript).remote()) == native_transcript()
    finally:
        ray.shutdown()


class Player:
    """An environment with its episode, as one would put it into an actor."""

    def __init__(self, seed: int) -> None:
        self.env = ALFWorldEnv(**GAMES)
        self.seed = seed

    def play(self) -> list[Any]:
        return episode(self.env, self.env.task_ids[self.seed])

    def snapshot(self) -> Any:
        return self.env.snapshot()

    def go_on(self, moment: Any) -> Any:
        return self.env.restore(moment), self.env.step("look")

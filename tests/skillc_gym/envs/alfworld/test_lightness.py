"""Many environments stay small and quick; generous bounds that only a mistake of an order of magnitude breaks."""

from __future__ import annotations

import subprocess
import sys
import time
import tracemalloc

from skillc_gym.envs.alfworld.data.games import open_games
from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.engine.world import World

MANY = """
import sys
from benchmarks.bench_alfworld import _play_many
print(_play_many({"data": sys.argv[1], "split": "valid_unseen"}, 1024, 128))
"""


def test_a_thousand_environments_over_real_games_fit_into_400_mb(alfworld_data):
    answer = subprocess.run(
        [sys.executable, "-c", MANY, str(alfworld_data)], check=True, capture_output=True, text=True, timeout=120
    )
    assert float(answer.stdout) < 400


def test_a_world_costs_next_to_nothing_once_its_game_is_loaded(template):
    game = Game.parse("train/pick_and_place_simple-Mug-None-Desk-1/trial_1", template)
    warm = World(game)
    warm.reset()
    tracemalloc.start()
    worlds = [World(game) for _ in range(1000)]
    for world in worlds:
        world.reset()
        world.step(world.admissible[0])
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert grown / len(worlds) < 2000


def test_views_that_are_remembered_are_bounded(house):
    game = house(2)[1]
    world = World(game)
    world.reset()
    for step in range(5000):
        commands = world.admissible
        world.step(commands[step * 7919 % len(commands)])
    assert len(game.views) <= 256


def test_stepping_is_quick(alfworld_data):
    games = open_games(alfworld_data, split="valid_unseen")
    world = World(games.load(games.task_ids[0]))
    world.reset()
    started = time.perf_counter()
    for step in range(4000):
        commands = world.admissible
        world.step(commands[step * 7919 % len(commands)])
    # A tenth of what `make bench` asks for: the machine may be busy.
    assert 4000 / (time.perf_counter() - started) > 2000

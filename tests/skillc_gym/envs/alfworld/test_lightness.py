"""Many environments stay small and quick; generous bounds that only a mistake of an order of magnitude breaks."""

from __future__ import annotations

import tracemalloc

from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.engine.world import World


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

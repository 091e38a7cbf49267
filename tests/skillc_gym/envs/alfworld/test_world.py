from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from benchmarks.parity_alfworld import random_walk
from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.engine.world import NOTHING_HAPPENS, World
from skillc_gym.errors import InvalidGameError

SEEDS = range(10)


def walk(game, seed, steps=40):
    return random_walk(game, np.random.default_rng(seed), steps)


@pytest.mark.parametrize("seed", SEEDS)
def test_admissible_commands_are_sorted_unique_known_and_carried_out(house, seed):
    _, game = house(seed)
    world = World(game)
    world.reset()
    for command in walk(game, seed):
        assert world.admissible == sorted(set(world.admissible))
        assert set(world.admissible) <= set(game.commands)
        expected = command.strip() in world.admissible
        before, view = world.state, world.admissible
        feedback, valid = world.step(command)
        assert valid == expected
        if not valid:
            assert (feedback, world.state, world.admissible) == (NOTHING_HAPPENS, before, view)


def test_a_mutated_list_of_commands_changes_nothing(house):
    world = World(house(3)[1])
    world.reset()
    world.admissible.clear()
    assert world.admissible


def test_a_state_of_another_game_is_refused(house):
    worlds = [World(house(seed)[1]) for seed in range(8)]
    states = {(len(world.state.inside), len(world.state.lying)): world.state for world in worlds}
    shapes = list(states)
    assert len(shapes) > 1
    for world in worlds:
        own = (len(world.game.receptacles), len(world.game.places))
        for shape in shapes:
            if shape != own:
                with pytest.raises(InvalidGameError, match="does not belong"):
                    world.restore(states[shape])


def changed(key, old, new):
    def change(raw):
        assert old in raw[key]
        return {**raw, key: raw[key].replace(old, new, 1)}

    return change


def another_heat(raw):
    before, name, after = raw["pddl_domain"].partition("HeatObject")
    return {**raw, "pddl_domain": before + name + after.replace("(isHot ?o)", "(isClean ?o)", 1)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda raw: {**raw, "pddl_problem": None}, "no text under 'pddl_problem'"),
        (lambda raw: {**raw, "walkthrough": "go"}, "walkthrough"),
        (lambda raw: {**raw, "pddl_domain": "(define (domain other))"}, "missing actions"),
        (changed("pddl_problem", "(atLocation agent1", "(atlocation2 agent1"), "0 agents"),
        (changed("pddl_problem", "(:init", "(:init (holdsAny agent1)"), "hands"),
        (changed("pddl_problem", "(:init", "(:init (inReceptacle agent1 agent1)"), "other types"),
        (another_heat, r"heatobject.*engine='textworld'"),
    ],
)
def test_content_that_is_no_game_is_refused(template, change, message):
    with pytest.raises(InvalidGameError, match=message):
        Game.parse("train/pick_and_place_simple-Mug-None-Desk-1/trial_1", change(template))


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
    assert len(game.offers) <= 256

from __future__ import annotations

import itertools

import numpy as np
import pytest

from benchmarks.parity.alfworld import random_walk
from skillc_gym.envs.alfworld.engine.goals import compile_goal
from skillc_gym.envs.alfworld.engine.pddl import parse_expression, parse_problem
from skillc_gym.envs.alfworld.engine.tables import Tables
from skillc_gym.envs.alfworld.engine.world import World
from skillc_gym.errors import InvalidGameError

FLAGS = {
    "isclean": "clean",
    "ishot": "hot",
    "iscool": "cool",
    "issliced": "sliced",
    "istoggled": "toggled",
    "ison": "lit",
}


def slow(condition, binding, tables, state):
    """The meaning of a goal, tried out on everything there is."""
    head, rest = condition[0], condition[1:]
    if head in ("and", "or"):
        return (all if head == "and" else any)(slow(part, binding, tables, state) for part in rest)
    if head == "not":
        return not slow(rest[0], binding, tables, state)
    if head == "imply":
        return not slow(rest[0], binding, tables, state) or slow(rest[1], binding, tables, state)
    if head in ("exists", "forall"):
        words = [word for word in rest[0] if word != "-"]
        pairs = list(zip(words[::2], words[1::2], strict=True))
        pools = [[n for n, its in tables.problem.types.items() if kind in ("object", its)] for _, kind in pairs]
        return (any if head == "exists" else all)(
            slow(rest[1], binding | dict(zip([name for name, _ in pairs], chosen, strict=True)), tables, state)
            for chosen in itertools.product(*pools)
        )
    names = tuple(binding.get(word, word) for word in rest)
    return names[0] == names[1] if head == "=" else fact(head, names, tables, state)


def fact(head, names, tables, state):
    thing = tables.objects.get(names[0], -1)
    if head in FLAGS:
        return thing >= 0 and bool(getattr(state, FLAGS[head]) >> thing & 1)
    if head == "inreceptacle":
        return names[1] in tables.receptacles and thing in state.inside[tables.receptacles[names[1]]]
    if head == "atlocation":
        return tables.places.get(names[1]) == state.place
    if head == "holds":
        return tables.objects.get(names[1], -2) == state.held
    if head == "opened":
        return names[0] in tables.receptacles and bool(state.opened >> tables.receptacles[names[0]] & 1)
    return names in tables.problem.holding(head)


@pytest.mark.parametrize("seed", range(12))
def test_a_compiled_goal_means_what_it_says(house, seed):
    raw, game = house(seed)
    tables = Tables(parse_problem(raw["pddl_problem"]))
    goal = compile_goal(tables)
    world = World(game)
    world.reset()
    for command in random_walk(game, np.random.default_rng(seed), 25):
        world.step(command)
        expected = slow(tables.problem.goal, {}, tables, world.state)
        assert goal.reached(world.state) == expected
        assert world.won == expected


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ("(checked ?r)", "neither an object"),
        ("(exists (?r - receptacle) (checked ?r))", "checked"),
        ("(isHot ?o)", "neither an object"),
        ("(forall (?a - object ?b - object ?c - object ?d - object) (or (= ?a ?b) (= ?c ?d)))", "more than"),
    ],
)
def test_goals_that_cannot_be_played_are_refused(house, goal, message):
    with pytest.raises(InvalidGameError, match=message):
        house(1, goal=goal)


def test_a_goal_without_conditions_is_won():
    problem = parse_problem("(define (problem p) (:objects a - object) (:init (x a)) (:goal (and)))")
    assert parse_expression("(and)") == ["and"]
    assert compile_goal(Tables(problem)).reached(None)

"""PDDL: what is written is read, what is wrong is said, and a compiled goal means what is written."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.parity_alfworld import random_walk
from skillc_gym.envs.alfworld.engine.goals import compile_goal
from skillc_gym.envs.alfworld.engine.pddl import (
    MAX_CHARACTERS,
    cleaning_kinds,
    domain_actions,
    domain_text,
    parse_expression,
    parse_problem,
)
from skillc_gym.envs.alfworld.engine.tables import Tables
from skillc_gym.envs.alfworld.engine.world import World
from skillc_gym.errors import InvalidGameError

WORDS = st.text("abcxyz_019-:", min_size=1, max_size=8)
TREES = st.recursive(WORDS, lambda inner: st.lists(inner, max_size=5), max_leaves=40).filter(
    lambda tree: isinstance(tree, list)
)
PROBLEM = """(define (problem p) (:domain alfred)
(:objects a b - Object ; a comment (with brackets
 l - location rest)
(:init (At A l) (at a l) (near a b) (= (total-cost) 0))
(:goal (and (at a l))))"""


def write(tree):
    return tree if isinstance(tree, str) else f"( {' '.join(map(write, tree))} )"


@given(TREES)
def test_what_is_written_is_read(tree):
    assert parse_expression(write(tree)) == tree


def test_a_text_that_is_too_long_is_not_read():
    with pytest.raises(InvalidGameError, match="at most 1,000,000"):
        parse_expression(" " * (MAX_CHARACTERS + 1))


def test_a_problem_is_read_in_lower_case_without_costs_comments_and_duplicates():
    problem = parse_problem(PROBLEM)
    assert problem.types == {"a": "object", "b": "object", "l": "location", "rest": "object"}
    assert list(problem.holding("at")) == [("a", "l")]
    assert list(problem.holding("far")) == []
    assert problem.goal == ["and", ["at", "a", "l"]]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("(:goal (and (at a l)))", "", "no .:goal"),
        ("(:goal (and (at a l)))", "(:goal a)", "not one condition"),
        ("(near a b)", "(near a c)", "'c', which is not declared"),
        ("(near a b)", "near", "which is no fact"),
        ("a b - Object", "a a - Object", "twice"),
        (")))", ")", "cut off"),
        (")))", "))))", "without its"),
        ("(near a b)", "(near ä b)", "outside ASCII"),
        ("(:goal (and (at a l)))", "(:goal (and (at a l))) (:goal (and))", r"section \(:goal \.\.\.\) twice"),
        ("(:domain alfred)", "(:domain alfred) (:DOMAIN other)", "section .:domain .* twice"),
    ],
)
def test_what_is_wrong_is_said(old, new, message):
    with pytest.raises(InvalidGameError, match=message):
        parse_problem(PROBLEM.replace(old, new))


# Goals ------------------------------------------------------------------------------------------------------------

FLAGS = {"ison": "lit"} | {f"is{name}": name for name in ("hot", "cool", "clean", "sliced", "toggled")}


def holds(condition, binding, tables, state):
    """The meaning of a goal, tried out on everything there is."""
    head, rest = condition[0], condition[1:]

    def part(number, more=()):
        return holds(rest[number], binding | dict(more), tables, state)

    if head in ("and", "or"):
        return (all if head == "and" else any)(map(part, range(len(rest))))
    if head == "not":
        return not part(0)
    if head == "imply":
        return not part(0) or part(1)
    if head in ("exists", "forall"):
        words = [word for word in rest[0] if word != "-"]
        pools = [[n for n, its in tables.problem.types.items() if kind in ("object", its)] for kind in words[1::2]]
        chosen = itertools.product(*pools)
        return (any if head == "exists" else all)(part(1, zip(words[::2], names, strict=True)) for names in chosen)
    names = tuple(binding.get(word, word) for word in rest)
    return names[0] == names[1] if head == "=" else fact(head, names, tables, state)


def fact(head, names, tables, state):
    thing = tables.objects.get(names[0], -1)
    if head in FLAGS:
        return thing >= 0 and bool(getattr(state, FLAGS[head]) >> thing & 1)
    receptacle = tables.receptacles.get(names[-1], -1)
    if head == "inreceptacle":
        return receptacle >= 0 and thing in state.inside[receptacle]
    if head == "atlocation":
        return tables.places.get(names[1]) == state.place
    if head == "holds":
        return tables.objects.get(names[1], -2) == state.held
    if head == "opened":
        return receptacle >= 0 and bool(state.opened >> receptacle & 1)
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
        expected = holds(tables.problem.goal, {}, tables, world.state)
        assert goal.reached(world.state) == expected
        assert world.won == expected


def test_a_domain_that_cleans_at_basins_alone_is_alfworlds_too():
    basins = domain_text().replace("(receptacleType ?r SinkType) ", "")
    assert domain_actions(basins) == domain_actions(domain_text())
    assert cleaning_kinds(basins) == ("sinkbasintype",)
    assert cleaning_kinds(domain_text()) == ("sinktype", "sinkbasintype")


def test_goals_that_cannot_be_played_are_refused(house):
    with pytest.raises(InvalidGameError, match="neither an object"):
        house(1, goal="(checked ?r)")
    with pytest.raises(InvalidGameError, match="checked"):
        house(1, goal="(exists (?r - receptacle) (checked ?r))")


def test_a_goal_without_conditions_is_won():
    problem = parse_problem("(define (problem p) (:objects a - object) (:init (x a)) (:goal (and)))")
    assert compile_goal(Tables(problem)).reached(None)

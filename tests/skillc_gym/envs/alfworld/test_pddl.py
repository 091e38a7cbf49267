from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.envs.alfworld.engine.pddl import MAX_CHARACTERS, MAX_DEPTH, parse_expression, parse_problem
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


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(InvalidGameError):
        assert isinstance(parse_expression(text), list)


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


def test_size_and_depth_are_bounded():
    with pytest.raises(InvalidGameError, match="nested more than"):
        parse_expression("(" * (MAX_DEPTH + 1) + ")" * (MAX_DEPTH + 1))
    with pytest.raises(InvalidGameError, match="at most"):
        parse_expression("(" + " " * MAX_CHARACTERS + ")")

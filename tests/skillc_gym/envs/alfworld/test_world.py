"""The native engine: what is written is read, a goal means what it says, what can be done and said, what is refused."""

import functools
import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from odd_houses import replaced

from benchmarks.parity_alfworld import random_walk
from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.engine.goals import compile_goal
from skillc_gym.envs.alfworld.engine.pddl import (
    cleaning_kinds,
    domain_actions,
    domain_text,
    parse_expression,
    parse_problem,
)
from skillc_gym.envs.alfworld.engine.tables import Tables
from skillc_gym.envs.alfworld.engine.wording import goal_of, read_wording
from skillc_gym.envs.alfworld.engine.world import World
from skillc_gym.errors import InvalidGameError

TASK_ID = "train/pick_and_place_simple-Mug-None-Desk-1/trial_1"
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


def test_a_goal_without_conditions_is_won_and_one_that_cannot_be_played_is_refused(house):
    problem = parse_problem("(define (problem p) (:objects a - object) (:init (x a)) (:goal (and)))")
    assert compile_goal(Tables(problem)).reached(None)
    with pytest.raises(InvalidGameError, match="checked"):
        house(1, goal="(exists (?r - receptacle) (checked ?r))")


# Games --------------------------------------------------------------------------------------------------------------


def test_a_state_of_another_game_is_refused(house):
    worlds = [World(house(seed)[1]) for seed in range(8)]
    states = {(len(world.state.inside), len(world.state.lying)): world.state for world in worlds}
    assert len(states) > 1
    for world in worlds:
        own = (len(world.game.receptacles), len(world.game.places))
        for other in states.keys() - {own}:
            with pytest.raises(InvalidGameError, match="does not belong"):
                world.restore(states[other])


said = functools.partial(replaced, "grammar")


def another_heat(raw):
    before, name, after = raw["pddl_domain"].partition("HeatObject")
    return {**raw, "pddl_domain": before + name + after.replace("(isHot ?o)", "(isClean ?o)", 1)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda raw: {**raw, "pddl_problem": None}, "no text under 'pddl_problem'"),
        (lambda raw: {**raw, "walkthrough": "go"}, "walkthrough"),
        (lambda raw: {**raw, "pddl_domain": "(define (domain other))"}, "missing actions"),
        (replaced("pddl_problem", "(atLocation agent1", "(atlocation2 agent1"), "0 agents"),
        (replaced("pddl_problem", "(:init", "(:init (holdsAny agent1)"), "hands"),
        (replaced("pddl_problem", "(:init", "(:init (inReceptacle agent1 agent1)"), "other types"),
        (another_heat, r"heatobject.*engine='textworld'"),
        (said("isclean(o:object) & issliced(o:object)", "isclean(o:object)"), "examineObject.*engine='textworld'"),
        (said("You close the {r.name}.", "You close the #other#."), "other"),
        (said("close {r}", "close {q}"), "'q'"),
        (said("#examineObject.feedback#", "You see {o.name}."), "'#examineObject.feedback#' was expected"),
        (said("#cleanObject.feedback#", "#toggleObject.feedback#"), "one of 3 sentences.*engine='textworld'"),
        (said('"list_empty"', '"no_list"'), "no rule 'list_empty'"),
        (said("action look", "deed look"), "'deed'"),
        (said("template :: ", "template : "), "cannot be read"),
        (said("Your task is to:", "Your task is #to#:"), "not plain text"),
    ],
)
def test_content_that_is_no_game_is_refused(template, change, message):
    with pytest.raises(InvalidGameError, match=message) as caught:
        Game.parse(TASK_ID, change(template))
    assert TASK_ID in str(caught.value)


def test_a_world_costs_next_to_nothing_once_its_game_is_loaded(template):
    game = Game.parse(TASK_ID, template)
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


# Words ------------------------------------------------------------------------------------------------------------


def test_games_share_their_words_and_differ_in_the_task(template):
    words, task = read_wording(template["grammar"])
    other, other_task = read_wording(template["grammar"].replace("Your task is to: ", "Your task is to: now "))
    assert other is words
    assert other_task == task.replace("to: ", "to: now ")
    assert goal_of(other_task) == f"now {goal_of(task)}"
    assert [words.listing(["x", "y", "z"][:count]) for count in range(4)] == ["nothing", "x", "x, and y", "x, y, and z"]


def test_a_game_without_help_does_not_offer_it(template):
    domain = template["pddl_domain"].partition("(:action help")[0] + ")"
    world = World(Game.parse(TASK_ID, {**template, "pddl_domain": domain}))
    assert "help" not in world.admissible
    assert world.step("help") == ("Nothing happens.", False)

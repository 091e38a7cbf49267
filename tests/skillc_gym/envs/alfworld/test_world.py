"""The native engine: what can be done, what is said, and what is refused as a game."""

import functools
import tracemalloc

import pytest
from odd_houses import replaced

from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.engine.wording import goal_of, read_wording
from skillc_gym.envs.alfworld.engine.world import World
from skillc_gym.errors import InvalidGameError

TASK_ID = "train/pick_and_place_simple-Mug-None-Desk-1/trial_1"


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


def test_lists_are_written_with_commas_and_a_last_and(template):
    words, _ = read_wording(template["grammar"])
    assert [words.listing(["x", "y", "z"][:count]) for count in range(4)] == ["nothing", "x", "x, and y", "x, y, and z"]


def test_a_game_without_help_does_not_offer_it(template):
    domain = template["pddl_domain"].partition("(:action help")[0] + ")"
    world = World(Game.parse(TASK_ID, {**template, "pddl_domain": domain}))
    assert "help" not in world.admissible
    assert world.step("help") == ("Nothing happens.", False)

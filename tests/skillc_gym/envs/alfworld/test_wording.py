from __future__ import annotations

import pytest

from benchmarks.parity_alfworld import older_wording
from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.engine.grammar import Part, parse_grammar, split_sentence
from skillc_gym.envs.alfworld.engine.wording import goal_of, read_wording
from skillc_gym.envs.alfworld.engine.world import World
from skillc_gym.errors import InvalidGameError

TASK_ID = "train/pick_and_place_simple-Mug-None-Desk-1/trial_1"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("\nAvailable\n  x\n", [Part("text", "Available\n  x\n")]),
        ("a; b", [Part("text", "a")]),
        ('put "x" in y', [Part("text", "put "), Part("text", "x"), Part("text", " in y")]),
        ("x # y", [Part("text", "x ")]),
        ("a<b", [Part("text", "a")]),
        ("it's 5 > 3", [Part("text", "it's 5 ")]),
        ("#task#  x", [Part("rule", "task"), Part("text", "  x")]),
        ("{ r.name }\n b", [Part("value", "r.name"), Part("text", "\n b")]),
        ("[{o.name | in(o:object)}].", [Part("list", "o.name", "in(o:object)"), Part("text", ".")]),
        ("{r.name} (in {r.name})}", [Part("value", "r.name"), Part("text", " (in "), Part("value", "r.name"),
                                     Part("text", ")")]),
    ],
)  # fmt: skip
def test_sentences_are_split_as_upstream_splits_them(text, parts):
    assert split_sentence(text) == parts


def test_the_goal_is_the_task_without_its_prefix():
    assert goal_of("Your task is to: put a mug in desk.") == "put a mug in desk."
    assert goal_of("something else") == "something else"


def test_games_share_their_words_and_differ_in_the_task(template):
    words, task = read_wording(template["grammar"])
    other, other_task = read_wording(template["grammar"].replace("Your task is to: ", "Your task is to: now "))
    assert other is words
    assert other_task == task.replace("to: ", "to: now ")


def test_lists_are_written_with_commas_and_a_last_and(template):
    words, _ = read_wording(template["grammar"])
    assert [words.listing(["x", "y", "z"][:count]) for count in range(4)] == ["nothing", "x", "x, and y", "x, y, and z"]


def test_the_older_words_come_from_the_games_own_grammar(template):
    world = World(Game.parse(TASK_ID, older_wording(template)))
    world.reset()
    command = next(command for command in world.admissible if command.startswith("go to"))
    assert world.step(command)[0].startswith("You arrive at loc ")
    assert all(" in/on " in command for command in world.game.commands if command.startswith(("put", "move")))


def test_a_game_without_help_does_not_offer_it(template):
    raw = dict(template)
    start = raw["pddl_domain"].index("(:action help")
    raw["pddl_domain"] = raw["pddl_domain"][:start] + ")"
    world = World(Game.parse(TASK_ID, raw))
    assert "help" not in world.admissible
    assert world.step("help") == ("Nothing happens.", False)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("isclean(o:object) & issliced(o:object)", "isclean(o:object)", "examineObject.feedback.*engine='textworld'"),
        ("You close the {r.name}.", "You close the #other#.", "other"),
        ("close {r}", "close {q}", "'q'"),
        ("#examineObject.feedback#", "You see {o.name}.", "'#examineObject.feedback#' was expected"),
        ("#cleanObject.feedback#", "#toggleObject.feedback#", "one of 3 sentences.*engine='textworld'"),
        ('"list_empty"', '"no_list"', "no rule 'list_empty'"),
        ("action look", "deed look", "'deed'"),
        ("template :: ", "template : ", "cannot be read"),
        ("Your task is to:", "Your task is #to#:", "not plain text"),
    ],
)
def test_a_grammar_that_is_not_alfworlds_is_refused(template, old, new, message):
    assert old in template["grammar"]
    raw = {**template, "grammar": template["grammar"].replace(old, new)}
    with pytest.raises(InvalidGameError, match=message) as caught:
        Game.parse(TASK_ID, raw)
    assert TASK_ID in str(caught.value)


def test_a_document_that_ends_early_is_refused():
    for text in ("action x {", "action x { template ::", "grammar :: ", 'grammar :: """{]""";', "x"):
        with pytest.raises(InvalidGameError):
            parse_grammar(text)

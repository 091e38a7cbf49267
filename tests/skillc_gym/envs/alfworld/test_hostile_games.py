"""Game files made to do harm: each is refused in words, within bounded memory, and nothing in it is carried out."""

import contextlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confined import opened, refused
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from odd_houses import replaced

from skillc_gym.envs.alfworld.data import sources
from skillc_gym.envs.alfworld.data.games import open_games
from skillc_gym.envs.alfworld.engine import game as game_module
from skillc_gym.envs.alfworld.engine.game import MAX_ANSWER, Game
from skillc_gym.envs.alfworld.engine.grammar import split_sentence
from skillc_gym.envs.alfworld.engine.pddl import predicates
from skillc_gym.envs.alfworld.engine.world import World
from skillc_gym.errors import InvalidGameError

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is limited as on Linux")

TASK_ID = "valid_seen/pick_and_place_simple-Mug-None-Desk-1/trial_1"
CODE = "__import__('os').mkdir('carried out')"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "json_2.1.1" / TASK_ID / "game.tw-pddl"
    path.parent.mkdir(parents=True)
    return path


def objects(count: int, facts: str = "", name: str = "x{0}") -> Callable[[dict[str, Any]], dict[str, Any]]:
    made = [name.format(index) for index in range(count)]
    names, known = " ".join(made), " ".join(facts.format(one) for one in made)
    return lambda raw: {
        **raw,
        "pddl_problem": raw["pddl_problem"]
        .replace("(:objects", f"(:objects {names} - object\n", 1)
        .replace("(:init", f"(:init {known}", 1),
    }


def goal(text: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda raw: {**raw, "pddl_problem": re.sub(r"\(:goal[\s\S]*", f"(:goal {text}))", raw["pddl_problem"])}


def nested(depth: int, text: str = "(and ", inner: str = "") -> str:
    return "".join(text.format(level) for level in range(depth)) + inner + ")" * depth


CONTAINED = " ".join(f"(canContain ?{holder} ?k)" for holder in "abcdef")
SAID = "You close the {r.name}."
CONTENTS = {
    "code in a sentence": (replaced("grammar", SAID, f"{{{CODE}}}"), "does not know"),
    "code behind a variable": (replaced("grammar", SAID, "{r.name.__class__.__init__.__globals__}"), "does not know"),
    "code in a query": (replaced("grammar", SAID, f"[{{r.name | {CODE}}}]"), "does not know"),
    "code in a list": (replaced("grammar", SAID, f"[{{{CODE} | openable(r:receptacle)}}]"), "does not know"),
    "code in a command": (replaced("grammar", "close {r}", f"close {{{CODE}}}"), "does not know"),
    "code in a condition": (replaced("grammar", "holdsany(a:agent)", CODE), "depends on"),
    "code in a type": (replaced("pddl_domain", ":action look", f":action look{CODE}"), "not ALFWorld's"),
    "fields of a template": (replaced("grammar", SAID, "{0}"), "'0'"),
    "100,000 objects": (objects(100_000), "at most 5,000"),
    "1,000,000 objects": (objects(200_000), "1,000,000 are read|has .* bytes"),
    "4,000 things": (objects(4_000, "(pickupable {0})"), "at most 1,000 fit"),
    "900 things with long names": (objects(900, "(isClean {0})", "x" * 100 + "{0}"), "at most 32,768"),
    "a grammar cut off": (lambda raw: {**raw, "grammar": "action x { template ::"}, "the end"),
    "rules cut off": (lambda raw: {**raw, "grammar": 'grammar :: """{]""";'}, "not the JSON"),
    "an action twice": (replaced("pddl_domain", "(:action look", "(:action help) (:action look"), "an action twice"),
    "a won game": (replaced("pddl_problem", "(:goal", "(:goal (and)) (:goal"), "twice"),
    "actions without names": (replaced("pddl_domain", "(:action look", "(:action) (:action look"), "without a name"),
    "a name of 100,000 letters": (replaced("pddl_problem", "(:objects", f"(:objects {'x' * 100_000}"), "100,000 char"),
    "a giant problem": (replaced("pddl_problem", "(:objects", "(:objects" + " " * 1_100_000), "at most 1,000,000"),
    "a giant grammar": (replaced("grammar", SAID, "x" * 300_000), "at most 200,000"),
    "a giant task": (replaced("grammar", "Your task is to: ", "Your task is to: " + "x" * 40_000), "at most 32,768"),
    "a giant command": (replaced("grammar", "close {r}", "close {r}" + "x" * 10_000), "at most 4,096|at most 32,768"),
    "a thing said a thousand times": (replaced("grammar", SAID, "You close the {r.name}{r.name}."), "a thing twice"),
    "deep PDDL": (replaced("pddl_problem", "(:init", "(:init " + nested(100_000)), "nested more than"),
    "deep rules": (replaced("grammar", '"intro"', f'"x": {"[" * 90_000}{"]" * 90_000}, "intro"'), "not the JSON"),
    "half a character": (replaced("grammar", "Your task is to: ", "Your task is to: \\ud800"), "not the JSON"),
    "a goal over every object": (goal("(exists (?a ?b ?c ?d) (not (and)))"), "ground conditions"),
    "a goal that multiplies facts": (
        goal(f"(exists (?a ?b ?c ?d ?e ?f ?k ?l) (and {CONTAINED} (= ?k ?l)))"),
        "ground conditions",
    ),
    "a goal of many variables": (goal(f"(exists ({' '.join(f'?v{i}' for i in range(900))}) (and))"), "than 20"),
    "a goal of many quantifiers": (goal(nested(50, "(exists (?v{0} - x ?w{0} - y) ", "(and)")), "at most 20"),
    "long facts, often": (
        goal(f"(exists (?a ?b) (and (isHot ?a) (foo ?b {'a ' * 100_000})))"),
        "none of ALFWorld's",
    ),
    "a long list of variables": (goal(f"(exists ({'- o ' * 100_000}) (and))"), "more than 20"),
    "a long conjunction, often": (goal(f"(exists (?a ?b) (and {'(isHot ?a) ' * 20_000}))"), "ground conditions"),
}  # fmt: skip
WHOLE = {
    "an endless list": (b"[" * 1_000_000, "cannot be read"),
    "nothing but lists": (b"[" + b"[]," * 500_000 + b"[]]", "not an object"),
    "not a number": (b'{"solvable": NaN}', "NaN is not a number"),
    "an endless number": (b'{"solvable": 1%s}' % (b"0" * 100_000), "cannot be read"),
    "a key twice": (b'{"grammar": "", "grammar": ""}', "'grammar' is there twice"),
    "many keys, one twice": (b"{%s}" % b",".join(b'"%d": 0' % (i % 98_999) for i in range(99_000)), "twice"),
    "bytes that are no text": (b'{"grammar": "\xc3\x28"}', "utf-8"),
    "UTF-16": ('{"grammar": ""}'.encode("utf-16"), "utf-8"),
    "half a character": (b'{"grammar": "\\ud800"}', "surrogates"),
    "three megabytes of nothing": (b" " * 3_000_000, "2,000,000 bytes allowed"),
}  # fmt: skip
NO_FILES = {
    "pipe": (os.mkfifo, "not a regular file"),
    "folder": (Path.mkdir, "not a regular file"),
    "device": (lambda file: file.symlink_to("/dev/zero"), "not a regular file"),
    "dangling": (lambda file: file.symlink_to("nowhere"), "No such file"),
    "endless": (lambda file: (file.touch(), os.truncate(file, 1 << 40)), "bytes allowed"),
}


@pytest.mark.parametrize("case", [*CONTENTS, *WHOLE, *NO_FILES])
def test_hostile_games_are_refused(template, file, case):
    made, message = (CONTENTS | WHOLE | NO_FILES)[case]
    if case in NO_FILES:
        made(file)
    else:
        file.write_bytes(made if case in WHOLE else json.dumps(made(template)).encode())
    refused(file.parents[4], message, TASK_ID, str(file))


def test_the_same_file_unchanged_is_played(template, file):
    file.write_text(json.dumps(template))
    assert opened(file.parents[4]) == ("", "")


@pytest.mark.parametrize("name", ["trial\n1", "trial_\udcff", "trial_\x1b[2J"])
def test_folders_whose_names_cannot_be_printed_are_refused(tmp_path, name):
    path = tmp_path / TASK_ID.replace("trial_1", name) / "game.tw-pddl"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    with pytest.raises(InvalidGameError, match="cannot be printed") as caught:
        open_games(tmp_path, split="valid_seen")
    assert str(caught.value).isprintable()


def test_a_folder_of_too_many_folders_or_that_cannot_be_read_is_refused(folder, tmp_path, monkeypatch):
    (tmp_path / "valid_seen").mkdir()
    (tmp_path / "valid_seen" / "loop").symlink_to("loop")
    with pytest.raises(InvalidGameError, match="cannot be read"):
        sources.open_source(tmp_path, "valid_seen")
    monkeypatch.setattr(sources, "MAX_FOLDERS", 5)
    with pytest.raises(InvalidGameError, match="more than 5 entries"):
        sources.open_source(folder, "valid_seen")


@pytest.mark.parametrize("predicate", sorted(predicates()))
def test_facts_and_goals_of_another_size_are_refused(template, predicate):
    for size in {0, 1, 2, 3} - {predicates()[predicate]}:
        words = f"({predicate}{size * ' agent1'})"
        with pytest.raises(InvalidGameError, match="instead of"):
            Game.parse(TASK_ID, replaced("pddl_problem", "(:init", f"(:init {words}")(template))
        with pytest.raises(InvalidGameError, match="none of ALFWorld's"):
            Game.parse(TASK_ID, goal(words)(template))


@pytest.mark.parametrize(
    "text",
    ["(not)", "(not a b)", "(imply (and))", "(exists (?x))", "(exists ?x (and))", "(exists (?x (y)) (and))", "(and a)",
     "(forall (?x) a)", "((and))", "(= a)", "(openable ?x)", "(openable (x))", "(wins agent1)", "(exists (?x) x)",
     "(exists (?x) (and x ((openable ?x))))", "(exists (?x) (exists))", "(exists (?x) (exists ?y (and)))",
     "(exists (?x) (openable (?x)))", "(exists (?x) (canContain ?x (?x)))"],
)  # fmt: skip
def test_goals_of_another_form_are_refused(template, text):
    with pytest.raises(InvalidGameError, match="goal"):
        Game.parse(TASK_ID, goal(text)(template))


@given(JSON)
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_wrong_types_among_the_rules_are_refused_or_do_no_harm(template, value):
    rules = json.dumps({"intro": value})
    raw = {**template, "grammar": template["grammar"] + f'\ngrammar :: """{rules}""";'}
    with contextlib.suppress(InvalidGameError):
        assert len(World(Game.parse(TASK_ID, raw)).reset()) <= MAX_ANSWER


@given(st.text(" \n\t{}[]|#;ab\"/'", max_size=60))
@example("x {" + " " * 100_000 + "|" + " " * 100_000 + ";}")  # spaces are not tried in every way
def test_sentences_of_any_form_are_split(text):
    assert all(part.kind in ("text", "rule", "value", "list") for part in split_sentence(text))


def test_what_can_be_done_is_bounded(template, monkeypatch):
    monkeypatch.setattr(game_module, "MAX_PAIRS", 3)
    with pytest.raises(InvalidGameError, match="more than 3 things"):
        Game.parse(TASK_ID, template)

"""Writers: what rules make of episodes, and a language model whose replies are read strictly."""

import contextlib
import json
from dataclasses import replace
from typing import get_args

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.envs.registry import env_spec
from skillc_gym.episodes import Turn
from skillc_lab.agents.expel import RuleList
from skillc_lab.agents.shown import demonstrated
from tests.trainers.toys import episode
from trainers.retrieval import nearest
from trainers.retrieval.rules import BM25
from trainers.writers import Decision, Edit, ModelWriter, PolicyWriter, StepWriter
from trainers.writers.base import BadReplyError, Operation, read_decision, read_edits, read_lists, read_object
from trainers.writers.llm import transcript

HEAT = ["take egg 1 from fridge 1", "heat egg 1 with microwave 1", "move egg 1 to shelf 1"]
LOST_ACTIONS = [HEAT[0], HEAT[2]]
WON, LOST = episode("train/1", actions=HEAT), episode("train/1", won=False, actions=LOST_ACTIONS)


def test_what_won_and_lost_episodes_differ_in_is_the_key_step():
    lost = replace(LOST, task_id="b")
    assert StepWriter().write([lost]) == StepWriter().write_lessons([lost]) == []
    (draft,) = StepWriter().write([WON, lost])
    steps = ["1. take O from R.", "2. Key step: heat O with microwave 1.", "3. move O to R."]
    assert draft.text.splitlines() == ["Skill: do this in order.", *steps]
    assert (draft.task_type, draft.writer, draft.sources) == ("heat", "steps", ("b", "train/1"))
    (draft,) = StepWriter().write([WON, replace(WON, task_id="b", won=False)])
    assert "heat O" in draft.text
    assert "Key step" not in draft.text, "the lost one took every step"
    winners = [WON, WON, episode(actions=["open fridge 1", *HEAT])]
    assert "open R" not in StepWriter().write(winners)[0].text, "few of them took it"


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("alfworld", "pick_heat_then_place_in_recep", ["take O from R", "heat O with microwave 1", "move O to R"]),
        ("webshop", "shopping", ["search[words]", "click[its code]", "click[option]", "click[buy now]"]),
    ],
)
def test_the_experts_episodes_become_a_skill_in_both_worlds(name, kind, expected):
    spec = env_spec(name)
    env = gym.make(spec.id, data="generated")
    tasks = [task for task in env.unwrapped.task_ids if env.unwrapped.task_type_of(task) == kind][:6]
    played = demonstrated(spec, lambda: env, tasks)
    (draft,) = StepWriter().write(played)
    places = [draft.text.find(step) for step in expected]
    assert -1 not in places
    assert places == sorted(places)


def speaking(*replies):
    """A language model that gives these replies, and the questions that it was asked."""
    questions: list[str] = []
    left = iter(replies)

    def speak(chats):
        questions.extend(chat[1]["content"] for chat in chats)
        return [next(left) for _ in chats]

    return speak, questions


def test_a_language_model_is_asked_once_per_type_and_bad_replies_are_counted():
    speak, questions = speaking('{"skills": ["Heat it first."]}', "Sure! Here is a skill.", '{"skills": []}')
    writer = ModelWriter(speak, name="tiny")
    drafts = writer.write([WON, LOST, replace(LOST, task_type="pick")])
    assert [(draft.text, draft.task_type, draft.writer) for draft in drafts] == [("Heat it first.", "heat", "tiny")]
    assert writer.bad_replies == 1
    assert all(part in questions[0] for part in ("Outcome: success", "Outcome: failure", HEAT[1]))
    assert writer.write_lessons([LOST]) == [], "a lesson may be none"
    text = transcript(WON, 2)
    assert "(1 steps left out)" in text
    assert f"Command: {HEAT[0]}" not in text


@pytest.mark.parametrize(
    "reply",
    [
        '{"skills": "a"}',
        '{"skills": ["a", "b"]}',
        '{"skills": [], "x": 1}',
        '{"skills": ["\\ud800"]}',
        "[" * 100_000,
    ],
)
def test_replies_of_another_form_are_bad(reply):
    with pytest.raises(BadReplyError):
        read_lists(reply, "skills", at_most=1, longest=10)


def test_thoughts_before_a_reply_are_passed_over():
    thinking = ModelWriter(speaking('<think>Hm. {"x"}</think>\n{"skills": ["Heat it."]}')[0])
    assert [draft.text for draft in thinking.write([WON])] == ["Heat it."]
    assert thinking.bad_replies == 0


def test_a_reply_may_stand_in_a_fence():
    assert read_lists('```json\n{"skills": [" a "]}\n```', "skills", at_most=1, longest=10) == (["a"],)
    assert read_object('{"operation": "ADD", "number": 1}', {"operation": str, "number": int})["number"] == 1
    with pytest.raises(BadReplyError, match="number"):
        read_object('{"operation": "ADD", "number": true}', {"operation": str, "number": int})


@given(st.text(max_size=60))
def test_no_reply_breaks_the_readers(reply):
    for read in (lambda: read_lists(reply, "skills", at_most=2, longest=9), lambda: read_edits(reply, 3)):
        with contextlib.suppress(BadReplyError):
            read()
    with pytest.raises(BadReplyError):
        read_decision(reply, 3, longest=10)


def test_edits_are_read_line_by_line():
    edits = [Edit("ADD", None, "look first"), Edit("REMOVE", 2, "wrong")]
    assert read_edits("ADD: look first\n\nREMOVE 2: wrong", 2) == edits
    bad = ["ADD 1: x", "AGREE: x", "AGREE 3: x", "agree 1: x", "so ADD: x", "ADD: " + 601 * "x", "ADD: \ud800"]
    for reply in [*bad, f"AGREE {'9' * 5000}: x"]:
        with pytest.raises(BadReplyError):
            read_edits(reply, 2)


def test_rules_live_by_agreement():
    rules = RuleList(capacity=2)
    rules.apply([Edit("ADD", None, "a"), Edit("ADD", None, "b"), Edit("ADD", None, "c")])
    assert (rules.texts, rules.strengths) == (("a", "b"), (2, 2))
    rules.apply([Edit("EDIT", 2, "b2"), Edit("REMOVE", 1, "a")])
    assert (rules.texts, rules.strengths) == (("b2",), (3,))
    rules.apply([Edit("REMOVE", 1, "b2")])
    assert rules.strengths == (2,)
    rules.apply([Edit("ADD", None, "c"), Edit("EDIT", 2, "b2")])
    assert rules.texts == ("b2", "c"), "no rule stands twice"


def test_a_plan_is_asked_for_with_the_earlier_ones():
    speak, questions = speaking('{"plan": " Heat it first. "}', "no JSON")
    asked = PolicyWriter(speak)
    assert asked.reflect([LOST, LOST], [["Look around."], []]) == ["Heat it first.", None]
    assert "1. Look around." in questions[0]
    assert "did not help so far" not in questions[1]
    assert "Outcome: failure" in questions[1]
    assert asked.bad_replies == 1


def test_edits_are_asked_for_by_pair_and_by_set():
    speak, questions = speaking("EDIT 1: Heat it.\nADD: Put it down.", "AGREE 2: no such rule", "EDIT: no number")
    asked = PolicyWriter(speak)
    assert asked.edit(["Heat."], [LOST, WON]) == [Edit("EDIT", 1, "Heat it."), Edit("ADD", None, "Put it down.")]
    assert asked.edit(["Heat."], [WON]) == asked.edit(["Heat."], [WON]) == []
    assert "Compare the failure" in questions[0]
    assert "in common" in questions[1]
    assert asked.bad_replies == 2


def test_facts_and_decisions_are_read_strictly():
    no_such = '{"operation": "DELETE", "number": 3, "text": ""}'
    speak, questions = speaking('{"facts": ["Eggs are cold."]}', "many", no_such)
    asked = PolicyWriter(speak)
    assert asked.facts(WON) == ["Eggs are cold."]
    assert asked.facts(WON) == []
    assert asked.decide("Eggs are hot.", []) == Decision("ADD")
    assert asked.decide("Eggs are hot.", ["Eggs are cold."]) == Decision("NOOP")
    assert (asked.bad_replies, len(questions)) == (2, 3)


@given(st.sampled_from(get_args(Operation)), st.integers(-1, 4), st.text(max_size=12), st.integers(1, 3))
def test_a_decision_names_a_fact_that_was_shown(operation, number, text, similar):
    reply = json.dumps({"operation": operation, "number": number, "text": text})
    fits = operation in ("ADD", "NOOP") or 1 <= number <= similar
    if fits and (operation != "UPDATE" or 0 < len(text.strip()) <= len(text) <= 10):
        found = read_decision(reply, similar, longest=10)
        assert found.operation == operation
        assert found.number == (number if operation in ("UPDATE", "DELETE") else 0)
    else:
        with pytest.raises(BadReplyError):
            read_decision(reply, similar, longest=10)


def test_by_rule_a_plan_says_what_was_done_and_what_was_not_possible():
    impossible = replace(LOST, turns=(*LOST.turns, Turn("Nothing happens.", "fly", "fly", True, False, 0.0)))
    said = "The last try failed. Do something else.\nDone in vain: {}; {}.\nNot possible: fly.".format(*LOST_ACTIONS)
    assert StepWriter().reflect([impossible, replace(LOST, turns=())], [(), ()]) == [said, None]


def test_by_rule_rules_are_what_the_failure_lacked_and_successes_share():
    by_rule, rules = StepWriter(), RuleList()
    rules.apply(by_rule.edit(rules.texts, [LOST, WON]))
    assert rules.texts == ("heat: heat O with microwave 1.",)
    rules.apply(by_rule.edit(rules.texts, [WON, WON]))
    assert rules.strengths == (3, 2, 2)
    assert set(rules.texts[1:]) == {"heat: take O from R.", "heat: move O to R."}
    other = episode(actions=HEAT[1:])
    rules.apply(by_rule.edit(rules.texts, [other]))
    assert dict(zip(rules.texts, rules.strengths, strict=True))["heat: take O from R."] == 1
    assert by_rule.edit(rules.texts, [LOST]) == []


def test_by_rule_facts_are_how_tasks_were_won():
    by_rule = StepWriter()
    fact = "heat: take O from R, then heat O with microwave 1, then move O to R."
    assert by_rule.facts(WON) == [fact]
    assert by_rule.facts(LOST) == []
    assert by_rule.decide(fact, []).operation == by_rule.decide(fact, ["look: use desklamp 1."]).operation == "ADD"
    assert by_rule.decide(fact, ["another", fact]).operation == "NOOP"
    assert by_rule.decide(fact, [fact.replace("heat:", "cool:")]).operation == "ADD"
    longer = fact.replace("heat O", "open R, then heat O, heat O")
    assert by_rule.decide(fact, [longer]) == Decision("UPDATE", 1, fact)
    assert by_rule.decide(fact.replace("O.", "R."), [fact.replace("O to R", "R to O")]).operation == "NOOP"


@given(st.lists(st.text("abc ", max_size=6), max_size=6), st.integers(0, 8))
def test_the_nearest_are_the_most_alike_and_the_older_of_equals(texts, count):
    found = nearest(BM25(), "a b", texts, count)
    likeness = BM25()("a b", texts)
    assert len(found) == min(count, len(texts)) == len(set(found))
    assert found == sorted(found, key=lambda place: (-likeness[place], place))
    left = set(range(len(texts))) - set(found)
    assert not found or all(likeness[place] <= min(likeness[found]) for place in left)

"""The two writers of agents: what is asked and read, and what rules make of episodes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.episodes import Turn
from skillc_lab.agents.expel import RuleList
from tests.trainers.rollouts_of import episode
from trainers.retrieval import nearest
from trainers.retrieval.bm25 import BM25
from trainers.writers import Decision, Edit, PolicyWriter, StepWriter
from trainers.writers.base import BadReplyError, read_decision

HEAT = ["take egg 1 from fridge 1", "heat egg 1 with microwave 1", "move egg 1 to shelf 1"]
WON, LOST = episode("train/1", actions=HEAT), episode("train/1", won=False, actions=[HEAT[0], HEAT[2]])


def writer(*replies: str) -> tuple[PolicyWriter, list[str]]:
    questions: list[str] = []
    left = iter(replies)

    def speak(chats):
        questions.extend(chat[1]["content"] for chat in chats)
        return [next(left) for _ in chats]

    return PolicyWriter(speak), questions


def test_a_plan_is_asked_for_with_the_earlier_ones():
    asked, questions = writer('{"plan": " Heat it first. "}', "no JSON")
    assert asked.reflect([LOST, LOST], [["Look around."], []]) == ["Heat it first.", None]
    assert "1. Look around." in questions[0]
    assert "did not help so far" not in questions[1]
    assert "Outcome: failure" in questions[1]
    assert asked.bad_replies == 1


def test_edits_are_asked_for_by_pair_and_by_set():
    asked, questions = writer("EDIT 1: Heat it.\nADD: Put it down.", "AGREE 2: no such rule", "EDIT: no number")
    assert asked.edit(["Heat."], [LOST, WON]) == [Edit("EDIT", 1, "Heat it."), Edit("ADD", None, "Put it down.")]
    assert asked.edit(["Heat."], [WON]) == asked.edit(["Heat."], [WON]) == []
    assert "Compare the failure" in questions[0]
    assert "in common" in questions[1]
    assert asked.bad_replies == 2


def test_facts_and_decisions_are_read_strictly():
    asked, questions = writer(
        '{"facts": ["Eggs are cold."]}', "many", '{"operation": "DELETE", "number": 3, "text": ""}'
    )
    assert asked.facts(WON) == ["Eggs are cold."]
    assert asked.facts(WON) == []
    assert asked.decide("Eggs are hot.", []) == Decision("ADD")
    assert asked.decide("Eggs are hot.", ["Eggs are cold."]) == Decision("NOOP")
    assert (asked.bad_replies, len(questions)) == (2, 3)


@given(
    operation=st.sampled_from(["ADD", "UPDATE", "DELETE", "NOOP"]),
    number=st.integers(-1, 4),
    text=st.text(max_size=12),
    similar=st.integers(1, 3),
)
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


@given(st.text(max_size=40))
def test_what_is_no_decision_is_a_bad_reply(reply):
    with pytest.raises(BadReplyError):
        read_decision(reply, 3, longest=10)


def test_by_rule_a_plan_says_what_was_done_and_what_was_not_possible():
    impossible = replace(LOST, turns=(*LOST.turns, Turn("Nothing happens.", "fly", "fly", True, False, 0.0)))
    plan = StepWriter().reflect([impossible, replace(LOST, turns=())], [(), ()])
    assert plan[0] == (
        "The last try failed. Do something else.\nDone in vain: take egg 1 from fridge 1; move egg 1 to shelf 1.\n"
        "Not possible: fly."
    )
    assert plan[1] is None


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

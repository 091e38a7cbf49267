"""Writers: steps abstracted from episodes, and a language model whose replies are read strictly."""

from __future__ import annotations

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.envs.registry import env_spec
from skillc_gym.episodes import Episode, EpisodeRecorder, Turn
from skillc_lab.agents.expel import RuleList
from trainers.writers import Edit, ModelWriter, StepWriter
from trainers.writers.base import BadReplyError, read_edits, read_lists, read_object
from trainers.writers.llm import transcript


def episode(
    actions: list[str], won: bool, *, kind: str = "heat", goal: str = "heat some egg", task: str = "t"
) -> Episode:
    turns = tuple(Turn("you see", action, action, True, True, 0.0) for action in actions)
    return Episode(task, kind, goal, 0, "", "", "", 0, 0, turns, won, float(won), True, False)


GOOD = [
    "go to fridge 1",
    "take egg 1 from fridge 1",
    "go to microwave 1",
    "heat egg 1 with microwave 1",
    "move egg 1 to shelf 2",
]
BAD = ["go to fridge 1", "take egg 1 from fridge 1", "move egg 1 to shelf 2"]


def test_what_won_and_lost_episodes_differ_in_is_the_key_step():
    (draft,) = StepWriter().write([episode(GOOD, True, task="a"), episode(BAD, False, task="b")])
    assert draft.text.splitlines() == [
        "Skill: do this in order.",
        "1. go to R.",
        "2. take O from R.",
        "3. go to microwave 1.",
        "4. Key step: heat O with microwave 1.",
        "5. move O to R.",
    ]
    assert (draft.task_type, draft.writer, draft.sources) == ("heat", "steps", ("a", "b"))


def test_steps_that_few_winners_took_are_left_out():
    winners = [episode(GOOD, True), episode(GOOD, True), episode(["open fridge 1", *GOOD], True)]
    assert "open R" not in StepWriter().write(winners)[0].text


def test_nothing_is_learnt_from_failures_alone():
    assert StepWriter().write([episode(BAD, False)]) == []
    assert StepWriter().write_lesson(episode(BAD, False)) is None


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
    played = []
    for seed in range(12):
        observation, info = env.reset(seed=seed)
        recorder = EpisodeRecorder(observation, info)
        expert = spec.warm_start.demonstrator(info, False)
        over = False
        while not over:
            action = expert.act(observation, info.get("admissible_commands") or info["available_actions"])
            outcome = env.step(action)
            recorder.add(action, outcome)
            observation, info, over = outcome[0], outcome[4], outcome[2] or outcome[3]
        played.append(recorder.episode())
    (draft,) = [draft for draft in StepWriter().write(played) if draft.task_type == kind]
    places = [draft.text.find(step) for step in expected]
    assert -1 not in places
    assert places == sorted(places)


def test_a_language_model_is_asked_once_per_type_and_bad_replies_are_counted():
    asked = []

    def speak(chats):
        asked.extend(chats)
        return ['{"skills": ["Heat it before you put it down."]}', "Sure! Here is a skill."]

    writer = ModelWriter(speak, name="tiny")
    drafts = writer.write([episode(GOOD, True), episode(BAD, False, kind="pick"), episode(BAD, False)])
    assert [(d.text, d.task_type, d.writer) for d in drafts] == [("Heat it before you put it down.", "heat", "tiny")]
    assert writer.bad_replies == 1
    question = asked[0][1]["content"]
    assert "Outcome: success" in question
    assert "Outcome: failure" in question
    assert "heat egg 1 with microwave 1" in question


def test_a_lesson_may_be_none():
    assert ModelWriter(lambda chats: ['{"skills": []}']).write_lesson(episode(BAD, False)) is None


def test_a_transcript_shows_the_last_steps():
    text = transcript(episode(GOOD, True), 2)
    assert "(3 steps left out)" in text
    assert "Command: go to microwave 1" not in text


@pytest.mark.parametrize(
    "reply",
    [
        '{"skills": "a"}',
        '{"skills": [""]}',
        '{"skills": [1]}',
        '{"skills": ["a", "b"]}',
        '["a"]',
        '{"skills": [], "x": 1}',
        '{"skills": ["\\ud800"]}',
        '{"skills": [%s]}' % ("9" * 5000),
        "[" * 100_000,
        "",
    ],
)
def test_replies_of_another_form_are_bad(reply):
    with pytest.raises(BadReplyError):
        read_lists(reply, "skills", at_most=1, longest=10)


def test_a_reply_may_stand_in_a_fence():
    assert read_lists('```json\n{"skills": [" a "]}\n```', "skills", at_most=1, longest=10) == (["a"],)
    assert read_object('{"operation": "ADD", "number": 1}', {"operation": str, "number": int})["number"] == 1
    with pytest.raises(BadReplyError, match="number"):
        read_object('{"operation": "ADD", "number": true}', {"operation": str, "number": int})


@given(st.text(max_size=60))
def test_no_reply_breaks_the_readers(reply):
    for read in (lambda: read_lists(reply, "skills", at_most=2, longest=9), lambda: read_edits(reply, 3)):
        try:
            read()
        except BadReplyError:
            continue


def test_edits_are_read_line_by_line():
    assert read_edits("ADD: look first\n\nREMOVE 2: wrong", 2) == [
        Edit("ADD", None, "look first"),
        Edit("REMOVE", 2, "wrong"),
    ]
    for reply in ("ADD 1: x", "AGREE: x", "AGREE 3: x", "agree 1: x", "so ADD: x"):
        with pytest.raises(BadReplyError):
            read_edits(reply, 2)
    for reply in ("ADD: \ud800", f"AGREE {'9' * 5000}: x"):
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

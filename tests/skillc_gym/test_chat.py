import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.chat import ChatFormat, PastStep, conversation_turn, first_turn, system, window_prompt
from skillc_gym.errors import ConfigError, UnknownNameError

BARE = ChatFormat.compact()


def test_empty_pieces_leave_no_trace():
    assert system(ChatFormat(role="", reply="")) == []
    [message] = system(ChatFormat(role="", reply="", skills="Skills: {skills}"), "S")
    assert message == {"role": "system", "content": "Skills: S"}
    assert system(ChatFormat(role="R", reply="F"), "S")[0]["content"] == "R\n\nS\n\nF"


def test_templates_are_used():
    pieces = {"first": "{goal}|{observation}", "turn": "{step}:{observation}", "commands": "<{commands}>"}
    chat_format = ChatFormat(**pieces, separator="/")
    assert first_turn(chat_format, "o", goal="g", commands=["a", "b"])["content"] == "g|o\n\n<a/b>"
    assert conversation_turn(chat_format, "o", step=7, commands=["a"])["content"] == "7:o\n\n<a>"


@given(st.lists(st.tuples(st.text(), st.text())), st.integers(0, 6), st.text())
def test_a_window_holds_exactly_the_last_steps(steps, size, now):
    chat_format = ChatFormat(
        role="", reply="", show_admissible=False, form="window", window=size,
        window_turn="{shown}#{history}#{observation}", past="[{step}]",
    )  # fmt: skip
    [message] = window_prompt(chat_format, [PastStep(*step) for step in steps], now)
    shown = min(size, len(steps))
    history = "\n".join(f"[{n}]" for n in range(len(steps) - shown + 1, len(steps) + 1))
    assert message["content"] == (f"{shown}#{history}#{now}" if steps else now)


@given(st.text())
def test_texts_are_never_templates(text):
    assert first_turn(BARE, text)["content"] == conversation_turn(BARE, text, step=1)["content"] == text


def test_round_trip_through_json_in_either_form():
    chat_format = BARE.with_form("window:4")
    assert (chat_format.window, chat_format.with_form("conversation").form) == (4, "conversation")
    assert ChatFormat.from_dict(json.loads(json.dumps(chat_format.to_dict()))) == chat_format
    assert ChatFormat.from_dict({}) == ChatFormat.default() == ChatFormat.named("default")
    with pytest.raises(UnknownNameError, match="Did you mean 'role'"):
        ChatFormat.from_dict({"rule": "x"})


@pytest.mark.parametrize("form", ["window:x", "window:-1", "conversation:2", "window:" + "9" * 99])
def test_bad_forms_are_named(form):
    with pytest.raises(ConfigError, match="window:<past steps>"):
        BARE.with_form(form)
    with pytest.raises(UnknownNameError, match="chat form"):
        BARE.with_form("windows")


@pytest.mark.parametrize(
    ("pieces", "complaint"),
    [
        ({"turn": "{obs}"}, r"ChatFormat.turn uses \{obs\}; it may use"),
        ({"past": "{"}, "not a template"),
        ({"past": "{observation:{nope}}"}, "field within a field"),
        ({"past": "{observation:d}"}, "writes a field as it cannot be"),
        ({"window": -1}, "ChatFormat.window is a whole number from 0 up"),
        ({"show_admissible": "no"}, "ChatFormat.show_admissible is true or false, got 'no'"),
        ({"role": None}, "ChatFormat.role must be a text"),
        ({"listed_as": {"look": "see"}}, "lists of names, got {'look': 'see'}"),
    ],
)
def test_bad_pieces_are_named(pieces, complaint):
    with pytest.raises(ConfigError, match=complaint):
        ChatFormat(**pieces)

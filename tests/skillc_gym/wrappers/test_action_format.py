import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_env import ToyEnv

from skillc_gym.errors import ConfigError
from skillc_gym.wrappers import ActionFormat, format_reply, parse_reply

plain = st.text().filter(lambda text: not any(tag in text for tag in ("<think>", "</think>", "<action>", "</action>")))


@pytest.mark.parametrize(
    ("reply", "command", "valid"),
    [
        ("<think>a</think><action>go to desk 1</action>", "go to desk 1", True),
        ("<action>look</action>", "look", False),
        ("Well. <think>a</think><action>look</action>", "look", False),
        ("<think>a</think><action>look</action><action>help</action>", "look", False),
        ("<think>maybe <action>help</action></think><action>look</action>", "look", False),
        ("<think>a</think><action>go to desk", "go to desk", False),
        ("<think>a</think> go to desk 1", "go to desk 1", False),
        ("<think>I wonder and wonder", "", False),
        ("<think>a</think>\n<think>Shall I?\nlook", "", False),
        ("I will look around.\n\nlook\n \n", "look", False),
        ("", "", False),
        ("<think>no <action>help</action></think><action></action>", "", False),
        ("</action><action>look</action>", "look", False),
        ("<action></action>\nlook", "", False),
        ("<think>Should I <action>help</action>? No.</think><action>look", "look", False),
        ("<think>I could <action>help</action>. No.</think>\nlook", "look", False),
        ("<think>I will <action>help</action></think>\n", "help", False),
        ("<action>" * 8000, "", False),
    ],
)
def test_commands_and_forms(reply, command, valid):
    parsed = parse_reply(reply)
    assert (parsed.command, parsed.format_valid) == (command, valid)


def test_without_required_thought_an_action_alone_is_valid():
    replies = ("<action>look</action>", "<think>a</think><action>look</action>", "look")
    assert [parse_reply(reply, require_think=False).format_valid for reply in replies] == [True, True, False]


@given(plain, plain)
def test_a_written_reply_is_read_back(thought, command):
    parsed = parse_reply(format_reply(command, thought))
    assert parsed.command == command.strip()
    assert parsed.format_valid == bool(command.strip())


@given(st.lists(st.sampled_from(["<think>", "</think>", "<action>", "</action>", "look", " ", "\n", "go to x"])))
def test_any_sequence_of_tags_gives_a_bare_command(parts):
    parsed = parse_reply("".join(parts))
    assert parsed.command == parsed.command.strip()
    assert "<" not in parsed.command
    if parsed.format_valid:
        assert [part for part in parts if part.startswith("<")] == ["<think>", "</think>", "<action>", "</action>"]
        assert parsed.command


@given(st.text())
def test_no_reply_is_an_error(reply):
    env = ActionFormat(ToyEnv())
    env.reset(seed=0)
    info = env.step(reply)[-1]
    assert info["executed_action"] == parse_reply(reply).command[:100]
    assert info["format_valid"] is False or "<think>" in reply


def test_form_and_admissibility_are_two_flags_and_long_commands_are_cut(toy):
    env = ActionFormat(toy)
    assert env.reset(seed=0)[1]["executed_action"] == ""
    infos = [env.step(reply)[-1] for reply in ("take key", format_reply("fly"), format_reply("wait"), "fly")]
    assert [info["format_valid"] for info in infos] == [False, True, True, False]
    assert [info["action_valid"] for info in infos] == [True, False, True, False]
    assert env.step(format_reply("x" * 500))[-1]["executed_action"] == "x" * 100
    with pytest.raises(ConfigError, match="tail is a whole number from 0 up"):
        ActionFormat(toy, tail=-3)

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st
from toy_env import ToyEnv, faulty

from skillc_gym.chat import ChatFormat
from skillc_gym.errors import ConfigError, UnknownNameError
from skillc_gym.wrappers import ActionFormat, ChatPrompt, SkillInjection, format_reply, parse_reply


def stack(library, chat_format="default"):
    return ChatPrompt(ActionFormat(SkillInjection(ToyEnv(), library, where="info")), chat_format)


def test_a_conversation_grows_by_reply_and_answer(toy_library):
    env = stack(toy_library)
    observation, info = env.reset(seed=0, options={"task_id": "toy/open/1"})
    assert [m["role"] for m in info["messages"]] == ["system", "user"]
    assert info["new_messages"] == info["messages"]
    assert observation == info["messages"][-1]["content"]
    start, reply = info["messages"], "I say: <action>take key</action>"
    observation, *_, info = env.step(reply)
    assert info["messages"] == [
        *start,
        {"role": "assistant", "content": reply},
        {"role": "user", "content": "You take the key.\n\nPossible commands: open it, wait"},
    ]
    assert info["new_messages"] == info["messages"][-1:]
    assert observation == info["messages"][-1]["content"]
    assert info["observation"] == "You take the key."
    assert len(start) == 2
    assert env.reset(seed=0, options={"task_id": "toy/open/1"})[1]["messages"] == start


def test_skills_stand_right_behind_the_role_and_only_when_on(toy_library):
    env = stack(toy_library)
    with_skill = env.reset(seed=0, options={"task_id": "toy/open/1"})[1]
    without = env.reset(seed=0, options={"task_id": "toy/open/1", "skill": False})[1]
    role, skill, reply = env.chat_format.role, "Read the room.\n\nTake the key, then open it.", env.chat_format.reply
    assert with_skill["messages"][0]["content"] == f"{role}\n\n{skill}\n\n{reply}"
    assert without["messages"][0]["content"] == f"{role}\n\n{reply}"
    assert with_skill["messages"][1:] == without["messages"][1:]


def test_a_preset_speaks_of_the_environments_own_world():
    walker = gymnasium.make("skillc/CoinCollector-v0")
    assert "rooms" in ChatPrompt(ActionFormat(walker)).reset(seed=0)[1]["messages"][0]["content"]
    assert "house" not in ChatPrompt(ActionFormat(ToyEnv())).reset(seed=0)[1]["messages"][0]["content"]


def test_a_goal_is_asked_for_without_white_space_around_it():
    blank = faulty(_info=lambda env: {**ToyEnv._info(env), "goal": f" {env.goal} "})()
    opening = ChatPrompt(ActionFormat(blank), ChatFormat(first="{goal}|", role="")).reset(seed=0)[0]
    assert opening.startswith(f"{blank.goal}|")


def test_an_injection_around_the_prompt_is_refused(toy_library):
    with pytest.raises(ConfigError, match="put it inside"):
        SkillInjection(ChatPrompt(ActionFormat(ToyEnv())), toy_library, where="info")


def test_a_window_shows_the_last_steps_only(toy_library):
    env = stack(toy_library, ChatFormat.compact().with_form("window:2"))
    opening = env.reset(seed=0, options={"task_id": "toy/open/1"})[1]
    seen = [opening["observation"]]
    for command in ("wait", "fly", "take key"):
        observation, *_, info = env.step(format_reply(command))
        seen.append(info["observation"])
    assert info["messages"] == [opening["messages"][0], {"role": "user", "content": observation}]
    assert info["new_messages"] == info["messages"]
    assert observation == (
        f"{seen[0]}\n\nSteps taken so far: 3. The last 2 of them:\n"
        f"2. You saw: {seen[1]}\nYour command: fly\n3. You saw: {seen[2]}\nYour command: take key\n\n"
        f"What you see now: {seen[3]}"
    )


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version")
def test_gymnasium_accepts_it(toy_library):
    check_env(stack(toy_library), skip_render_check=True)


def test_arguments_are_checked(toy_library):
    with pytest.raises(ConfigError, match="where='info'"):
        ChatPrompt(ActionFormat(SkillInjection(ToyEnv(), toy_library)))
    with pytest.raises(UnknownNameError, match="Did you mean 'compact'"):
        stack(toy_library, "compakt")


plain = st.text().filter(lambda text: not any(tag in text for tag in ("<think>", "</think>", "<action>", "</action>")))


@pytest.mark.parametrize(
    ("reply", "command", "valid"),
    [
        ("<think>a</think><action>go to desk 1</action>", "go to desk 1", True),
        ("<action>look</action>", "look", False),
        ("Well. <think>a</think><action>look</action>", "look", False),
        ("<think>maybe <action>help</action></think><action>look</action>", "look", False),
        ("<think>a</think><action>go to desk", "go to desk", False),
        ("<think>a</think> go to desk 1", "go to desk 1", False),
        ("<think>I wonder and wonder", "", False),
        ("I will look around.\n\nlook\n \n", "look", False),
        ("<think>no <action>help</action></think><action></action>", "", False),
        ("<think>Should I <action>help</action>? No.</think><action>look", "look", False),
        ("<think>I will <action>help</action></think>\n", "help", False),
        ("<action>" * 8000, "", False),
    ],
)
def test_commands_and_forms(reply, command, valid):
    parsed = parse_reply(reply)
    assert (parsed.command, parsed.format_valid) == (command, valid)


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
    assert parse_reply("<action>look</action>", require_think=False).format_valid
    infos = [env.step(reply)[-1] for reply in ("take key", format_reply("fly"), format_reply("wait"), "fly")]
    assert [info["format_valid"] for info in infos] == [False, True, True, False]
    assert [info["action_valid"] for info in infos] == [True, False, True, False]
    assert env.step(format_reply("x" * 500))[-1]["executed_action"] == "x" * 100
    with pytest.raises(ConfigError, match="tail is a whole number from 0 up"):
        ActionFormat(toy, tail=-3)

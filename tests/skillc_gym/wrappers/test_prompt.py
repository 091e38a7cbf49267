import json

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env
from toy_env import ToyEnv, faulty

from skillc_gym.chat import ChatFormat
from skillc_gym.errors import ConfigError, UnknownNameError
from skillc_gym.wrappers import ActionFormat, ChatPrompt, SkillInjection, format_reply


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
    other = ActionFormat(ToyEnv())
    other.chat_format = "markdown"  # a wrapper of one's own may have an attribute of that name
    SkillInjection(other, toy_library, where="info")


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


@pytest.mark.parametrize("form", ["conversation", "window:3"])
@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version")
def test_gymnasium_accepts_it(toy_library, form):
    check_env(stack(toy_library, ChatFormat.default().with_form(form)), skip_render_check=True)


def test_arguments_are_recorded_as_json_and_checked(toy_library):
    saved = stack(toy_library, ChatFormat(role="robot"))._saved_kwargs
    assert ChatFormat.from_dict(json.loads(json.dumps(saved))["chat_format"]) == ChatFormat(role="robot")
    with pytest.raises(ConfigError, match="where='info'"):
        ChatPrompt(ActionFormat(SkillInjection(ToyEnv(), toy_library)))
    with pytest.raises(UnknownNameError, match="Did you mean 'compact'"):
        stack(toy_library, "compakt")

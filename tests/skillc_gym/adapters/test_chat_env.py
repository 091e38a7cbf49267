"""ChatEnv and paired requests: what every adapter is made of."""

import copy
import pickle
from dataclasses import replace

import pytest
from gymnasium.error import ResetNeeded
from hypothesis import given
from hypothesis import strategies as st
from scripted import MAKE, check_record, expert_reply, run_blocks
from toy_env import write_skills

import skillc_gym.wrappers as wrappers
from skillc_gym.adapters import ChatEnv, EpisodeRequest, paired_requests
from skillc_gym.adapters.chat_env import tasks_of
from skillc_gym.chat import ChatFormat
from skillc_gym.errors import ConfigError, SkillFileError, UnknownNameError


@pytest.fixture
def env():
    return MAKE()


def play(env, request):
    chat = env.begin(request)
    while not env.done:
        chat = [*chat, {"role": "assistant", "content": "..."}, *env.step(expert_reply(chat)).messages]
    check_record(env.record(), request)
    return chat, env.record()


def test_a_pair_shares_its_task_and_differs_in_the_skill(env):
    pair = paired_requests(env.task_ids[:1], seed=3)
    assert [request.condition for request in pair] == [1, 0]
    (with_chat, with_record), (without_chat, without_record) = (play(env, request) for request in pair)
    assert with_chat[1] == without_chat[1]
    assert (with_record["skill"], len(with_record["skill_sha256"])) == ("general+pick", 64)
    assert without_record["steps"] == 20
    env.cut()
    assert env.record() == without_record, "cutting after the end changes nothing"


def test_the_first_prompt_is_the_chat_wrappers_own(env):
    messages = env.reset(env.task_ids[0], seed=0, condition=1)
    prompt = wrappers.ChatPrompt(wrappers.ActionFormat(MAKE()._env.env.env))
    assert messages == prompt.reset(seed=0, options={"task_id": env.task_ids[0], "skill": True})[1]["messages"]


def test_a_reply_that_makes_no_sense_costs_a_step(env):
    env.reset(env.task_ids[0])
    step = env.step("what?")
    assert not step.done
    assert step.messages[-1]["content"].startswith("Nothing happens.")
    assert [env.record()[name] for name in ("steps", "malformed", "inadmissible")] == [1, 1, 1]


def test_a_cut_episode_is_truncated_and_over(env):
    assert env.done
    for call in (env.episode, env.record, lambda: env.step("look")):
        with pytest.raises(ResetNeeded):
            call()
    env.reset(env.task_ids[0])
    env.step("<action>look</action>")
    env.cut()
    assert (env.done, env.record()["truncated"], env.record()["terminated"]) == (True, True, False)
    with pytest.raises(ResetNeeded):
        env.step("look")
    env.reset(env.task_ids[0])
    assert not env.record()["truncated"]


@pytest.mark.parametrize("wrong", [{"condition": 2}, {"seed": -1}, {"seed": 1.5}, {"group_id": "a"}])
def test_a_reset_that_is_refused_leaves_the_episode_under_way(env, wrong):
    env.reset(env.task_ids[0])
    with pytest.raises(ConfigError):
        env.reset(env.task_ids[1], **wrong)
    assert not env.step("<action>look</action>").done
    assert (env.record()["task_id"], env.record()["truncated"]) == (env.task_ids[0], False)


def test_a_reset_that_fails_midway_ends_the_episode_before(tmp_path):
    env = ChatEnv("alfworld", library=write_skills(tmp_path, types=["look"], general=False), **MAKE.keywords)
    env.reset(env.task_ids[0])
    with pytest.raises(UnknownNameError):
        env.reset("no such task")
    assert not env.step("look").done, "nothing has changed yet"
    with pytest.raises(SkillFileError):
        env.reset(env.task_ids[1], condition=1)
    assert (env.done, env.episode().truncated) == (True, True)
    with pytest.raises(ResetNeeded):
        env.step("look")


def test_replies_are_read_as_the_wording_says():
    env = ChatEnv("alfworld", chat=replace(ChatFormat.default(), reply_tail=4), **MAKE.keywords)
    env.reset(env.task_ids[0])
    assert env.step("Take a LOOK").info["executed_action"] == "look"
    assert env.numbers() == {"condition": 0.0, "won": 0.0, "terminated": 0.0, "truncated": 0.0, "steps": 1.0}


def test_tasks_are_listed_by_an_environment_that_is_closed_again(monkeypatch):
    closed = []
    monkeypatch.setattr(ChatEnv, "close", lambda env: closed.append(env.task_ids))
    assert [tasks_of(MAKE)] == closed


def test_resets_without_a_seed_follow_from_the_seed_before():
    def starts(env, seed, refused=False):
        env.reset(seed=seed)
        for _ in range(4):
            if refused:
                with pytest.raises(UnknownNameError):
                    env.reset("no such task", seed=5)
            env.reset()
            yield env.record()["seed"]

    assert len(set(starts(MAKE(), 7))) == 4
    assert list(starts(MAKE(), 7)) == list(starts(MAKE(), 7)) == list(starts(MAKE(), 7, refused=True))
    assert set(starts(MAKE(), None)).isdisjoint(starts(MAKE(), None))


def test_a_reset_that_fails_midway_moves_no_draw(tmp_path):
    library = write_skills(tmp_path, types=["look"], general=False)

    def starts(refused):
        env = ChatEnv("alfworld", library=library, **MAKE.keywords)
        env.reset(seed=7)
        for seed in (None, 5, None):
            if refused:
                with pytest.raises(SkillFileError):
                    env.reset(env.task_ids[1], seed=seed, condition=1)
            env.reset()
            yield env.record()["seed"]

    assert list(starts(refused=True)) == list(starts(refused=False))


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("coins", {"splitt": "x"}, "option of skillc/CoinCollector-v0 'splitt'; expected one of: .*split"),
        ("nope", {}, "environment 'nope'; expected one of: alfworld, coins"),
        ("", {}, "cannot be made"),
        ("coins", {"max_episode_steps": 0}, "cannot be made"),
    ],
)
def test_what_cannot_be_made_is_told_in_words(name, options, said):
    with pytest.raises((ConfigError, UnknownNameError), match=said):
        ChatEnv(name, **options)


def test_an_environment_without_library_has_no_switch(toy_id):
    env = ChatEnv(toy_id)
    env.reset(seed=1)
    assert env.record()["condition"] == 0
    with pytest.raises(ConfigError):
        env.reset(seed=1, condition=1)
    with pytest.raises(ConfigError, match="conversation"):
        ChatEnv(toy_id, chat=ChatFormat.default().with_form("window:2"))


@given(st.integers(1, 6), st.data(), st.integers(0, 2**40))
def test_groups_share_task_and_seed(group_size, data, seed):
    n_plus = data.draw(st.integers(0, group_size))
    tasks = data.draw(st.lists(st.text(), max_size=5))
    requests = paired_requests(tasks, seed=seed, group_size=group_size, n_plus=n_plus)
    assert len(requests) == len(tasks) * group_size
    for group, task_id in enumerate(tasks):
        members = requests[group * group_size : (group + 1) * group_size]
        assert {(m.task_id, m.group_id) for m in members} == {(task_id, group)}
        assert len({m.seed for m in members}) == 1
        assert 0 <= members[0].seed < 2**31
        assert [m.condition for m in members] == [1] * n_plus + [0] * (group_size - n_plus)
    assert [EpisodeRequest.from_row({**request.to_row(), "other": 1}) for request in requests] == requests
    assert pickle.loads(pickle.dumps(requests)) == copy.deepcopy(requests)
    assert len({request.seed for request in requests}) == len(tasks), "seeds differ between groups"
    others = paired_requests(tasks, seed=seed + 1, group_size=group_size, n_plus=n_plus)
    assert all(one.seed != other.seed for one, other in zip(requests, others, strict=True))


def test_requests_are_of_whole_numbers_and_lists():
    for wrong in ({"task_ids": "abc"}, {"seed": -1}, {"group_size": 0}, {"n_plus": 3}, {"n_plus": -1}, {"n_plus": 1.5}):
        with pytest.raises(ConfigError):
            paired_requests(**{"task_ids": ["a"], **wrong})
    row = {"task_id": "a", "seed": 3.0, "condition": "1", "group_id": 0}
    assert EpisodeRequest.from_row(row) == EpisodeRequest("a", 3, 1, 0)
    for wrong in ({}, {**row, "seed": "x"}, {**row, "seed": 1.5}, {**row, "condition": 0.9}):
        with pytest.raises(ConfigError, match="paired_requests"):
            EpisodeRequest.from_row(wrong)


def test_the_page_of_stable_baselines_plays_a_pair_and_trains():
    pytest.importorskip("sb3_contrib", reason="needs the sb3 extra")
    names = run_blocks("sb3.md")
    assert names["conditions"] == [1, 0]
    assert names["started"] == {names["task_id"]}
    assert names["episodes"]
    for episode in names["episodes"]:
        assert episode["l"] <= 10
        assert bool(episode["skill_sha256"]) == bool(episode["condition"])
        assert episode["won"] == episode["r"]

import dataclasses
import json
import re
from html.parser import HTMLParser

import atif
import pytest
from gymnasium.wrappers import TimeLimit
from hypothesis import given
from hypothesis import strategies as st
from toy_env import ToyEnv

from skillc_gym.episodes import (
    Episode,
    EpisodeRecorder,
    Turn,
    read_jsonl,
    to_atif,
    to_fragment,
    to_html,
    write_jsonl,
)
from skillc_gym.wrappers import ActionFormat, ChatPrompt, SkillInjection, format_reply
from tests.conftest import EPISODE

number = st.floats(allow_nan=False, allow_infinity=False)
anything = st.text(st.characters())  # lone surrogates included
turns = st.builds(Turn, anything, anything, anything, st.booleans(), st.booleans(), number)
episodes = st.builds(
    Episode,
    **dict.fromkeys(("task_id", "task_type", "goal", "skill", "skill_sha256", "skill_text"), anything),
    **dict.fromkeys(("won", "terminated", "truncated"), st.booleans()),
    condition=st.integers(0, 1),
    seed=st.integers(0, 2**31),
    group_id=st.integers(0, 100),
    turns=st.lists(turns, max_size=3).map(tuple),
    task_score=st.floats(0, 1),
    messages=st.lists(st.fixed_dictionaries({"role": anything, "content": anything}), max_size=2),
    final_observation=anything,
    cut=st.sampled_from(["", "steps", "context"]),
)


def record(env, replies, seed=5, options=None):
    observation, info = env.reset(seed=seed, options=options)
    recorder = EpisodeRecorder(observation, info, seed=seed, group_id=3)
    for reply in replies:
        recorder.add(reply, env.step(reply))
    return recorder.episode()


@pytest.fixture
def played(toy_library):
    env = ChatPrompt(ActionFormat(SkillInjection(ToyEnv(), toy_library, where="info")))
    replies = [format_reply("wait", "<b>hm</b> & so"), "fly", format_reply("take key"), format_reply("open it")]
    return record(env, replies, options={"task_id": "toy/open/2"})


def test_a_step_limit_is_told_from_other_ends():
    env = TimeLimit(ToyEnv(), 2)  # a bare environment can be recorded, too
    assert record(env, ["wait"]).cut == ""
    cut = record(env, ["wait", "wait"])
    assert (cut.truncated, cut.cut) == (True, "steps")
    assert cut.turns[0].action == cut.turns[0].reply == "wait"
    assert (cut.condition, cut.skill, cut.messages) == (0, "", [])
    won = record(env, ["take key", "open it"], options={"task_id": "toy/open/2"})
    assert (won.won, won.terminated, won.truncated, won.cut) == (True, True, False, "")


def test_episodes_of_older_versions_are_read(played):
    old = json.loads(json.dumps(played.to_dict()))
    for name in ("cut", "skill_grade", "messages", "final_observation"):
        del old[name]
    assert Episode.from_dict(old) == dataclasses.replace(played, skill_grade="", messages=[], final_observation="")


def test_the_recorder_keeps_what_happened(played):
    assert (played.task_id, played.task_type, played.seed, played.group_id) == ("toy/open/2", "open", 5, 3)
    assert (played.condition, played.skill, played.won, played.terminated) == (1, "general+open", True, True)
    assert [turn.action for turn in played.turns] == ["wait", "fly", "take key", "open it"]
    assert [(turn.format_valid, turn.action_valid) for turn in played.turns] == [(flag, flag) for flag in (1, 0, 1, 1)]
    assert (len(played), played.episode_return) == (4, 1.0)
    assert played.turns[0].observation.startswith("Room")
    assert "Possible commands" not in played.turns[0].observation
    assert played.turns[2].observation == "Nothing happens."
    assert played.final_observation == "You won."
    assert played.skill_text in played.messages[0]["content"]


@given(st.lists(episodes, max_size=3))
def test_any_episode_can_be_saved_and_shown(tmp_path_factory, recorded):
    path = tmp_path_factory.mktemp("t") / "sub" / "episodes.jsonl"
    assert read_jsonl(write_jsonl(path, recorded)) == recorded
    assert len(path.read_bytes().splitlines()) == len(recorded)
    assert list(path.parent.iterdir()) == [path]
    assert to_html(recorded).encode("utf-8")


def texts_of(page):
    texts, parser = [], HTMLParser()
    parser.handle_data = texts.append
    parser.feed(page)
    return texts


HOSTILE = '<script>alert("x")</script><img src=x onerror="y">&amp;\'</pre></style>{0}'


def test_every_recorded_text_is_escaped(played):
    fields = {name: HOSTILE for name, value in vars(played).items() if isinstance(value, str)}
    turn = Turn(HOSTILE, HOSTILE, HOSTILE + "a", False, False, 1.0)
    thought = Turn("o", format_reply("a", HOSTILE), "a", True, True, 0.0)
    messages = [{"role": HOSTILE, "content": HOSTILE}]
    episode = dataclasses.replace(played, **fields, turns=(turn, thought), messages=messages)
    page = to_html([episode, episode], title=HOSTILE)
    counts = [page.count(tag) for tag in ("<script", "<img", "</style>", "<article")]
    assert counts == [0, 0, 1, 2]
    assert sum(text.count("alert(") for text in texts_of(page)) > 10


def test_a_pair_stands_side_by_side_under_its_goal(played, toy_library):
    env = ActionFormat(SkillInjection(ToyEnv(), toy_library, enabled=False))
    other = record(env, ["wait"], options={"task_id": "toy/open/2"})
    page = to_html([played, other], title="Pair")
    assert page.count('class="tr-row"') == page.count('class="tr-goal"') == 1
    told = ["with skill", "won", "<b>hm</b> & so", "not possible", "without skill", "not won"]
    assert [text for text in texts_of(page) if text in told] == told
    assert to_fragment([played]).startswith("<section>")
    assert not re.search(r"https?://|<link|<script|src=", page)


def test_played_episodes_are_trajectories_of_atif(played, toy_library):
    env = ChatPrompt(ActionFormat(SkillInjection(ToyEnv(), toy_library, enabled=False, where="info")))
    for episode in (played, record(env, [format_reply("wait")])):
        found = atif.Trajectory.model_validate_json(json.dumps(to_atif(episode, "careless")))
        system, user, *exchanges = found.steps
        assert (system.source, user.source, found.agent.model_name) == ("system", "user", "careless")
        assert [system.message, user.message] == [message["content"] for message in episode.messages]
        assert [step.message for step in exchanges] == [turn.reply for turn in episode.turns]
        assert [step.tool_calls[0].arguments["command"] for step in exchanges] == [t.action for t in episode.turns]
        said = [step.observation.results[0].content for step in exchanges]
        assert said == [turn.observation for turn in episode.turns[1:]] + [episode.final_observation]
        assert found.extra["skill_sha256"] == episode.skill_sha256
        assert (found.extra["won"], found.extra["condition"]) == (episode.won, episode.condition)
        assert sum(step.extra["reward"] for step in exchanges) == found.extra["episode_return"]


@pytest.mark.parametrize("turns", [(), EPISODE.turns])
def test_a_trajectory_without_a_chat_begins_with_what_was_seen(turns):
    episode = dataclasses.replace(EPISODE, messages=[], turns=turns, final_observation="You see a mug.")
    found = atif.Trajectory.model_validate(to_atif(episode))
    assert (found.steps[0].source, found.steps[0].message) == ("user", "You see a mug.")
    assert found.final_metrics.total_steps == len(found.steps) == 1 + len(turns)

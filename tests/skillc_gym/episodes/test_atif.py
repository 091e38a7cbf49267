"""ATIF: what is written passes the format's own models, and nothing of an episode is lost."""

from __future__ import annotations

import json

import atif
import pytest

import skillc_gym
from skillc_gym import PairedVectorEnv, collect
from skillc_gym.envs.alfworld.experts.explorer import CarelessExplorers
from skillc_gym.episodes import Episode, Turn, to_atif
from skillc_gym.wrappers import ActionFormat, ChatPrompt, format_reply

assert skillc_gym


@pytest.fixture(scope="module")
def pair() -> tuple[Episode, ...]:
    """A won and a lost episode of one task, in chats."""
    wrappers = (ActionFormat, ChatPrompt)
    groups = PairedVectorEnv(
        "skillc/ALFWorld-v0", 1, 2, library="alfworld", where="info", wrappers=wrappers, data="generated"
    )
    groups.reset(seed=0)
    careless = CarelessExplorers()

    def replies(observations, infos):
        return [format_reply(command) for command in careless([info["observation"] for info in infos], infos)]

    (group,) = collect(groups, replies)
    return group.episodes


def test_played_episodes_are_trajectories(pair):
    assert {episode.won for episode in pair} == {True, False}
    for episode in pair:
        found = atif.Trajectory.model_validate_json(json.dumps(to_atif(episode, "careless")))
        system, user, *exchanges = found.steps
        assert (system.source, user.source, found.agent.model_name) == ("system", "user", "careless")
        assert episode.skill_text in system.message
        assert [system.message, user.message] == [message["content"] for message in episode.messages]
        assert [step.message for step in exchanges] == [turn.reply for turn in episode.turns]
        assert [step.tool_calls[0].arguments["command"] for step in exchanges] == [t.action for t in episode.turns]
        said = [step.observation.results[0].content for step in exchanges]
        assert said == [turn.observation for turn in episode.turns[1:]] + [episode.final_observation]
        assert found.extra["skill_sha256"] == episode.skill_sha256
        assert (found.extra["won"], found.extra["condition"]) == (episode.won, episode.condition)
        assert sum(step.extra["reward"] for step in exchanges) == found.extra["episode_return"]


@pytest.mark.parametrize("turns", [(), (Turn("You see a door.", "open", "open", True, False, 0.0),)])
def test_an_episode_without_a_chat_begins_with_what_was_seen(turns):
    names = ("task_id", "task_type", "goal", "skill", "skill_sha256", "skill_text")
    episode = Episode(
        **dict.fromkeys(names, ""),
        condition=0,
        seed=1,
        group_id=2,
        turns=turns,
        won=False,
        task_score=0.0,
        terminated=False,
        truncated=bool(turns),
        final_observation="You see a wall." if turns else "You see a door.",
    )
    found = atif.Trajectory.model_validate(to_atif(episode))
    assert (found.steps[0].source, found.steps[0].message) == ("user", "You see a door.")
    assert found.final_metrics.total_steps == len(found.steps) == 1 + len(turns)

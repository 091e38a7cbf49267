"""What an agent brings stands behind the skill, or in its place; the switch stays what it is."""

from __future__ import annotations

import hashlib

import gymnasium
import pytest

from skill_library import SkillText
from skillc_gym.wrappers import ActionFormat, ChatPrompt, SkillInjection
from skillc_lab.agents.shown import ShowNotes

HOUSES = {"data": "generated", "generator": {"games_per_type": 1, "size": "small"}, "task_types": ["pick"]}


def make(choose, form="conversation"):
    env = SkillInjection(gymnasium.make("skillc/ALFWorld-v0", **HOUSES), "alfworld", where="info")
    return ChatPrompt(ActionFormat(ShowNotes(env, choose)), {"form": form})


@pytest.mark.parametrize("form", ["conversation", "window"])
@pytest.mark.parametrize("skill", [True, False])
def test_the_note_is_in_the_prompt_and_in_the_record(skill, form):
    env = make(lambda info: SkillText("mine", f"Mind {info['task_type']}."), form)
    _, info = env.reset(seed=0, options={"skill": skill})
    for _ in range(2):
        assert info["condition"] == int(skill)
        assert info["skill"] == ("general+pick+mine" if skill else "mine")
        assert info["skill_text"].endswith("Mind pick_and_place_simple.")
        assert info["skill_text"] in info["messages"][0]["content"]
        assert info["skill_sha256"] == hashlib.sha256(info["skill_text"].encode()).hexdigest()
        info = env.step("look")[-1]


def test_without_a_note_nothing_changes():
    bare = ChatPrompt(ActionFormat(SkillInjection(gymnasium.make("skillc/ALFWorld-v0", **HOUSES), where="info")))
    for skill in (True, False):
        options = {"skill": skill}
        assert make(lambda info: None).reset(seed=0, options=options) == bare.reset(seed=0, options=options)


def test_every_episode_is_asked_for_anew_by_its_condition():
    env = make(lambda info: SkillText("on", "Sure.") if info["condition"] else None)
    assert env.reset(seed=0, options={"skill": True})[1]["skill"] == "general+pick+on"
    assert env.reset(seed=0, options={"skill": False})[1]["skill"] == ""

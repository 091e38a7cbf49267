"""ALFWorld keeps the suite's contract, bare, with skills off and with skills on, on generated and on real games."""

import re

import gymnasium
import pytest

import skillc_gym  # noqa: F401
from skill_library import load_library
from skillc_gym.chat import ChatFormat
from skillc_gym.curricula.skills import InternalizationCurriculum
from skillc_gym.testing import TextEnvContract
from skillc_gym.wrappers import ActionFormat, ChatPrompt, SkillCurriculum, SkillInjection, format_reply


class ALFWorldContract(TextEnvContract):
    @pytest.fixture(autouse=True)
    def _arguments(self):
        self.arguments = {"data": "generated", "split": "valid_seen"}

    def make_env(self):
        return gymnasium.make("skillc/ALFWorld-v0", **self.arguments)


class TestGenerated(ALFWorldContract):
    pass


class TestGeneratedWithSkills(ALFWorldContract):
    def make_env(self):
        return SkillInjection(super().make_env(), library="alfworld")


class TestReal(ALFWorldContract):
    @pytest.fixture(autouse=True)
    def _arguments(self, alfworld_data):
        self.arguments = {"data": str(alfworld_data), "split": "valid_unseen"}


@pytest.fixture(params=["generated", "real"])
def arguments(request):
    if request.param == "generated":
        return {"data": "generated", "split": "valid_seen"}
    return {"data": str(request.getfixturevalue("alfworld_data")), "split": "valid_unseen"}


def walk(env, commands, options=None):
    moments = [env.reset(seed=5, options=options)]
    for command in commands:
        moments.append(env.step(command))
    return moments


def test_a_winning_transcript_is_byte_identical_with_skills_off(arguments):
    bare = gymnasium.make("skillc/ALFWorld-v0", **arguments)
    off = SkillInjection(gymnasium.make("skillc/ALFWorld-v0", **arguments), enabled=False)
    for task_id in bare.unwrapped.task_ids[:: max(1, len(bare.unwrapped.task_ids) // 12)]:
        commands = [*bare.unwrapped.games.load(task_id).walkthrough]
        left, right = walk(bare, commands, {"task_id": task_id}), walk(off, commands, {"task_id": task_id})
        assert left[-1][2], "the walkthrough wins"
        assert [moment[0] for moment in left] == [moment[0] for moment in right]
        for one, other in zip(left, right, strict=True):
            assert one[1:-1] == other[1:-1]
            assert one[-1].items() <= other[-1].items()


def test_the_essential_commands_of_walkthroughs_are_those_of_the_skills(arguments):
    steps = {
        "look_at_obj_in_light": r"use (desklamp|floorlamp) \d+",
        "pick_clean_then_place_in_recep": r"clean .+ with sinkbasin \d+",
        "pick_heat_then_place_in_recep": r"heat .+ with microwave \d+",
        "pick_cool_then_place_in_recep": r"cool .+ with fridge \d+",
        "pick_and_place_simple": r"move .+ to .+",
        "pick_two_obj_and_place": r"move .+ to .+",
    }
    core = gymnasium.make("skillc/ALFWorld-v0", **arguments).unwrapped
    assert set(map(core.task_type_of, core.task_ids)) == set(load_library("alfworld").task_types) == set(steps)
    for task_id in core.task_ids[:: max(1, len(core.task_ids) // 60)]:
        kind = core.task_type_of(task_id)
        used = [command for command in core.games.load(task_id).walkthrough if re.fullmatch(steps[kind], command)]
        assert len(used) == (2 if kind == "pick_two_obj_and_place" else 1), task_id
        said = load_library("alfworld").for_task(kind).text
        assert used[0].split()[0] in said
        if kind in ("look_at_obj_in_light", "pick_clean_then_place_in_recep"):
            assert used[0].split()[-2] in said


def test_the_whole_stack_is_rebuilt_from_json():
    inner = SkillInjection(gymnasium.make("skillc/ALFWorld-v0", data="generated"), enabled=False, where="info")
    kinds = sorted({inner.unwrapped.task_type_of(task_id) for task_id in inner.unwrapped.task_ids})
    curriculum = InternalizationCurriculum(kinds, rho=0.5)
    env = ChatPrompt(ActionFormat(SkillCurriculum(inner, curriculum)), ChatFormat.compact().with_form("window:2"))
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert str(again) == str(env)
    assert again.get_wrapper_attr("enabled") is False
    replies = [format_reply("look"), "no", format_reply("inventory")]
    assert walk(env, replies) == walk(again, replies)

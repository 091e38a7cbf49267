from pathlib import Path

import gymnasium
import pytest
from gymnasium.error import ResetNeeded
from toy_env import ToyEnv, write_skills

from skill_library import Skill, SkillFileError, SkillText, load_library
from skill_library.formats import write_library
from skillc_gym.errors import ConfigError, UnknownNameError
from skillc_gym.wrappers import SkillInjection

ACTIONS = ["wait", "nonsense", "take key", "open it"]


def play(env, options=None, seed=3):
    observation, info = env.reset(seed=seed, options=options)
    steps = [(observation, info)]
    for action in ACTIONS:
        observation, reward, terminated, truncated, info = env.step(action)
        steps.append((observation, reward, terminated, truncated, info))
    return steps


def test_the_skill_stands_in_front_of_every_observation_and_the_space_has_room(toy, toy_library):
    bare = play(ToyEnv(), {"task_id": "toy/open/0"})
    on, off = SkillInjection(toy, toy_library), SkillInjection(ToyEnv(), toy_library, enabled=False)
    shown, library = play(on, {"task_id": "toy/open/0"}), load_library(toy_library)
    skill = library.for_task("open")
    told = {"condition": 1, "skill": "general+open", "skill_text": skill.text, "skill_sha256": skill.sha256}
    assert [step[0] for step in shown] == [f"{skill.text}\n\n{step[0]}" for step in bare]
    assert all(step[-1].items() >= told.items() for step in shown)
    assert on.observation_space == off.observation_space
    assert on.observation_space.max_length == 400 + library.longest + 2


@pytest.mark.parametrize(
    ("shown", "condition"), [({"enabled": False}, 0), ({"enabled": False, "where": "info"}, 0), ({"grade": "none"}, 1)]
)
def test_off_is_byte_identical_to_the_bare_environment(toy, toy_library, shown, condition):
    bare, off = play(ToyEnv()), play(SkillInjection(toy, toy_library, **shown))
    added = {"condition": condition, "skill": "", "skill_sha256": "", "skill_text": "", "skill_grade": "none"}
    for left, right in zip(bare, off, strict=True):
        assert (*left[:-1], {**left[-1], **added}) == right


def test_a_grade_says_how_much_is_shown(toy, toy_library):
    env = SkillInjection(toy, toy_library, where="info", grade="minimal")
    library = load_library(toy_library)
    minimal = library.graded("minimal").for_task("open")
    info = env.reset(seed=0, options={"task_id": "toy/open/0"})[1]
    assert (info["skill_grade"], info["skill_text"], info["skill_sha256"]) == ("minimal", minimal.text, minimal.sha256)
    assert env.step("wait")[-1]["skill_grade"] == "minimal"
    whole = env.reset(seed=0, options={"task_id": "toy/open/0", "skill_grade": "full"})[1]
    assert (whole["skill_grade"], whole["skill_text"]) == ("full", library.for_task("open").text)
    assert env.reset(seed=0, options={"skill": False})[1]["skill_grade"] == "none"


def test_the_option_decides_one_episode_and_is_not_passed_down(toy, toy_library):
    env = SkillInjection(toy, toy_library, enabled=True)
    options = {"skill": False}
    assert env.reset(seed=0, options=options)[1]["condition"] == 0
    assert options == {"skill": False}
    assert env.reset(seed=0)[1]["condition"] == 1
    env.enabled = False
    assert env.step("wait")[-1]["condition"] == 1
    assert env.reset(seed=0)[1]["condition"] == 0
    assert env.reset(seed=0, options={"skill": True})[1]["condition"] == 1


def test_after_a_reset_that_was_refused_no_step_has_the_skill_of_before(toy, tmp_path):
    env = SkillInjection(toy, write_skills(tmp_path, types=("open",)))
    env.reset(seed=0, options={"task_id": "toy/open/0"})
    with pytest.raises(UnknownNameError, match="grade"):
        env.reset(options={"task_id": "toy/open/1", "skill_grade": "some"})
    assert env.step("wait")[-1]["task_id"] == "toy/open/0", "nothing has begun"
    with pytest.raises(SkillFileError, match="no skill for task type 'fetch'"):
        env.reset(options={"task_id": "toy/fetch/0"})
    with pytest.raises(ResetNeeded):
        env.step("wait")
    assert env.reset(options={"task_id": "toy/fetch/0", "skill": False})[1]["condition"] == 0, "none is needed"


@pytest.mark.parametrize(
    ("misuse", "error", "said"),
    [
        (SkillInjection, ConfigError, "already has a SkillInjection"),
        (lambda env, library: SkillInjection(ToyEnv(), library, where="prompt"), UnknownNameError, "place for skills"),
        (lambda env, library: SkillInjection(gymnasium.make("CartPole-v1"), library), ConfigError, "text environment"),
        (lambda env, library: env.reset(options={"skill": "yes"}), ConfigError, "true or false"),
        (lambda env, library: env.reset(options={"skill_text": "words"}), ConfigError, "SkillText"),
        (lambda env, library: env.reset(options={"skill_text": a_text("x" * 10_000)}), ConfigError, "where='info'"),
        (lambda env, library: env.reset(options={"skill_grade": "minimum"}), UnknownNameError, "minimal"),
    ],
)
def test_misuse_is_named(toy, toy_library, misuse, error, said):
    with pytest.raises(error, match=said):
        misuse(SkillInjection(toy, toy_library), toy_library)


def a_text(words="Look twice."):
    return SkillText("memory", words)


def test_an_episode_may_see_another_text_than_the_librarys(toy, toy_library):
    env = SkillInjection(toy, toy_library, where="info")
    observation, info = env.reset(seed=0, options={"skill": True, "skill_text": a_text()})
    assert observation == ToyEnv().reset(seed=0)[0]
    assert (info["skill"], info["skill_text"], info["skill_sha256"]) == ("memory", "Look twice.", a_text().sha256)
    assert env.reset(seed=0, options={"skill": False, "skill_text": a_text()})[1]["skill_text"] == ""
    grades = {"full": "full", "minimal": "", "none": "none"}  # what a memory chose of a library that was made shorter
    for grade, said in grades.items():
        asked = {"skill": True, "skill_text": a_text(), "skill_grade": grade}
        assert env.reset(seed=0, options=asked)[1]["skill_grade"] == said
    for chosen in (lambda info: None, None):
        _, info = env.reset(seed=0, options={"skill_text": chosen})
        assert info["skill_text"] == load_library(toy_library).for_task(info["task_type"]).text
    _, info = env.reset(seed=0, options={"skill_text": lambda info: a_text(f"Mind {info['task_id']}.")})
    assert info["skill_text"] == f"Mind {info['task_id']}."


def test_it_is_rebuilt_from_its_json_and_a_path_never_taken_for_a_built_in_library(toy_id, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_library([Skill("mine", "d", ("*",), "My own text.")], Path("alfworld"))
    env = SkillInjection(gymnasium.make(toy_id), Path("alfworld"), enabled=False, where="info", grade="minimal")
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert (again.enabled, again.where, again.grade) == (False, "info", "minimal")
    assert play(again) == play(env)
    assert again.reset(seed=0, options={"skill": True})[1]["skill"] == "mine"

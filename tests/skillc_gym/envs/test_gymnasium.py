"""What Gymnasium's own tools make of the environments: vectors, films, the checker, spaces of other libraries."""

import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Text
from gymnasium.wrappers import PassiveEnvChecker
from toy_env import GENERATED, SMALL, made, toys_with

from skillc_gym.errors import MissingExtraError
from skillc_gym.pages import text_picture
from skillc_gym.wrappers import ActionFormat, SkillInjection, find_wrapper

by_name = pytest.mark.parametrize("spec", GENERATED, ids=lambda spec: spec.name)


def steps_of(envs):
    observations, infos = envs.reset(seed=3)
    seen = [observations, list(infos["task_id"])]
    for _ in range(3):
        observations, rewards, *_ = envs.step(("look", "search[red]"))
        seen += [observations, rewards.tolist()]
    envs.close()
    return seen


@by_name
def test_vectors_of_gymnasium_play_alike(spec):
    makers, options = [lambda: made(spec)] * 2, {"data": "generated", "generator": SMALL[spec.name]}
    one = steps_of(gymnasium.vector.SyncVectorEnv(makers))
    assert one == steps_of(gymnasium.vector.AsyncVectorEnv(makers, shared_memory=False))
    assert one == steps_of(gymnasium.make_vec(spec.id, 2, vectorization_mode="sync", **options))


@by_name
def test_the_passive_checker_comes_when_it_is_asked_for(spec):
    found = [find_wrapper(made(spec, **asked), PassiveEnvChecker) for asked in ({}, {"disable_env_checker": False})]
    assert [checker is not None for checker in found] == [False, True]


@by_name
def test_pictures_have_one_shape_and_change_with_what_is_shown(spec):
    env, again = (made(spec, render_mode="rgb_array") for _ in range(2))
    _, info = env.reset(seed=0)
    again.reset(seed=0)
    before = env.render()
    env.step(info["admissible_commands"][0].replace("<query>", "red"))
    assert before.shape == env.render().shape == (720, 960, 3)
    assert before.dtype == np.uint8
    assert (before != env.render()).any()
    assert (before == again.render()).all()


@by_name
def test_episodes_can_be_filmed(spec, tmp_path):
    pytest.importorskip("moviepy", reason="needs the render extra")
    env = gymnasium.wrappers.RecordVideo(made(spec, render_mode="rgb_array"), str(tmp_path), lambda episode: True)
    _, info = env.reset(seed=0)
    for action in info["admissible_commands"][:3]:
        env.step(action)
    env.close()
    assert [file.suffix for file in tmp_path.iterdir()] == [".mp4"]


@pytest.mark.parametrize("text", ["", "x" * 100_000, "a\n" * 10_000, "café ☕ 😀\t|", "\x00\x1b[2J\ud800"])
def test_any_text_can_be_drawn(text):
    assert text_picture(text).shape == (720, 960, 3)


def test_without_pillow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtraError, match=r"Pillow .*skillc-gym\[render\]"):
        text_picture("hello")


def test_gymnasiums_text_spaces_are_wrapped(toy_library):
    plain = toys_with(observation_space=Text(400), action_space=Text(100))()  # no blank is among their characters
    env = ActionFormat(SkillInjection(plain, toy_library))
    observation, _ = env.reset(seed=0)
    assert observation in env.observation_space
    assert env.step("<think>t</think><action>take key</action>")[-1]["action_valid"]

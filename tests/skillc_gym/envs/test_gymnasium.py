"""What Gymnasium's own tools make of the environments: vectors, films, the checker, spaces of other libraries."""

import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Text
from gymnasium.wrappers import PassiveEnvChecker
from toy_env import GENERATED, SMALL, ToyEnv, made

from skillc_gym.errors import MissingExtraError
from skillc_gym.picture import text_picture
from skillc_gym.testing import TextEnvContract
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
    makers = [lambda: made(spec)] * 2
    one = steps_of(gymnasium.vector.SyncVectorEnv(makers))
    other = steps_of(gymnasium.vector.AsyncVectorEnv(makers, shared_memory=False))
    assert one == other
    assert one == steps_of(
        gymnasium.make_vec(spec.id, 2, vectorization_mode="sync", data="generated", generator=SMALL[spec.name])
    )


def test_the_passive_checker_comes_when_it_is_asked_for():
    for spec in GENERATED:
        found = [find_wrapper(made(spec, **asked), PassiveEnvChecker) for asked in ({}, {"disable_env_checker": False})]
        assert [checker is not None for checker in found] == [False, True]


@by_name
def test_pictures_have_one_shape_and_change_with_what_is_shown(spec):
    env = made(spec, render_mode="rgb_array")
    _, info = env.reset(seed=0)
    frames = [env.render()]
    for action in info["admissible_commands"][:2]:
        env.step(action.replace("<query>", "red"))
        frames.append(env.render())
    assert {frame.shape for frame in frames} == {(720, 960, 3)}
    assert {frame.dtype for frame in frames} == {np.dtype(np.uint8)}
    assert (frames[0] != frames[1]).any()
    again = made(spec, render_mode="rgb_array")
    again.reset(seed=0)
    assert (again.render() == frames[0]).all()


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


class Plain(ToyEnv):
    """Spaces as Gymnasium's Text makes them, without a blank among their characters."""

    def __init__(self):
        super().__init__()
        self.observation_space, self.action_space = Text(400), Text(100)


def test_gymnasiums_text_spaces_are_wrapped(toy_library):
    env = ActionFormat(SkillInjection(Plain(), toy_library))
    observation, _ = env.reset(seed=0)
    assert observation in env.observation_space
    assert env.step("<think>t</think><action>take key</action>")[-1]["action_valid"]


def test_the_kit_names_the_remedy_for_texts_outside_gymnasiums_space():
    kit = TextEnvContract()
    kit.make_env = Plain
    with pytest.raises(AssertionError, match=r"outside the observation space.*skillc_gym\.spaces\.Unicode"):
        kit.test_spaces_hold_everything()

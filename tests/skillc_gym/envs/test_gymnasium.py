"""What Gymnasium's own tools make of the environments: vectors, films, the checker, spaces of other libraries."""

import sys

import gymnasium
import numpy as np
import pytest
from toy_env import GENERATED, SMALL, made

from skillc_gym.errors import MissingExtraError
from skillc_gym.pages import text_picture

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


@pytest.mark.parametrize("text", ["", "a\n" * 10_000, "café ☕ 😀\t|", "\x00\x1b[2J\ud800"])
def test_any_text_can_be_drawn(text):
    assert text_picture(text).shape == (720, 960, 3)


def test_without_pillow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtraError, match=r"Pillow .*skillc-gym\[render\]"):
        text_picture("hello")

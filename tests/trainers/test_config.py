from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError, UnknownNameError
from trainers.commands.command_line import describe_settings, parse_config, setting_docs
from trainers.config import TrainConfig, method_options
from trainers.rollout.task_sampling import draw_tasks, panel_of, split_tasks

TASKS = {f"train/{kind}/{i}": kind for kind in ("a", "b", "c") for i in range(12)}


def test_words_become_typed_settings() -> None:
    config = parse_config(
        ["model=m", "preset=grpo", "steps=40", "learning_rate=1e-4", "task_types=heat,cool", "eval_greedy=true",
         "max_episode_steps=none", "preset.omega=0.2", "preset.correction_mask=success",
         'env.generator={"size": "small"}', "chat.show_admissible=false"]
    )  # fmt: skip
    assert (config.preset, config.steps, config.learning_rate) == ("grpo", 40, 1e-4)
    assert (config.task_types, config.eval_greedy, config.max_episode_steps) == (("heat", "cool"), True, None)
    assert config.preset_options == {"omega": 0.2, "correction_mask": "success"}
    assert config.env_kwargs["generator"] == {"size": "small"}
    assert config.chat_options == {"show_admissible": False}


@pytest.mark.parametrize(
    ("word", "error", "says"),
    [
        ("stepz=3", UnknownNameError, "Did you mean 'steps'"),
        ("steps=three", ConfigError, "not of type int"),
        ("steps=0", ConfigError, "at least 1"),
        ("steps", ConfigError, "key=value"),
        ("engine=tgi", UnknownNameError, "expected one of: transformers, vllm"),
        ("eval_greedy=maybe", ConfigError, "not of type bool"),
        ("temperature=0", ConfigError, "must be positive"),
        ("minibatches=100", ConfigError, "fewer rollouts than minibatches"),
    ],
)
def test_wrong_words_say_what_is_wrong(word: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        parse_config(["model=m", word])


def test_a_model_is_required() -> None:
    with pytest.raises(ConfigError, match="model=PATH is missing"):
        parse_config(["steps=3"])


def test_every_setting_has_a_doc_string() -> None:
    docs = setting_docs()
    assert set(docs) == {field.name for field in fields(TrainConfig)}
    assert all(len(doc) > 10 for doc in docs.values())
    assert "preset" in describe_settings()


def test_every_setting_is_in_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
    missing = [field.name for field in fields(TrainConfig) if f"`{field.name}`" not in text]
    assert not missing


def test_differences_leave_out_what_moves_no_number() -> None:
    config = TrainConfig(model="m")
    other = config.with_(data="elsewhere", run="r", save_every=3)
    assert config.differences(other.to_json()) == {}
    assert config.differences(config.with_(beta=0.5).to_json()) == {"beta": (0.5, 0.01)}


@given(st.integers(1, 20), st.integers(0, 100))
def test_training_tasks_and_panel_are_disjoint_and_complete(per_type: int, seed: int) -> None:
    split = split_tasks(TASKS, per_type, seed)
    assert not set(split.training) & set(split.panel)
    assert sorted([*split.training, *split.panel]) == sorted(TASKS)
    counts = [sum(TASKS[task] == kind for task in split.panel) for kind in "abc"]
    assert counts == [min(per_type, 6)] * 3


def test_the_panel_hardly_moves_when_tasks_are_added() -> None:
    before = panel_of(TASKS, 4, 0)
    after = panel_of({**TASKS, "train/a/new": "a"}, 4, 0)
    assert len(set(before) & set(after)) >= len(before) - 1


def test_a_type_with_one_task_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least one each"):
        split_tasks({**TASKS, "train/d/0": "d"}, 4, 0)


@given(st.integers(1, 30), st.integers(0, 50), st.integers(1, 200))
def test_draws_depend_on_seed_and_step_alone(count: int, seed: int, step: int) -> None:
    split = split_tasks(TASKS, 4, 0)
    for draw in ("uniform", "types"):
        drawn = draw_tasks(split, count, draw, seed=seed, step=step)
        assert drawn == draw_tasks(split, count, draw, seed=seed, step=step)
        assert len(drawn) == count
        assert set(drawn) <= set(split.training)
    counts = [sum(TASKS[task] == kind for task in drawn) for kind in "abc"]
    assert max(counts) - min(counts) <= 1


def test_different_steps_draw_different_tasks() -> None:
    split = split_tasks(TASKS, 4, 0)
    draws = {tuple(draw_tasks(split, 8, "uniform", seed=0, step=step)) for step in range(20)}
    assert len(draws) == 20


def test_webshops_one_skill_is_never_pruned_unless_asked():
    kept = TrainConfig(model="m", env="webshop").method_options
    assert kept == {"capacity": (1,), "retire_by": ()}
    assert TrainConfig(model="m").method_options == {}
    assert method_options("skillc/WebShop-v0", {"retire_by": ("gap",)})["retire_by"] == ("gap",)

"""Settings: checked, understood by old names, compared; tasks and panels; names to objects."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError, UnknownNameError
from trainers.config import TrainConfig
from trainers.evaluation import open_panel
from trainers.models import context_limit, within_model
from trainers.rollout import chat_format, tasks_of
from trainers.rollout.opening import sample_tasks, split_tasks

SMALL = {"generator": {"games_per_type": 6, "size": "small"}}
TASKS = {f"train/{kind}/{i}": kind for kind in ("a", "b", "c") for i in range(12)}


def test_positions_that_turn_with_the_longest_row_end_where_they_begin_to(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="needs the train extra")
    rope = {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0] * 4, "long_factor": [2.0] * 4}
    sizes = {"max_position_embeddings": 256, "original_max_position_embeddings": 64, "rope_parameters": rope}
    config = {"model_type": "phi3", "hidden_size": 32, "num_attention_heads": 4, "pad_token_id": 0, **sizes}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert context_limit(TrainConfig(model=str(tmp_path))) == 64


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"learning_rate": float("nan")}, "learning_rate must be finite"),
        ({"env_options": {"split": "train"}}, r"env\.split is a setting of its own: give split=train"),
        ({"num_minibatches": 100}, "fewer rollouts than minibatches"),
        ({"schedule": "nope"}, "constant, linear, cosine"),
        ({"loss_type": "dapo", "loss_aggregation": "constant"}, "loss_type=dapo means loss_aggregation=token"),
        ({"reference_sync_every": 1, "lora_rank": 2}, "with lora_rank the reference is the policy"),
        ({"trained_layers": "lower:1"}, "all, or upper:N"),
        ({"precision": "bfloat16_copy", "gradient_checkpointing": True}, "exclude each other"),
        ({"share_prefixes": True, "lora_rank": 2, "lora_dropout": 0.1}, "lora_dropout=0"),
    ],
)
def test_wrong_values_and_those_that_exclude_each_other_are_refused(settings: dict[str, Any], remedy: str) -> None:
    with pytest.raises(UnknownNameError if "schedule" in settings else ConfigError, match=remedy):
        TrainConfig(model="m", **settings)


MEANT_BY_GRPO = {"loss_aggregation": "trajectory", "ratio": "token"}
MEANT = ("grpo trajectory token", "dapo token token", "dr_grpo constant token", "gspo trajectory sequence")


@pytest.mark.parametrize("words", MEANT)
def test_a_loss_type_is_short_for_two_settings(words: str) -> None:
    loss_type, *meant = words.split()
    config: Any = TrainConfig(model="m", loss_type=loss_type)
    assert [config.loss_aggregation, config.ratio] == meant
    assert TrainConfig.from_json(config.to_json()) == config
    for other in ("gspo", None):
        assert config.with_(loss_type=other) == TrainConfig(model="m", loss_type=other)
    if loss_type != "grpo":
        name, value = next((n, v) for n, v in MEANT_BY_GRPO.items() if v not in meant)
        with pytest.raises(ConfigError, match=f"loss_type={loss_type} means {name}="):
            config.with_(**{name: value})


def test_old_names_are_understood_and_the_new_ones_said() -> None:
    with pytest.warns(FutureWarning, match="preset is called method now") as said:
        config = TrainConfig(model="m", preset="grpo", preset_options={"eps": 0.1})
    assert {each.filename for each in said} == {__file__}
    assert config == TrainConfig(model="m", method="grpo", method_options={"eps": 0.1})
    with pytest.warns(FutureWarning, match="minibatches is called num_minibatches now"):
        assert config.with_(minibatches=2).num_minibatches == 2


def test_settings_that_an_older_version_wrote_are_todays() -> None:
    config = TrainConfig(model="m", method="grpo", kl_coef=0.5, task_sampling="types")
    older = config.legacy_json()
    assert {"preset": "grpo", "beta": 0.5, "draw": "types", "minibatches": 1}.items() <= older.items()
    assert TrainConfig.from_json(older) == TrainConfig.from_json(config.to_json()) == config
    assert config.differences(older) == {}


def test_hashes_over_settings_are_those_of_the_cells_that_were_recorded() -> None:
    """A study's cells are known by a hash over all settings: a new name or default would make strangers of them."""
    settings = json.dumps(TrainConfig(model="m", method="skillc").legacy_json(), sort_keys=True)
    assert hashlib.sha256(settings.encode()).hexdigest() == (
        "2d205b722329c08f7c3f5420286df5b912647db6ec520fc2770b21f3b2b9c748"
    )


def test_differences_leave_out_what_moves_no_number_and_what_an_older_run_did_not_know() -> None:
    config = TrainConfig(model="m")
    other = config.with_(data="elsewhere", run="r", save_every=3)
    assert config.differences(other.to_json()) == {}
    assert config.differences(config.with_(kl_coef=0.5).to_json()) == {"kl_coef": (0.5, 0.01)}
    wrapped, other_way = (
        config.with_(env_wrappers={name: {} for name in order}) for order in (("a:A", "b:B"), ("b:B", "a:A"))
    )
    assert list(wrapped.differences(other_way.to_json())) == ["env_wrappers"]
    older = {name: value for name, value in config.to_json().items() if name != "engine_options"}
    assert config.differences(older) == {}
    assert config.with_(engine_options={"x": 1}).differences(older) == {"engine_options": ({}, {"x": 1})}


@given(st.integers(1, 20), st.integers(0, 100))
def test_training_tasks_and_panel_are_disjoint_and_complete(per_type: int, seed: int) -> None:
    split = split_tasks(TASKS, per_type, seed)
    assert not set(split.training) & set(split.panel)
    assert sorted([*split.training, *split.panel]) == sorted(TASKS)
    counts = [sum(TASKS[task] == kind for task in split.panel) for kind in "abc"]
    assert counts == [min(per_type, 6)] * 3


def test_a_type_with_one_task_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least one each"):
        split_tasks({**TASKS, "train/d/0": "d"}, 4, 0)


@given(st.integers(1, 30), st.integers(0, 50), st.integers(1, 200))
def test_draws_depend_on_seed_and_step_alone(count: int, seed: int, step: int) -> None:
    split = split_tasks(TASKS, 4, 0)
    for draw in ("uniform", "types"):
        drawn, again = (sample_tasks(split, count, draw, seed=seed, step=step) for _ in range(2))
        assert drawn == again
        assert len(drawn) == count
        assert set(drawn) <= set(split.training)
    counts = [sum(TASKS[task] == kind for task in drawn) for kind in "abc"]
    assert max(counts) - min(counts) <= 1
    assert len({tuple(sample_tasks(split, 8, "uniform", seed=seed, step=step)) for step in range(20)}) == 20


def test_an_environment_is_found_in_the_module_before_its_id():
    config = TrainConfig(model="m", env="tests.trainers.toys:skillc-tests/Toy-v0")
    assert config.env_id == "skillc-tests/Toy-v0"
    assert len(tasks_of(config)) == 32


def test_the_panel_does_not_depend_on_the_runs_seed() -> None:
    configs = [TrainConfig(model="m", data="generated", env_options=SMALL, seed=seed) for seed in (0, 1)]
    assert open_panel(configs[0], 2).tasks == open_panel(configs[1], 2).tasks
    other = configs[0].with_(panel_seed=1)
    assert open_panel(other, 2).tasks != open_panel(configs[0], 2).tasks


def test_the_shop_is_told_that_it_is_a_shop() -> None:
    for chat in ("default", "compact"):
        assert "house" not in chat_format(TrainConfig(model="m", env="webshop", chat=chat)).role
    assert "shop" in chat_format(TrainConfig(model="m", env="webshop")).role
    assert "house" in chat_format(TrainConfig(model="m")).role


def test_a_row_is_at_most_what_the_model_takes() -> None:
    shipped = TrainConfig(model="shipped")
    assert shipped.max_context > (context_limit(shipped) or 0)
    assert within_model(shipped).max_context == context_limit(shipped)
    assert within_model(shipped.with_(max_context=100)).max_context == 100

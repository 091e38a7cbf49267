"""Settings of objective, reference, sampling and prompts: each changes a run as it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from skillc_gym.errors import ConfigError
from tests.trainers.test_train import Dies
from tests.trainers.toys import GRADED, timeless, toy_config
from trainers.config import TrainConfig
from trainers.losses import ClippedPolicyGradient
from trainers.losses.policy_gradient import clipped_policy_gradient
from trainers.training import run

pytest.importorskip("trl", reason="needs the extra 'train'")


@pytest.fixture
def config(toy_folder: Path, tmp_path: Path) -> TrainConfig:
    return toy_config(
        toy_folder, run=str(tmp_path / "run"), steps=2, tasks_per_step=8, group_size=8, max_reply_tokens=3,
        **GRADED,
        micro_batches=1, learning_rate=1e-2, transcripts_every=0, validate_every=2, panel_per_type=1, save_every=9,
    )  # fmt: skip


def test_a_rows_ratio_is_the_geometric_mean_over_its_own_tokens() -> None:
    logprobs = torch.tensor([[0.1, 0.3, 9.0]], requires_grad=True)
    mask = torch.tensor([[1.0, 1.0, 0.0]])
    values, _ = clipped_policy_gradient(
        logprobs, torch.ones(1, 3), old_logprobs=torch.zeros(1, 3), clip=9.0, sequences=mask
    )
    ratio = torch.tensor(0.2).exp().item()
    assert values.detach()[0, :2].tolist() == pytest.approx([-ratio, -ratio])
    (gradient,) = torch.autograd.grad((values * mask).sum(), logprobs)
    assert gradient[0].tolist() == pytest.approx([-ratio, -ratio, 0.0])


@pytest.mark.parametrize(
    ("loss_type", "meant"),
    [
        ("grpo", ("trajectory", "token")),
        ("dapo", ("token", "token")),
        ("dr_grpo", ("constant", "token")),
        ("gspo", ("trajectory", "sequence")),
    ],
)
def test_a_loss_type_is_short_for_two_settings(loss_type: Any, meant: tuple[str, str]) -> None:
    config = TrainConfig(model="m", loss_type=loss_type)
    assert (config.loss_aggregation, config.ratio) == meant
    assert TrainConfig(**{**config.to_json(), "task_types": None}).ratio == meant[1]


def test_a_loss_type_does_not_go_with_another_aggregation() -> None:
    with pytest.raises(ConfigError, match="loss_type=dapo means loss_aggregation=token"):
        TrainConfig(model="m", loss_type="dapo", loss_aggregation="constant")


def test_recipes_take_the_runs_settings_where_theirs_are_open() -> None:
    own = ClippedPolicyGradient(clip_high=0.5).configured(clip=0.1, kl_coef=0.0, clip_high=0.3, ratio="sequence")
    assert (own.clip, own.clip_high, own.ratio) == (0.1, 0.5, "sequence")


@pytest.mark.parametrize(
    "changes",
    [
        {"clip": 0.0, "clip_high": 5.0, "num_minibatches": 2},
        {"ratio": "sequence", "num_minibatches": 2},
        {"loss_type": "dr_grpo"},
        {"top_k": 2},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_each_moves_a_run(config: TrainConfig, tmp_path: Path, changes: dict[str, Any]) -> None:
    still = {name: value for name, value in changes.items() if name in ("num_minibatches", "env_options")}
    plain = run(config.with_(run=str(tmp_path / "plain"), **still))
    moved = run(config.with_(run=str(tmp_path / "moved"), **changes))
    assert moved.finished
    assert timeless(plain.metrics) != timeless(moved.metrics)


@pytest.mark.parametrize("method", ["grpo", "grpo+entropy", "opsd"])
def test_episodes_that_were_truncated_teach_nothing(config: TrainConfig, method: str) -> None:
    config = config.with_(env_options={"turns": 3}, max_episode_steps=1, kl_coef=0.5, method=method)
    (update,) = [record for record in run(config.with_(steps=1, mask_truncated="all")).metrics if "grad_norm" in record]
    assert update["grad_norm"] == 0
    assert update["loss"] == 0
    assert update["entropy"] is None


def test_a_critic_learns_from_episodes_that_were_truncated(config: TrainConfig) -> None:
    config = config.with_(env_options={"turns": 3}, max_episode_steps=1, kl_coef=0.5, method="ppo")
    (update,) = [record for record in run(config.with_(steps=1, mask_truncated="all")).metrics if "losses" in record]
    assert update["losses"]["policy"] == 0
    assert update["losses"]["value"] > 0


def test_a_reference_that_follows_is_the_policy_and_resumes_exactly(config: TrainConfig, tmp_path: Path) -> None:
    config = config.with_(kl_coef=0.5, steps=4, save_every=2, learning_rate=1e-2)
    still = run(config.with_(run=str(tmp_path / "still")))
    config = config.with_(reference_sync_every=1, reference_sync_weight=1.0)
    whole = run(config.with_(run=str(tmp_path / "whole")))
    kl = [record["kl"] for record in whole.metrics if record["event"] == "train"]
    assert kl == pytest.approx([0.0] * 4, abs=1e-5)
    assert max(record["kl"] for record in still.metrics if record["event"] == "train") > 1e-5
    halfway = config.with_(reference_sync_every=1, reference_sync_weight=0.5)
    expected = run(halfway.with_(run=str(tmp_path / "expected")))
    with pytest.raises(RuntimeError, match="killed"):
        run(halfway, progress=Dies(5, midway=True))
    assert timeless(run(halfway).metrics) == timeless(expected.metrics)


def test_a_reference_that_is_not_there_cannot_follow(config: TrainConfig) -> None:
    with pytest.raises(ConfigError, match="lora_rank the reference is the policy"):
        config.with_(reference_sync_every=1, lora_rank=2)
    with pytest.raises(ConfigError, match="with kl_coef=0 this run has none"):
        run(config.with_(reference_sync_every=1, kl_coef=0.0, method="grpo"))

"""Pins the private surface of TRL that the trainer stands on; a failure here says what moved."""

import inspect
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("trl", reason="needs the extra 'train'")

from transformers import Trainer
from trl import GRPOTrainer

from benchmarks.trl_throughput import padded
from tests.trainers.toys import start_learner
from trainers.base import TokenRow, Trajectory
from trainers.learner import Learner
from trainers.learner.objective import policy_value
from trainers.losses import ClippedPolicyGradient
from trainers.rollout.batches import MicroBatch, Tokens, TrainingRow, collate, make_training_rows


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("_init_training_state", ["max_steps", "num_update_steps_per_epoch", "num_train_epochs"]),
        ("_prepare_for_training", ["max_steps", "train_dataloader", "resume_from_checkpoint"]),
        ("_get_grad_norm", ["model", "grad_norm"]),
    ],
)
def test_what_we_call_has_the_arguments_we_pass(name: str, expected: list[str]) -> None:
    assert list(inspect.signature(getattr(GRPOTrainer, name)).parameters)[1 : len(expected) + 1] == expected


def test_the_loop_that_we_leave_out_is_entered_where_we_think() -> None:
    """All that comes before the loop is the trainer's: liger, checkpointing, the weights of a checkpoint."""
    assert "self._inner_training_loop, self._train_batch_size" in inspect.getsource(Trainer.train)
    assert {"batch_size", "args", "resume_from_checkpoint"} < {
        *inspect.signature(Trainer._inner_training_loop).parameters
    }


def test_a_step_and_a_pass_do_what_the_loop_does() -> None:
    source = inspect.getsource(Trainer._run_epoch)
    steps = ("_clip_grad_norm(", "_get_grad_norm(", "optimizer.step()", "_get_learning_rate()", "lr_scheduler.step()")
    places = [source.index(step) for step in (*steps, "model.zero_grad()", "global_step += 1")]
    assert places == sorted(places)
    source += inspect.getsource(Trainer.training_step)
    for part in ("gradient_state._set_sync_gradients(", "accelerator.no_sync, model=model", '"scale_wrt_gas"] = False'):
        assert part in source


@pytest.fixture
def learner(toy: Any) -> Learner:
    return start_learner(toy(kl_coef=0.1, micro_batches=1))


def in_trls_layout(rows: list[TokenRow], advantages: list[float], ours: MicroBatch) -> dict[str, torch.Tensor]:
    """The rows as the throughput is measured on, with their advantages and the figures of our batch."""
    batch = padded(rows, 0, torch.device("cpu")) | {"advantages": torch.tensor(advantages)}
    first = ours.tokens.input_ids.shape[1] - ours.tokens.mask.shape[1]
    for name in ("old", "ref"):
        column = torch.zeros(batch["completion_ids"].shape)
        for i, row in enumerate(rows):
            start, own = len(row.prompt_ids) - first, len(row.completion_ids)
            column[i, :own] = ours.figures[f"{name}_logprobs"][i, start : start + own]
        batch[f"{name}_per_token_logps"] = column
    return batch


def trajectory(*rows: TokenRow) -> Trajectory:
    episode: Any = SimpleNamespace(task_type="echo")
    return Trajectory(episode, list(rows), 0)


@pytest.mark.parametrize(
    ("aggregation", "ratio", "trls"),
    [
        ("trajectory", "token", {"loss_type": "grpo"}),
        ("token", "token", {"loss_type": "dapo"}),
        ("constant", "token", {"loss_type": "dr_grpo"}),
        ("trajectory", "sequence", {"loss_type": "grpo", "importance_sampling_level": "sequence"}),
        ("trajectory", "token", {"loss_type": "grpo", "epsilon_high": 0.05}),
    ],
    ids=["grpo", "dapo", "dr_grpo", "gspo", "clip_high"],
)
def test_our_objective_is_trls_loss_where_every_row_is_a_trajectory(learner, aggregation, ratio, trls) -> None:
    rng = np.random.default_rng(0)
    rows = []
    for prompt, mask in ((3, [1, 1, 0, 1]), (5, [1, 0, 0, 1, 1, 1]), (2, [1])):
        ids = rng.integers(6, 20, prompt + len(mask)).tolist()
        rows.append(TokenRow(ids[:prompt], ids[prompt:], mask, [0.0] * len(mask)))
    advantages, played = [0.7, -1.3, 0.2], [trajectory(row) for row in rows]
    weighted = make_training_rows(played, advantages, range(3), aggregation, total=3, tokens=8, longest=7)
    ours = collate(weighted, 0, torch.device("cpu"), ["policy"])
    backend, objective = learner.backend, learner.objective
    with torch.no_grad():
        compared = {
            "ref_logprobs": backend.score(ours.tokens, {"logprobs"}, "reference")["logprobs"] - 0.3,
            "old_logprobs": backend.score(ours.tokens, {"logprobs"})["logprobs"] + 0.25,
        }
    ours = replace(ours, figures={**ours.figures, **compared})
    trainer = backend.trainer
    # TRL's default weighs the penalty by the probability ratio; ours is the plain k3 of the method.
    trainer.args.use_bias_correction_kl = False
    for name, value in {"current_gradient_accumulation_steps": 1, "max_completion_length": 7, **trls}.items():
        setattr(trainer, name, value)
    objective.losses = (replace(objective.losses[0], ratio=ratio, clip_high=trls.get("epsilon_high")),)
    with torch.no_grad():
        expected = GRPOTrainer._compute_loss(trainer, trainer.model, in_trls_layout(rows, advantages, ours))
        assert float(learner.loss(ours, 1)) == pytest.approx(float(expected), rel=1e-4)


def test_the_sampling_ratio_is_capped_and_only_on_with_inexact_engines() -> None:
    sampling, ones = torch.tensor([[-5.0, float(np.log(2))]]), torch.ones(1, 2)
    row = TrainingRow(TokenRow([0], [0, 0], [1, 1], [0.0] * 2), np.ones(2), {"policy": 1.0}, 0)
    tokens = Tokens(torch.ones(1, 3, dtype=torch.int64), ones)
    batch = MicroBatch(tokens, ones, {"policy": ones}, {"sampling_logprobs": sampling}, (row,))
    figures = {"logprobs": torch.zeros(1, 2)}
    for exact, value in ((True, -2.0), (False, -(2.0 + 0.5))):
        assert float(policy_value(ClippedPolicyGradient(), batch, figures, exact_sampling=exact)) == pytest.approx(
            value
        )

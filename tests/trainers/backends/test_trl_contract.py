"""Pins the private surface of TRL that the trainer stands on; a failure here says what moved."""

from __future__ import annotations

import inspect
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("trl", reason="needs the extra 'train'")

from transformers import Trainer
from trl import GRPOTrainer

from tests.trainers.toys import next_batches, start_learner, toy_config
from trainers.backends.trl.backend import TrlBackend
from trainers.base import TokenRow, Trajectory
from trainers.learner import Learner
from trainers.learner.objective import policy_value
from trainers.losses import ClippedPolicyGradient
from trainers.rollout.batches import MicroBatch, Tokens, TrainingRow, collate, make_training_rows, padding_row


def parameters(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


def test_the_version_is_the_one_that_was_read() -> None:
    assert metadata.version("trl") == "1.16.0"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("_init_training_state", ["max_steps", "num_update_steps_per_epoch", "num_train_epochs"]),
        ("_prepare_for_training", ["max_steps", "train_dataloader", "resume_from_checkpoint"]),
        ("_clip_grad_norm", ["model"]),
        ("_get_grad_norm", ["model", "grad_norm"]),
        ("_get_learning_rate", []),
        ("_save_optimizer_and_scheduler", ["output_dir"]),
        ("_save_scaler", ["output_dir"]),
        ("_save_rng_state", ["output_dir"]),
        ("_load_rng_state", ["checkpoint"]),
        ("_load_from_checkpoint", ["resume_from_checkpoint"]),
    ],
)
def test_what_we_call_has_the_arguments_we_pass(name: str, expected: list[str]) -> None:
    assert parameters(getattr(GRPOTrainer, name))[1 : len(expected) + 1] == expected


def test_the_loop_that_we_leave_out_is_entered_where_we_think() -> None:
    """All that comes before the loop is the trainer's: liger, checkpointing, the weights of a checkpoint."""
    assert "self._inner_training_loop, self._train_batch_size" in inspect.getsource(Trainer.train)
    assert {"batch_size", "args", "resume_from_checkpoint"} < set(parameters(Trainer._inner_training_loop))


def test_a_step_does_in_order_what_the_loop_does() -> None:
    source = inspect.getsource(Trainer._run_epoch)
    steps = ("_clip_grad_norm(", "_get_grad_norm(", "optimizer.step()", "_get_learning_rate()", "lr_scheduler.step()")
    places = [source.index(step) for step in (*steps, "model.zero_grad()", "global_step += 1")]
    assert places == sorted(places)


def test_a_backend_does_for_a_pass_what_the_loop_does() -> None:
    source = inspect.getsource(Trainer._run_epoch) + inspect.getsource(Trainer.training_step)
    for part in ("gradient_state._set_sync_gradients(", "accelerator.no_sync, model=model", '"scale_wrt_gas"] = False'):
        assert part in source


@pytest.fixture
def learner(toy_folder: Path, tmp_path: Path) -> Learner:
    return start_learner(toy_config(toy_folder, run=str(tmp_path), kl_coef=0.1, micro_batches=1))


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
def test_our_objective_is_trls_loss_where_every_row_is_a_trajectory(
    learner: Learner, aggregation: Any, ratio: Any, trls: dict[str, Any]
) -> None:
    rng = np.random.default_rng(0)
    rows = []
    for prompt, mask in ((3, [1, 1, 0, 1]), (5, [1, 0, 0, 1, 1, 1]), (2, [1])):
        ids = rng.integers(6, 20, prompt + len(mask)).tolist()
        rows.append(TokenRow(ids[:prompt], ids[prompt:], mask, [0.0] * len(mask)))
    advantages = [0.7, -1.3, 0.2]
    played = [trajectory(row) for row in rows]
    weighted = make_training_rows(played, advantages, range(3), aggregation, total=3, tokens=9, longest=7)
    ours = collate(weighted, 0, torch.device("cpu"), ["policy"])
    with torch.no_grad():
        compared = {
            "ref_logprobs": learner.backend.score(ours.tokens, {"logprobs"}, "reference")["logprobs"] - 0.3,
            "old_logprobs": learner.backend.score(ours.tokens, {"logprobs"})["logprobs"] + 0.25,
        }
    ours = replace(ours, figures={**ours.figures, **compared})
    theirs = _in_trls_layout(rows, advantages, ours)
    assert isinstance(learner.backend, TrlBackend)
    trainer = learner.backend.trainer
    trainer.current_gradient_accumulation_steps = 1
    # TRL's default weighs the penalty by the probability ratio; ours is the plain k3 of the method.
    trainer.args.use_bias_correction_kl = False
    trainer.max_completion_length = 7
    for name, value in trls.items():
        setattr(trainer, name, value)
    objective = learner.objective
    (policy,) = objective.losses
    assert isinstance(policy, ClippedPolicyGradient)
    objective.losses = (replace(policy, ratio=ratio, clip_high=trls.get("epsilon_high")),)
    with torch.no_grad():
        expected = GRPOTrainer._compute_loss(trainer, trainer.model, theirs)
        assert float(learner.loss(ours, 1)) == pytest.approx(float(expected), rel=1e-4)


def _in_trls_layout(rows: list[TokenRow], advantages: list[float], ours: MicroBatch) -> dict[str, torch.Tensor]:
    """Prompts padded on the left, completions on the right."""
    longest = max(len(row.prompt_ids) for row in rows), max(len(row.completion_ids) for row in rows)
    batch: dict[str, list[list[float]]] = {}
    names = ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "tool_mask")
    first = ours.tokens.input_ids.shape[1] - ours.tokens.mask.shape[1]
    for i, row in enumerate(rows):
        left, right = longest[0] - len(row.prompt_ids), longest[1] - len(row.completion_ids)
        start = len(row.prompt_ids) - first
        span = slice(start, start + len(row.completion_ids))
        values = (
            [0] * left + row.prompt_ids,
            [0] * left + [1] * len(row.prompt_ids),
            row.completion_ids + [0] * right,
            [1] * len(row.completion_ids) + [0] * right,
            row.loss_mask + [0] * right,
        )
        for name, value in zip(names, values, strict=True):
            batch.setdefault(name, []).append(value)
        for mine, trls in (("old_logprobs", "old_per_token_logps"), ("ref_logprobs", "ref_per_token_logps")):
            batch.setdefault(trls, []).append(ours.figures[mine][i, span].tolist() + [0.0] * right)
    tensors = {name: torch.tensor(value) for name, value in batch.items()}
    return {**tensors, "advantages": torch.tensor(advantages), "num_items_in_batch": torch.tensor(9)}


def test_padding_rows_change_neither_loss_nor_gradient(learner: Learner) -> None:
    row = TokenRow([7, 8], [9, 10, 11], [1, 0, 1], [0.0] * 3)
    (weighted,) = make_training_rows([trajectory(row)], [0.5], [0], "trajectory", total=1, tokens=2)
    assert isinstance(learner.backend, TrlBackend)
    model, found = learner.backend.trainer.model, []
    for rows in ([weighted], [weighted, padding_row()]):
        batch = collate(rows, 0, torch.device("cpu"), ["policy"])
        reference = {"ref_logprobs": torch.zeros_like(batch.tokens.mask)}
        batch = replace(batch, figures={**batch.figures, **reference})
        model.zero_grad()
        loss = learner.loss(batch, 1)
        loss.backward()
        found.append((float(loss.detach()), [p.grad.clone() for p in model.parameters() if p.grad is not None]))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-6)
    for alone, padded in zip(found[0][1], found[1][1], strict=True):
        assert torch.allclose(alone, padded, atol=1e-6)


def test_the_log_probabilities_are_the_engines(learner: Learner) -> None:
    """On-policy, what the trainer computes for a rollout is what the engine drew with."""
    for batch in next_batches(learner):
        with torch.no_grad():
            logprobs = learner.backend.score(batch.tokens, {"logprobs"})["logprobs"] * batch.tokens.mask
        assert logprobs.numpy() == pytest.approx(batch.figures["sampling_logprobs"].numpy(), abs=1e-4)


def test_the_sampling_ratio_is_capped_and_only_on_with_inexact_engines() -> None:
    logprobs = torch.zeros(1, 2, requires_grad=True)
    sampling = torch.tensor([[-5.0, float(np.log(2))]])
    tokens = Tokens(torch.ones(1, 3, dtype=torch.int64), torch.ones(1, 2))
    row = TrainingRow(TokenRow([0], [0, 0], [1, 1], [0.0] * 2), np.ones(2), {"policy": 1.0}, 0)
    weights = {"policy": torch.ones(1, 2)}
    batch = MicroBatch(tokens, torch.ones(1, 2), weights, {"sampling_logprobs": sampling}, (row,))
    plain, corrected = (
        policy_value(ClippedPolicyGradient(), batch, {"logprobs": logprobs}, exact_sampling=exact)
        for exact in (True, False)
    )
    assert float(plain.detach()) == pytest.approx(-2.0)
    assert float(corrected.detach()) == pytest.approx(-(2.0 + 0.5))

"""Pins the private surface of TRL that the trainer stands on; a failure here says what moved."""

from __future__ import annotations

import inspect
from contextlib import ExitStack
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

from tests.trainers.toys import toy_config
from trainers.backends.trl.backend import TrlBackend
from trainers.backends.trl.trainer import SkillTrainer
from trainers.base import TokenRow, Trajectory
from trainers.learner.objective import policy_value
from trainers.losses import ClippedPolicyGradient
from trainers.rollout.collate import MicroBatch, Tokens, collate
from trainers.rollout.training_rows import padding_row, weigh
from trainers.training import prepare


def parameters(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


def test_the_version_is_the_one_that_was_read() -> None:
    assert metadata.version("trl") == "1.16.0"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("_prepare_inputs", ["self", "generation_batch"]),
        ("_compute_loss", ["self", "model", "inputs"]),
        ("log", ["self", "logs", "start_time"]),
        ("_save_checkpoint", ["self", "model", "trial"]),
        ("training_step", ["self", "model", "inputs", "num_items_in_batch"]),
    ],
)
def test_what_we_replace_has_the_signature_we_know(name: str, expected: list[str]) -> None:
    assert parameters(getattr(GRPOTrainer, name)) == expected


def test_what_we_call_has_the_arguments_we_pass() -> None:
    assert parameters(Trainer._save_checkpoint) == ["self", "model", "trial"]


def test_losses_of_micro_batches_are_summed_not_averaged() -> None:
    """Our weights hold all normalisation, so nobody may divide by the number of micro-batches."""
    assert GRPOTrainer.loss_is_scaled_for_ga is True


def test_trl_asks_prepare_inputs_and_counts_steps_as_we_do() -> None:
    assert "self._prepare_inputs(inputs)" in inspect.getsource(Trainer.training_step)
    assert "self._step += 1" in inspect.getsource(GRPOTrainer.training_step)
    assert "self._compute_loss(model, inputs)" in inspect.getsource(GRPOTrainer.compute_loss)


def test_logging_comes_before_saving() -> None:
    """A checkpoint must hold the curriculum after the validation of its step, which happens when the step is logged."""
    source = inspect.getsource(Trainer._maybe_log_save_evaluate)
    assert source.index("self.log(logs, start_time)") < source.index("self._save_checkpoint(")


@pytest.fixture
def trainer(toy_folder: Path, tmp_path: Path) -> SkillTrainer:
    from trainers.tracking.progress import SilentProgress

    config = toy_config(toy_folder, run=str(tmp_path), beta=0.1, micro_batches=1)
    with ExitStack() as stack:
        _, backend, _ = prepare(config, SilentProgress(), stack)
    assert isinstance(backend, TrlBackend)
    return backend.trainer


def trajectory(*rows: TokenRow) -> Trajectory:
    episode: Any = SimpleNamespace(task_type="echo")
    return Trajectory(episode, list(rows), 0)


def logprobs_of(trainer: SkillTrainer, model: Any, batch: MicroBatch) -> torch.Tensor:
    return trainer.figures(model, batch.tokens, {"logprobs"})["logprobs"]


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
    trainer: SkillTrainer, aggregation: Any, ratio: Any, trls: dict[str, Any]
) -> None:
    rng = np.random.default_rng(0)
    rows = []
    for prompt, mask in ((3, [1, 1, 0, 1]), (5, [1, 0, 0, 1, 1, 1]), (2, [1])):
        ids = rng.integers(6, 20, prompt + len(mask)).tolist()
        rows.append(TokenRow(ids[:prompt], ids[prompt:], mask, [0.0] * len(mask)))
    advantages = [0.7, -1.3, 0.2]
    played = [trajectory(row) for row in rows]
    weighted = weigh(played, advantages, range(3), aggregation, total=3, tokens=9, longest=7)
    ours = collate(weighted, 0, torch.device("cpu"), ["policy"])
    with torch.no_grad():
        compared = {
            "ref_logprobs": logprobs_of(trainer, trainer.ref_model, ours) - 0.3,
            "old_logprobs": logprobs_of(trainer, trainer.model, ours) + 0.25,
        }
    ours = replace(ours, figures={**ours.figures, **compared})
    theirs = _in_trls_layout(rows, advantages, ours)
    trainer.current_gradient_accumulation_steps = 1
    # TRL's default weighs the penalty by the probability ratio; ours is the plain k3 of the method.
    trainer.args.use_bias_correction_kl = False
    trainer.max_completion_length = 7
    for name, value in trls.items():
        setattr(trainer, name, value)
    objective = trainer.learner.objective
    (policy,) = objective.losses
    assert isinstance(policy, ClippedPolicyGradient)
    objective.losses = (replace(policy, ratio=ratio, clip_high=trls.get("epsilon_high")),)
    with torch.no_grad():
        expected = GRPOTrainer._compute_loss(trainer, trainer.model, theirs)
        assert float(trainer._compute_loss(trainer.model, ours)) == pytest.approx(float(expected), rel=1e-4)


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


def test_padding_rows_change_neither_loss_nor_gradient(trainer: SkillTrainer) -> None:
    row = TokenRow([7, 8], [9, 10, 11], [1, 0, 1], [0.0] * 3)
    (weighted,) = weigh([trajectory(row)], [0.5], [0], "trajectory", total=1, tokens=2)
    found = []
    for rows in ([weighted], [weighted, padding_row()]):
        batch = collate(rows, 0, torch.device("cpu"), ["policy"])
        reference = {"ref_logprobs": torch.zeros_like(batch.tokens.mask)}
        batch = replace(batch, figures={**batch.figures, **reference})
        trainer.model.zero_grad()
        loss = trainer._compute_loss(trainer.model, batch)
        loss.backward()
        found.append((float(loss.detach()), [p.grad.clone() for p in trainer.model.parameters() if p.grad is not None]))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-6)
    for alone, padded in zip(found[0][1], found[1][1], strict=True):
        assert torch.allclose(alone, padded, atol=1e-6)


def test_the_log_probabilities_are_the_engines(trainer: SkillTrainer) -> None:
    """On-policy, what the trainer computes for a rollout is what the engine drew with."""
    for batch in trainer.learner.prepare():
        with torch.no_grad():
            logprobs = logprobs_of(trainer, trainer.model, batch) * batch.tokens.mask
        assert logprobs.numpy() == pytest.approx(batch.figures["sampling_logprobs"].numpy(), abs=1e-4)


def test_the_sampling_ratio_is_capped_and_only_on_with_inexact_engines() -> None:
    logprobs = torch.zeros(1, 2, requires_grad=True)
    sampling = torch.tensor([[-5.0, float(np.log(2))]])
    tokens = Tokens(torch.ones(1, 3, dtype=torch.int64), torch.ones(1, 2))
    batch = MicroBatch(tokens, torch.ones(1, 2), torch.ones(1), {"sampling_logprobs": sampling})
    plain, corrected = (
        policy_value(ClippedPolicyGradient(), batch, {"logprobs": logprobs}, exact_sampling=exact)
        for exact in (True, False)
    )
    assert float(plain.detach()) == pytest.approx(-2.0)
    assert float(corrected.detach()) == pytest.approx(-(2.0 + 0.5))

"""Every method runs by its name in every world, a few tiny updates long, and has the gradient of its formula."""

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.trainers.toys import GRADED, start_learner, toy_config
from trainers.base import TokenRow, shipped_policy
from trainers.config import TrainConfig
from trainers.learner import Learner
from trainers.models import load_model
from trainers.recipes import recipe_names
from trainers.recipes.parts.rows import HindsightRows, PlainRows, UpdateView

pytest.importorskip("trl", reason="needs the train extra")

from trainers.training import run

SHARED: dict[str, Any] = {
    "data": "generated",
    "chat": "compact",
    "steps": 2,
    "tasks_per_step": 1,
    "group_size": 2,
    "panel_per_type": 1,
    "validate_every": 9,
    "save_every": 9,
    "transcripts_every": 0,
    "micro_batches": 1,
    "max_context": 1024,
    "max_episode_steps": 2,
    "max_reply_tokens": 12,
    "kl_coef": 0.0,
    "task_sampling": "types",
}
WORLDS: dict[str, dict[str, Any]] = {
    "alfworld": {
        "task_types": ("pick_heat_then_place_in_recep",),
        "env_options": {"generator": {"seed": 0, "games_per_type": 4, "size": "small"}},
    },
    "webshop": {"env_options": {"generator": {"seed": 0, "size": 1000}}},
}
VARIANTS = (
    "grpo+relabelling+need",
    "skillc+forward_distillation+baseline",
    "skillc+allocation",
    "grpo+need",
    "grpo+entropy",
)
METHODS = (*recipe_names(), *VARIANTS)


@pytest.fixture(scope="module")
def shallow(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Each world's shipped policy with its first layer alone."""
    folders = {}
    for env in WORLDS:
        folder = shutil.copytree(shipped_policy(env), tmp_path_factory.mktemp(env) / "model")
        model = load_model(TrainConfig(model=str(folder), env=env))
        model.model.layers = model.model.layers[:1]
        model.config.num_hidden_layers, model.config.layer_types = 1, model.config.layer_types[:1]
        model.save_pretrained(folder)
        folders[env] = str(folder)
    return folders


@pytest.mark.parametrize("env", WORLDS)
@pytest.mark.parametrize("method", METHODS)
def test_it_runs_in_both_worlds(method: str, env: str, shallow: dict[str, str], tmp_path: Path) -> None:
    settings = {**SHARED, **WORLDS[env]}
    result = run(TrainConfig(model=shallow[env], method=method, env=env, run=str(tmp_path), **settings))
    updates = [record for record in result.metrics if record["event"] == "train"]
    assert (result.finished, [record["step"] for record in updates]) == (True, [1, 2])
    keys = {"grad_norm", "entropy", "success", "gap", "gate", "active", "env_steps"}
    # Those without a policy gradient have neither penalty nor clipping.
    keys |= set() if method in ("opsd", "opsd_jsd", "context_distillation", "raft") else {"kl", "clip_fraction"}
    for record in updates:
        assert math.isfinite(record["loss"])
        assert record["grad_norm"] is not None
        assert keys <= set(record)


# Gradients: from rollouts to ``p.grad``, against the papers' formulas over every rollout once, in float64.

Tensor = torch.Tensor
KL = 0.1


def surrogate(student: Tensor, advantage: Tensor) -> Tensor:
    """The clipped objective on the policy, where the ratio is 1, with the penalty to weights that are the same."""
    difference = student.detach() - student
    return -(student - student.detach()).exp() * advantage + KL * (difference.exp() - difference - 1)


def rlsd(student: Tensor, teacher: Tensor, advantage: Tensor, _: bool) -> Tensor:
    size = (advantage.sign() * (teacher - student.detach())).exp().clamp(0.8, 1.2)
    return surrogate(student, advantage * (0.5 + 0.5 * size))


def skill_sd(student: Tensor, teacher: Tensor, advantage: Tensor, free: bool) -> Tensor:
    k3 = (teacher - student).exp() - 1 + student - teacher
    return surrogate(student, advantage) + free * 0.5 * (student - student.detach()).exp() * k3


def sdar(student: Tensor, teacher: Tensor, advantage: Tensor, free: bool) -> Tensor:
    gap = teacher - student
    return surrogate(student, advantage) + free * 0.5 * (5 * gap).sigmoid().detach() * gap


def pi_distill(played: Tensor, plain: Tensor, advantage: Tensor, _: bool) -> Tensor:
    """Of the policy behind the prompt that was played, and behind the one without the skill."""
    teacher, ratio = played.detach(), (plain - played.detach()).exp()
    student = -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage) + 0.3 * (teacher - plain)
    student = student + KL * ((plain.detach() - plain).exp() - (plain.detach() - plain) - 1)
    return 0.5 * surrogate(played, advantage - 0.5 * (teacher - plain.detach())) + 0.5 * student


FORMULAS: dict[str, tuple[dict[str, float], Callable[[Tensor, Tensor, Tensor, bool], Tensor]]] = {
    "grpo": ({}, lambda s, t, a, free: surrogate(s, a)),
    "opsd": ({"distillation.coefficient": 0.5}, lambda s, t, a, free: free * 0.5 * (t - s)),
    "grpo_opsd": ({"distillation.coefficient": 0.5}, lambda s, t, a, free: surrogate(s, a) + free * 0.25 * (t - s)),
    "sdar": ({"distillation.coefficient": 0.5}, sdar),
    "skill_sd": ({"distillation.coefficient": 0.5}, skill_sd),
    "rlsd": ({}, rlsd),
    "opid": ({"teacher_weight": 0.5}, lambda s, t, a, free: surrogate(s, a + 0.5 * (t - s.detach()))),
    "pi_distill": ({"teacher_weight": 0.5, "divergence": 0.3}, pi_distill),
}
"""By method its options and its loss per token, of student, teacher, advantage and whether no skill was shown."""


@pytest.mark.parametrize("method", [name for name in FORMULAS if name in recipe_names()])
def test_its_gradient_is_that_of_its_formula(method: str, toy_folder: Path, tmp_path: Path) -> None:
    options, formula = FORMULAS[method]
    changes = {"kl_coef": KL, "method_options": options, "env_options": {"turns": 2}, "max_context": 96, **GRADED}
    config = toy_config(toy_folder, method=method, run=str(tmp_path), **changes)
    learner = start_learner(config)
    batch, advantages, _ = learner.credit(learner.play(*learner.draw(1), 1))
    (step,) = learner.rows.optimiser_steps(batch, advantages, learner.extra_rows(batch, advantages, 1)[0], 1)
    for micro in step:
        learner.backend.backward(learner.loss(micro, 1))

    model: Any = load_model(config).double()
    view = UpdateView(batch, advantages, range(len(batch.task)), learner.setup.prompts, 1, config.seed)
    total = torch.zeros((), dtype=torch.float64)
    for i, played in enumerate(batch.trajectories):
        values = torch.from_numpy(np.broadcast_to(np.asarray(advantages.values[i], float), played.model_tokens).copy())
        for row, own in played.own_rows():
            student, free = logprobs(model, row), not played.episode.condition
            other = logprobs(model, teachers_row(learner, view, i, row))
            teacher = other if method == "pi_distill" else other.detach()
            total = total + formula(student, teacher, values[own], free).sum() / played.model_tokens
    (total / len(batch.task)).backward()

    backend: Any = learner.backend  # this one keeps its trainer
    found = [p.grad for p in backend.trainer.model.parameters()]
    expected = [p.grad for p in model.parameters()]
    assert max(float(gradient.abs().max()) for gradient in expected) > 1e-3
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-3, atol=1e-6)


def teachers_row(learner: Learner, view: UpdateView, rollout: int, row: TokenRow) -> TokenRow:
    """The row as its other reader reads it: behind the skill of its type, the lesson of its episode, or no text."""
    prompts = learner.setup.prompts
    for maker in learner.method.recipe.rows:
        if isinstance(maker, HindsightRows):
            return next(made.teachers["policy"] for made in maker(view) if made.row is row)
        if isinstance(maker, PlainRows):
            return prompts.with_skill_text(row, "")
    return prompts.with_skill_text(row, prompts.skill_text(view.batch.trajectories[rollout].episode.task_type))


def logprobs(model: Any, row: TokenRow) -> Tensor:
    """Of the row's own tokens, in order."""
    ids = torch.tensor([row.prompt_ids + row.completion_ids])
    every = torch.log_softmax(model(input_ids=ids[:, :-1]).logits[0], -1).gather(-1, ids[0, 1:, None])[:, 0]
    result: Tensor = every[-len(row.loss_mask) :][torch.tensor(row.loss_mask, dtype=torch.bool)]
    return result

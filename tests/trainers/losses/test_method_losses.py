"""The losses of the published methods as objects: what they ask for, whom they act on, what they make of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from skillc_gym.errors import ConfigError
from tests.trainers.rollouts_of import batch_of, episode
from trainers.advantages import Signals
from trainers.losses import ClippedPolicyGradient, LossInputs, generalised_jsd
from trainers.losses.distribution_distillation import DistributionDistillation, ForwardDistillation, GuidedDistillation
from trainers.losses.policy_gradient import HindsightPolicyGradient, TeacherSizedPolicyGradient
from trainers.losses.self_distillation import Relabelling, relabelling
from trainers.losses.value import EntropyBonus, Value, clipped_value_loss
from trainers.recipes import get_recipe

MASK = torch.tensor([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])


def tensor(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def inputs(update: int = 1, **optional: torch.Tensor) -> LossInputs:
    return LossInputs(
        logprobs=(-tensor(0, 2, 3).abs()).requires_grad_(),
        mask=MASK,
        advantages=tensor(1, 2, 3),
        optional=optional,
        update=update,
    )


TEACHER = -tensor(2, 2, 3).abs()
OLD = -tensor(3, 2, 3).abs()


@pytest.mark.parametrize("weights", ["policy", "average", "reference"])
@pytest.mark.parametrize("method", ["opsd", "opsd_jsd", "grpo_opsd", "skill_sd", "rlsd", "sdar", "opid"])
def test_a_method_of_self_distillation_is_taught_by_the_weights_of_choice(method, weights):
    teachers = [loss.teacher for loss in get_recipe(method, teacher_weights=weights).losses if loss.teacher]
    assert [teacher.weights for teacher in teachers] == [weights]


@pytest.mark.parametrize("top_k", [None, 3, 50])
def test_distributions_are_compared_at_the_own_tokens(top_k):
    student, teacher = tensor(4, 4, 6).requires_grad_(), tensor(5, 4, 6)
    result = DistributionDistillation(mixture=0.3, top_k=top_k)(inputs(logits=student, teacher_logits=teacher))
    best = teacher.topk(min(top_k or 6, 6), dim=-1).indices
    expected = generalised_jsd(student.gather(-1, best), teacher.gather(-1, best), 0.3)
    torch.testing.assert_close(result.values, expected)


@pytest.mark.parametrize("wrong", [{"mixture": 2}, {"mixture": -0.1}, {"top_k": 0}])
def test_a_comparison_of_nothing_or_beyond_the_mixture_is_refused_by_its_own_name(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        get_recipe("opsd_jsd", **wrong)


def test_forward_distillation_acts_as_far_as_the_gate_is_open():
    gate = np.array([0.5, 0.9, 0.9, 0.2])
    signals = Signals(gate, np.zeros(4), np.zeros(4))
    batch = batch_of([episode(), episode(), episode(condition=1), episode()], signals=signals)
    assert ForwardDistillation().on_rollouts(batch).tolist() == pytest.approx([0.0, 0.8, 0.0, 0.0])
    assert not GuidedDistillation().on_rollouts(batch).any()


def test_rlsds_teacher_goes_and_opids_speaks_where_all_returns_are_equal():
    late = inputs(update=11, teacher_logprobs=TEACHER, old_logprobs=OLD)
    loss, plain = TeacherSizedPolicyGradient(mixing_steps=10), ClippedPolicyGradient()
    torch.testing.assert_close(loss(late).values, plain(late).values)
    assert loss.name == plain.name
    assert not HindsightPolicyGradient().needs_advantages


def test_relabelling_compares_with_the_prompt_that_was_sampled_behind():
    given = inputs(sampling_logprobs=OLD)
    torch.testing.assert_close(Relabelling(alpha=0.5)(given).values, relabelling(given.logprobs, OLD, 0.5, 1.0))
    assert not Relabelling().on_rollouts(batch_of([episode(), episode(condition=1)])).any()


def test_the_critic_starts_at_zero_and_learns_its_targets():
    values, old, targets = tensor(6, 2, 3).requires_grad_(), tensor(7, 2, 3), tensor(8, 2, 3)
    result = Value(value_clip=0.3)(inputs(values=values, old_values=old, value_targets=targets))
    torch.testing.assert_close(result.values, clipped_value_loss(values, old, targets, 0.3))
    head = Value().heads["values"](8)
    assert not head(tensor(9, 5, 8)).any()


def test_an_entropy_bonus_is_the_negative_entropy_of_the_whole_distribution():
    logits = tensor(4, int(MASK.sum()), 7).requires_grad_()
    result = EntropyBonus()(inputs(logits=logits))
    expected = -torch.distributions.Categorical(logits=logits).entropy()
    torch.testing.assert_close(result.values, expected)
    result.values.sum().backward()
    assert logits.grad is not None
    assert logits.grad.abs().sum() > 0

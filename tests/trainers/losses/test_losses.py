"""Losses: formulas against slow scalar code, and as objects what they ask for and whom they act on."""

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, example, given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError
from tests.trainers.toys import batch_of, episode
from trainers.advantages import Signals
from trainers.losses import (
    ClippedPolicyGradient,
    LossInputs,
    clipped_policy_gradient,
    clipped_value_loss,
    generalised_jsd,
    grpo_opsd,
    k3,
    opsd,
    relabelling,
    rlsd_mixing,
    rlsd_weight,
    sdar,
    skill_sd,
)
from trainers.losses.distillation import (
    DistributionDistillation,
    ForwardDistillation,
    GuidedDistillation,
    Relabelling,
    SkillSd,
)
from trainers.losses.policy_gradient import (
    EntropyBonus,
    HindsightPolicyGradient,
    PrivilegedStudent,
    PrivilegedTeacher,
    TeacherSizedPolicyGradient,
    Value,
)
from trainers.recipes import get_recipe

LOGPROB = st.floats(-12, -1e-4)
PAIRS = st.lists(st.tuples(LOGPROB, LOGPROB, LOGPROB), min_size=1, max_size=6)
LOGITS = st.lists(st.floats(-6, 6), min_size=4, max_size=4)
GAIN = st.floats(-2, 2, allow_subnormal=False)  # of which a product with a ratio can be 0


def columns(rows):
    """float64 tensors of the columns, each wanting a gradient."""
    return [torch.tensor(list(c), dtype=torch.float64, requires_grad=True) for c in zip(*rows, strict=True)]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def check(loss, variables, value, gradient):
    """Compares a per-token loss and its gradient for the first variable; the others must have none."""
    assert loss.detach().tolist() == pytest.approx(value, abs=1e-6, rel=1e-9)
    got = torch.autograd.grad(loss.sum(), variables, allow_unused=True)
    assert got[0].flatten().tolist() == pytest.approx(gradient, abs=1e-6, rel=1e-9)
    assert all(g is None or not g.any() for g in got[1:])


@given(st.lists(st.tuples(st.floats(-3, 0), st.floats(-3, 0), GAIN), min_size=1, max_size=6))
def test_the_clipped_objective_stops_pulling_outside_its_region(rows):
    logprobs, old, gains = columns(rows)
    value, gradient = [], []
    for new, before, gain in rows:
        ratio = math.exp(new - before)
        near = min(max(ratio, 0.8), 1.3)
        value.append(-min(ratio * gain, near * gain))
        gradient.append(-ratio * gain if ratio * gain <= near * gain else 0.0)
        assume(min(abs(ratio - 0.8), abs(ratio - 1.3)) > 1e-9)
    loss, clipped = clipped_policy_gradient(logprobs, gains.detach(), old_logprobs=old.detach(), clip_high=0.3)
    check(loss, [logprobs], value, gradient)
    assert clipped.tolist() == [g != 0 and d == 0 for d, (_, _, g) in zip(gradient, rows, strict=True)]


@given(PAIRS)
def test_the_penalty_follows_its_definition(rows):
    new, reference, _ = columns(rows)
    value = [math.exp(b - a) - (b - a) - 1 for a, b, _ in rows]
    check(k3(new, reference.detach()), [new], value, [1 - math.exp(b - a) for a, b, _ in rows])
    assert min(value) > -1e-9


@given(PAIRS)
def test_opsd_raises_every_sampled_token_alike(rows):
    s, t, _ = columns(rows)
    check(opsd(s, t), [s, t], [b - a for a, b, _ in rows], [-1.0] * len(rows))
    check(grpo_opsd(s, t), [s, t], [(b - a) / 2 for a, b, _ in rows], [-0.5] * len(rows))


@given(PAIRS, st.floats(0, 8))
def test_sdar_gates_by_the_teachers_liking(rows, beta):
    s, t, _ = columns(rows)
    gates = [sigmoid(beta * (b - a)) for a, b, _ in rows]
    value = [g * (b - a) for g, (a, b, _) in zip(gates, rows, strict=True)]
    check(sdar(s, t, beta), [s, t], value, [-g for g in gates])


@given(st.lists(st.tuples(st.floats(-8, -0.1), st.floats(-8, -0.1), st.floats(-8, -0.1)), min_size=1, max_size=6))
@example([(-0.10000000000000002, -0.1, -1.0)])
def test_skill_sd_weighs_k3_by_the_ratio(rows):
    s, t, o = columns(rows)
    value, gradient = [], []
    for a, b, c in rows:
        k3, rho = math.exp(b - a) - 1 + a - b, math.exp(a - c)
        value.append(rho * k3)
        gradient.append(rho * k3 + rho * (1 - math.exp(b - a)))
    check(skill_sd(s, t, o), [s, t, o], value, gradient)
    assert (skill_sd(s, t, o) >= -1e-11).all()  # k3 is not negative; rho of its rounding may be


def test_skill_sd_is_cut_at_both_ends():
    s, t, o = columns([(-60.0, -1.0, -60.0), (-1.0, -1.5, -40.0)])
    got = skill_sd(s, t, o).tolist()
    assert got[0] == pytest.approx(math.exp(20) - 1 - 20)
    assert got[1] == pytest.approx(math.exp(10) * (math.exp(-0.5) - 1 + 0.5))


@given(PAIRS, st.sampled_from([-1.5, 0.0, 0.4]), st.floats(0, 1))
def test_rlsd_sizes_the_advantage_within_its_clip_and_mixes_the_teacher_out(rows, advantage, lam):
    s, t, _ = columns(rows)
    sign = (advantage > 0) - (advantage < 0)
    expected = [1 - lam + lam * min(max(math.exp(sign * (b - a)), 0.8), 1.2) for a, b, _ in rows]
    got = rlsd_weight(s, t, torch.full_like(s, advantage), lam)
    assert not got.requires_grad
    assert got.tolist() == pytest.approx(expected, abs=1e-6)
    assert ((got >= 0.8 - 1e-12) & (got <= 1.2 + 1e-12)).all()
    assert rlsd_weight(s, t, advantage, lam).tolist() == got.tolist()
    assert [rlsd_mixing(update) for update in (0, 50, 100, 200)] == [0.5, 0.25, 0.0, 0.0]


def kl(p, q):
    return (p * (p / q).log()).sum()


def divergence(s, t, beta):
    """From probabilities, as it is defined."""
    if beta in (0, 1):
        return kl(s, t) if beta else kl(t, s)
    mixture = (1 - beta) * s + beta * t
    return beta * kl(t, mixture) + (1 - beta) * kl(s, mixture)


@given(LOGITS, LOGITS, st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0.01, 0.99)))
def test_the_divergence_follows_its_definition(student, teacher, beta):
    s, t = (torch.tensor([x], dtype=torch.float64, requires_grad=True) for x in (student, teacher))
    expected = divergence(s[0].softmax(0), t[0].detach().softmax(0), beta)
    (gradient,) = torch.autograd.grad(expected, s)
    loss = generalised_jsd(s, t, beta)
    assert loss.shape == (1,)
    check(loss, [s, t], [expected.item()], gradient[0].tolist())


@given(PAIRS, st.floats(0, 1), st.floats(0.5, 2))
def test_relabelling_weighs_the_imitated_token_by_the_truncated_ratio(rows, alpha, cap):
    s, o, _ = columns(rows)
    weights = [min(cap, math.exp(a - b)) ** alpha for a, b, _ in rows]
    value = [-w * a for w, (a, _, _) in zip(weights, rows, strict=True)]
    check(relabelling(s, o, alpha, cap), [s, o], value, [-w for w in weights])


@given(st.lists(st.tuples(*[st.floats(-2, 2)] * 3), min_size=1, max_size=6), st.floats(0.05, 1))
def test_the_value_loss_takes_the_worse_of_both(rows, clip):
    value, old, target = columns(rows)
    expected, gradient = [], []
    for v, o, r in rows:
        near = min(max(v, o - clip), o + clip)
        assume(near == v or abs(abs(v - r) - abs(near - r)) > 1e-9)
        expected.append(0.5 * max((v - r) ** 2, (near - r) ** 2))
        gradient.append(v - r if (v - r) ** 2 >= (near - r) ** 2 else 0.0)
    check(clipped_value_loss(value, old, target, clip), [value, old, target], expected, gradient)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: opsd(torch.zeros(3, 1), torch.zeros(3)), r"equal shapes, got student \(3, 1\), teacher \(3,\)"),
        (lambda: rlsd_weight(torch.zeros(3), torch.zeros(3), torch.ones(3, 1), 0.5), "advantages must broadcast"),
        (lambda: generalised_jsd(torch.zeros(2), torch.zeros(2), 1.5), "beta lies in"),
    ],
)
def test_what_would_only_broadcast_or_lies_out_of_range_is_refused(call, message):
    with pytest.raises(ConfigError, match=message):
        call()


def test_an_advantage_per_row_is_spread_over_its_tokens():
    student, teacher = torch.full((2, 3), -1.0), torch.full((2, 3), -0.9)
    got = rlsd_weight(student, teacher, torch.tensor([[1.0], [-1.0]]), 1.0)
    torch.testing.assert_close(got, torch.tensor([[math.exp(0.1)], [math.exp(-0.1)]]).expand(2, 3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("gap", [50.0, 1e4, 1e30])
def test_no_gap_is_too_large(gap, dtype):
    student = torch.tensor([-gap, -1e-3, 0.0], dtype=dtype, requires_grad=True)
    teacher = torch.tensor([-1e-3, -gap, 0.0], dtype=dtype)
    losses = [opsd(student, teacher), sdar(student, teacher), skill_sd(student, teacher, student.detach())]
    losses += [skill_sd(student, teacher, torch.full_like(teacher, -gap))]
    losses += [generalised_jsd(student, teacher, beta) for beta in (0.0, 0.1, 0.5, 1.0)]
    for loss in losses:
        assert loss.isfinite().all()
        assert torch.autograd.grad(loss.sum(), student, retain_graph=True)[0].isfinite().all()
    assert rlsd_weight(student, teacher, torch.tensor([1.0, -1.0, 0.0]), 0.5).isfinite().all()


MASK = torch.tensor([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])


def tensor(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def inputs(update: int = 1, **optional: torch.Tensor) -> LossInputs:
    logprobs = (-tensor(0, 2, 3).abs()).requires_grad_()
    return LossInputs(logprobs=logprobs, mask=MASK, advantages=tensor(1, 2, 3), optional=optional, update=update)


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


def test_skill05_pulls_at_a_student_who_never_takes_the_teachers_step():
    teacher, student = torch.tensor([[4.0, 3.0, -9.0]]), torch.tensor([[4.0, 3.0, 9.0]], requires_grad=True)
    outside = 1 - student.softmax(-1)[0, :2].sum().item()
    values = GuidedDistillation(top_k=2)(inputs(logits=student, teacher_logits=teacher)).values
    assert values.item() == pytest.approx(0.5 * math.log(2) * outside, rel=1e-5), "within the best both are the same"
    (gradient,) = torch.autograd.grad(values.sum(), student)
    assert gradient[0, 2] > 1e-3


def test_forward_distillation_acts_as_far_as_the_gate_is_open():
    gate = np.array([0.5, 0.9, 0.9, 0.2])
    signals = Signals(gate, np.zeros(4), np.zeros(4))
    batch = batch_of([episode(), episode(), episode(condition=1), episode()], signals=signals)
    assert ForwardDistillation().on_rollouts(batch).tolist() == pytest.approx([0.0, 0.8, 0.0, 0.0])
    assert not GuidedDistillation().on_rollouts(batch).any()


def test_a_rows_ratio_is_the_geometric_mean_over_its_own_tokens():
    logprobs, mask = torch.tensor([[0.1, 0.3, 9.0]], requires_grad=True), torch.tensor([[1.0, 1.0, 0.0]])
    plain = {"old_logprobs": torch.zeros(1, 3), "clip": 9.0}
    values, _ = clipped_policy_gradient(logprobs, torch.ones(1, 3), sequences=mask, **plain)
    ratio = math.exp(0.2)
    assert values.detach()[0, :2].tolist() == pytest.approx([-ratio, -ratio])
    (gradient,) = torch.autograd.grad((values * mask).sum(), logprobs)
    assert gradient[0].tolist() == pytest.approx([-ratio, -ratio, 0.0])


def test_recipes_take_the_runs_settings_where_theirs_are_open():
    own = ClippedPolicyGradient(clip_high=0.5).configured(clip=0.1, kl_coef=0.0, clip_high=0.3, ratio="sequence")
    assert (own.clip, own.clip_high, own.ratio) == (0.1, 0.5, "sequence")


def test_rlsds_teacher_goes_and_opids_speaks_where_all_returns_are_equal():
    late = inputs(update=11, teacher_logprobs=TEACHER, old_logprobs=OLD)
    loss, plain = TeacherSizedPolicyGradient(mixing_steps=10), ClippedPolicyGradient()
    torch.testing.assert_close(loss(late).values, plain(late).values)
    assert loss.name == plain.name
    assert not HindsightPolicyGradient().needs_advantages


@pytest.mark.parametrize(
    "loss", [TeacherSizedPolicyGradient(), HindsightPolicyGradient(teacher_weight=1.0), PrivilegedTeacher()]
)
def test_a_teacher_who_reads_what_the_student_reads_adds_nothing_in_a_later_minibatch(loss):
    later = inputs(teacher_logprobs=inputs().logprobs.detach(), old_logprobs=OLD)
    torch.testing.assert_close(loss(later).values, ClippedPolicyGradient()(later).values)


def test_pi_distills_student_is_weighed_by_the_whole_ratio_to_who_played_it():
    drawn = inputs(sampling_logprobs=OLD, sampling_ratio=torch.full_like(OLD, 9.0))
    plain = ClippedPolicyGradient()(inputs(old_logprobs=OLD)).values
    torch.testing.assert_close(PrivilegedStudent(divergence=0.0)(drawn).values, plain)
    held = PrivilegedStudent(divergence=0.5)(drawn)
    torch.testing.assert_close(held.values, plain + 0.5 * (OLD - drawn.logprobs))
    assert set(held.log) == {"hint_reliance", "student_clipped"}
    needed = [
        PrivilegedStudent(divergence=b, kl_coef=kl).needs_advantages for b, kl in ((0.0, 0.0), (0.0, 0.1), (0.1, 0.0))
    ]
    assert needed == [True, False, False]


def test_skill_sds_ratio_reaches_back_to_who_sampled():
    given = {"teacher_logprobs": TEACHER, "old_logprobs": OLD}
    plain, lagging = (SkillSd()(inputs(**given, **more)).values for more in ({}, {"sampling_ratio": OLD * 0 + 2.0}))
    torch.testing.assert_close(lagging, 2.0 * plain)


def test_pi_distills_ratio_is_cut_where_clipping_leaves_it_open():
    unlikely = inputs().logprobs.detach() - 6.0
    found = inputs(sampling_logprobs=unlikely).with_(advantages=-torch.ones_like(OLD))
    values = PrivilegedStudent(divergence=0.0, cap=4.0)(found).values
    torch.testing.assert_close(values, torch.full_like(values, 4.0))
    (gradient,) = torch.autograd.grad(values.sum(), found.logprobs)
    torch.testing.assert_close(gradient, torch.full_like(gradient, 4.0))


def test_relabelling_compares_with_the_prompt_that_was_sampled_behind():
    given = inputs(sampling_logprobs=OLD)
    torch.testing.assert_close(Relabelling(alpha=0.5)(given).values, relabelling(given.logprobs, OLD, 0.5, 1.0))
    assert not Relabelling().on_rollouts(batch_of([episode(), episode(condition=1)])).any()


def test_the_critic_starts_at_zero_and_learns_its_targets():
    values, old, targets = (tensor(seed, 2, 3) for seed in (6, 7, 8))
    result = Value(value_clip=0.3)(inputs(values=values, old_values=old, value_targets=targets))
    torch.testing.assert_close(result.values, clipped_value_loss(values, old, targets, 0.3))
    assert not Value().heads["values"](8)(tensor(9, 5, 8)).any()


def test_an_entropy_bonus_is_the_negative_entropy_of_the_whole_distribution():
    logits = tensor(4, int(MASK.sum()), 7).requires_grad_()
    values = EntropyBonus()(inputs(logits=logits)).values
    torch.testing.assert_close(values, -torch.distributions.Categorical(logits=logits).entropy())
    (gradient,) = torch.autograd.grad(values.sum(), logits)
    assert gradient.abs().sum() > 0

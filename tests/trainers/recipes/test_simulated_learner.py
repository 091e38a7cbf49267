"""The method on a simulated learner: two success rates per type, rising at different speeds."""

from __future__ import annotations

import numpy as np
import pytest

from skillc_gym.curricula.skills import InternalizationCurriculum
from trainers.advantages import RolloutBatch
from trainers.recipes import get_recipe
from trainers.recipes.method import Method

SPEEDS = {"pick": 0.2, "look": 0.09, "clean": 0.05, "heat": 0.022, "cool": 0.012, "pick2": 0.004}
PANEL, GROUP, TOTAL = 46, 8, 180


def rate(kind: str, condition: int, step: int) -> float:
    """With the skill 0.8 from the start; without it the gap closes at the type's speed and ends a little beyond."""
    return 0.8 if condition else 0.9 - 0.7 * np.exp(-SPEEDS[kind] * step)


def validate(state: Method, step: int, rng: np.random.Generator | None) -> None:
    rates = [{k: rate(k, z, step) for k in SPEEDS} for z in (1, 0)]
    if rng is not None:
        rates = [{k: float(rng.binomial(PANEL, p)) / PANEL for k, p in r.items()} for r in rates]
    state.validate(*rates, step)


def train(state: Method, step: int, rng: np.random.Generator) -> dict:
    rows = []
    for kind in SPEEDS:
        n_plus = state.n_plus(kind, GROUP)
        for i in range(GROUP):
            condition = int(i < n_plus)
            rows.append(
                (f"{kind}-{rng.integers(600)}", kind, condition, float(rng.random() < rate(kind, condition, step)))
            )
    first = {kind: task for task, kind, *_ in reversed(rows)}
    _, kinds, conditions, returns = zip(*rows, strict=True)
    batch = RolloutBatch.build(returns=returns, task=[first[k] for k in kinds], task_type=kinds, condition=conditions)
    _, advantage, log = state.credit(batch)
    assert np.isfinite(advantage.values).all()
    return log


def test_retirement_is_staggered_by_the_speed_of_learning() -> None:
    state = Method(get_recipe("skillc"), tuple(SPEEDS), TOTAL)
    for step in range(0, TOTAL + 1, 10):
        validate(state, step, None)
    retired = {r.task_type: (r.step, r.reason) for r in state.curriculum.retirements}
    assert set(retired) == set(SPEEDS)
    steps = [retired[k][0] for k in SPEEDS]
    assert steps == sorted(steps)
    assert len(set(steps)) >= 3
    assert retired["pick"][1] == "gap"
    assert retired["pick2"] == (120, "budget")


def test_a_noisy_run_keeps_every_promise() -> None:
    rng = np.random.default_rng(0)
    state = Method(get_recipe("skillc"), tuple(SPEEDS), TOTAL)
    validate(state, 0, rng)
    fraction = {k: [] for k in SPEEDS}  # type: ignore[var-annotated]
    for step in range(1, TOTAL + 1):
        log = train(state, step, rng)
        assert all(c >= 0.0 for c in log["correction"].values())
        for kind in SPEEDS:
            fraction[kind].append(log["rollout_fraction_with"][kind])
            if kind not in state.active:
                assert log["rollout_fraction_with"][kind] == log["correction"][kind] == 0.0
        if step % 10 == 0:
            validate(state, step, rng)
    assert state.active == ()
    assert np.mean(fraction["pick2"][:50]) > np.mean(fraction["pick"][:50])
    assert all(f[-1] == 0.0 for f in fraction.values())


def false_retirements(panel: int, without: float, shared: float = 0.0, learners: int = 1500) -> float:
    """Share of types of true gap 0.10 that six validations retire by noise; many learners as many types."""
    kinds = [f"k{i}" for i in range(learners)]
    curriculum = InternalizationCurriculum(kinds, retire_by=("gap",))
    rng = np.random.default_rng(7)
    luck = rng.random((7, 2, learners, panel))
    # A pair on the same task and seed shares a part of its luck: there, one draw decides both conditions.
    luck[:, 1] = np.where(rng.random((7, learners, panel)) < shared, luck[:, 0], luck[:, 1])
    for i in range(7):
        with_ = (luck[i, 0] < without + 0.10).mean(axis=1)
        free = (luck[i, 1] < without).mean(axis=1)
        curriculum.update(dict(zip(kinds, with_, strict=True)), dict(zip(kinds, free, strict=True)), 10 * i)
    return 1.0 - len(curriculum.active) / learners


@pytest.mark.parametrize("without", [0.4, 0.5])
def test_small_unpaired_panels_retire_by_noise_a_third_of_the_time(without: float) -> None:
    assert false_retirements(21, without) == pytest.approx(0.35, abs=0.04)


def test_larger_and_paired_panels_retire_far_less_by_noise() -> None:
    small = false_retirements(21, 0.4)
    large = false_retirements(46, 0.4)
    paired = false_retirements(46, 0.4, shared=0.7)
    assert large < 0.6 * small
    assert paired < 0.3 * large


def test_a_margin_cuts_false_retirements() -> None:
    rng = np.random.default_rng(3)
    kinds = [f"k{i}" for i in range(800)]
    plain = InternalizationCurriculum(kinds, retire_by=("gap",))
    careful = InternalizationCurriculum(kinds, retire_by=("gap",), margin=1.0)
    error = dict.fromkeys(kinds, float(np.sqrt(2 * 0.25 / 21)))
    for i in range(7):
        with_, free = (dict(zip(kinds, rng.binomial(21, p, len(kinds)) / 21, strict=True)) for p in (0.5, 0.4))
        for curriculum in (plain, careful):
            curriculum.update(with_, free, 10 * i, standard_error=error)
    assert len(kinds) - len(careful.active) < 0.3 * (len(kinds) - len(plain.active))

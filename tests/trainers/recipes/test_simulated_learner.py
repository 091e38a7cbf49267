"""The method on a simulated learner: two success rates per type, rising at different speeds."""

from __future__ import annotations

import numpy as np

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

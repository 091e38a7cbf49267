"""Method: what the trainer asks, what a checkpoint keeps, and how it treats a simulated learner."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from skillc_gym.errors import CheckpointError, UnknownNameError
from tests.trainers.rollouts_of import episode, trajectory
from trainers.advantages import RolloutBatch, csca, grpo
from trainers.recipes import get_recipe, recipe_names
from trainers.recipes.method import Method

TYPES = ("heat", "cool", "look")


def batch(returns: list[float], n_plus: int, task: str = "g1", kind: str = "heat") -> RolloutBatch:
    size = len(returns)
    return RolloutBatch.build(
        returns=returns,
        task=[task] * size,
        task_type=[kind] * size,
        condition=[int(i < n_plus) for i in range(size)],
        length=[float(i + 1) for i in range(size)],
    )


def start(name: str, **overrides: object) -> Method:
    return Method(get_recipe(name, **overrides), TYPES, 180)


def walk(state: Method, seed: int, steps: int) -> list[object]:
    """Some training with every kind of event; returns the trace."""
    rng = np.random.default_rng(seed)
    trace: list[object] = []
    for step in range(steps):
        for kind in TYPES:
            n_plus = state.n_plus(kind, 8)
            task = f"{kind}-{rng.integers(3)}"
            _, adv, log = state.credit(batch(rng.integers(0, 2, 8).astype(float).tolist(), n_plus, task, kind))
            trace.append((n_plus, adv.values.tolist(), log))
        if step % 2 == 0:
            with_, without = ({k: float(rng.uniform()) for k in TYPES} for _ in range(2))
            trace.append(state.validate(with_, without, 10 * step))
    return trace


def test_the_updates_own_contrast_corrects_its_advantages() -> None:
    state = start("skillc")
    returns = [1.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    _, adv, log = state.credit(batch(returns, 3))
    contrast = 2 / 3 - 1 / 3
    assert log["contrast_observed"] == {"heat": pytest.approx(contrast)}
    expected = 0.5 * log["contrast"]["heat"]  # a closed gap: the gate is 0.5, the task is new
    assert log["correction"] == {"heat": expected}
    assert np.array_equal(adv.values, csca(returns, ["g1"] * 6, [1, 1, 1, 0, 0, 0], [expected] * 6))


def test_repeated_tasks_weigh_less() -> None:
    state = start("skillc", beta_freq=1.0)
    corrections = [state.credit(batch([1.0, 0.0], 1)).log["correction"]["heat"] for _ in range(3)]
    assert corrections == pytest.approx([0.5, 0.25, 0.5 / 3])
    assert state.visits("g1") == 3
    assert state.visits("other") == 0


def test_a_harmful_skill_is_never_credited() -> None:
    state = start("skillc")
    _, _, log = state.credit(batch([0.0, 1.0], 1))
    assert log["contrast"]["heat"] == -1.0
    assert log["correction"] == {"heat": 0.0}


def test_a_retired_type_gets_no_correction() -> None:
    state = start("skillc")
    state.credit(batch([1.0, 0.0], 1))
    state.validate(dict.fromkeys(TYPES, 0.0), {"heat": 1.0, "cool": 0.0, "look": 0.0}, 10)
    assert (state.n_plus("heat", 8), state.n_plus("cool", 8)) == (0, 1)
    returns = [1.0, 0.0, 0.0]
    _, adv, log = state.credit(batch(returns, 0))
    assert log["correction"] == {"heat": 0.0}
    assert np.array_equal(adv.values, csca(returns, ["g1"] * 3, [0] * 3, [0.0] * 3))


def test_contrast_by_task_is_an_option() -> None:
    state = start("skillc", key="task")
    state.credit(batch([1.0, 0.0], 1, task="g1"))
    assert state.correction("g1", "heat") > 0.0
    assert state.correction("g2", "heat") == 0.0


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("skillc", [1, 1, 0, 0, 0]),
        ("skill0", [8, 8, 0, 0, 0]),
        ("static_withdrawal", [8, 8, 8, 0, 0]),
        *((name, [8] * 5) for name in ("skill_grpo", "context_distillation", "guarded_imitation")),
        *((name, [0] * 5) for name in ("grpo", "raft")),
    ],
)
def test_who_sees_a_skill_that_harms_before_and_after_each_validation(name: str, shown: list[int]) -> None:
    method = Method(get_recipe(name), ("heat", "cool"), total_steps=20)
    seen = [method.n_plus("heat", 8)]
    for step in (0, 8, 10, 16):
        method.validate({"heat": 0.1, "cool": 0.1}, {"heat": 0.9, "cool": 0.9}, step)
        seen.append(method.n_plus("heat", 8))
    assert seen == shown
    assert len(method.active) == {8: 2, 0: 0}[shown[-1]]


def test_drawn_groups_are_whole_and_keep_the_curriculums_share() -> None:
    state = start("no_pairing", rho=0.3)
    drawn = [state.n_plus("heat", 8) for _ in range(100)]
    assert set(drawn) == {0, 8}
    assert drawn.count(8) == 30


def test_skill0_ranks_by_the_last_gap_alone() -> None:
    state = start("skill0")
    state.validate({"heat": 1.0, "cool": 1.0, "look": 1.0}, dict.fromkeys(TYPES, 0.0), 10)
    retired = state.validate({"heat": 0.4, "cool": 0.9, "look": 0.8}, dict.fromkeys(TYPES, 0.5), 60)
    assert [(r.task_type, r.reason) for r in retired] == [("heat", "gap")]
    assert state.curriculum.gap("cool") == pytest.approx(0.4)


def test_grpo_presets_use_the_plain_advantage() -> None:
    returns = [1.0, 0.0, 0.0, 1.0]
    for name in ("grpo", "skill_grpo", "skill0"):
        _, adv, _ = start(name).credit(batch(returns, 2))
        assert np.array_equal(adv.values, grpo(returns, ["g1"] * 4))


def test_diagnostics_say_whom_the_update_rewards() -> None:
    state = start("skillc")
    _, adv, log = state.credit(batch([1.0, 1.0, 0.0, 0.0], 2))
    assert log["advantage_mean"] == {
        "with_success": adv.values[:2].mean(),
        "with_failure": None,
        "without_success": None,
        "without_failure": adv.values[2:].mean(),
    }
    assert log["failed_with_positive_advantage"] == 0.0
    assert (log["n_plus"], log["rollout_fraction_with"]) == ({"heat": 2.0}, {"heat": 0.5})
    assert np.allclose(np.sum(list(adv.parts.values()), axis=0), adv.values)
    assert json.loads(json.dumps(log)) == log


def test_injected_rollouts_are_counted_per_group_where_a_task_comes_twice() -> None:
    played = [replace(trajectory(episode(condition=i < 2)), group=group) for group in (0, 1) for i in range(4)]
    _, _, log = start("half_skill_grpo").credit(RolloutBatch.from_trajectories(played))
    assert log["n_plus"] == {"heat": 2.0}


def test_failed_rollouts_can_be_rewarded_by_the_letter_of_the_correction() -> None:
    state = start("skillc", omega=4.0)
    _, _, log = state.credit(batch([1.0, 1.0, 0.0, 0.0], 2))
    assert log["failed_with_positive_advantage"] == 1.0
    masked = start("skillc", omega=4.0, correction_mask="success")
    assert masked.credit(batch([1.0, 1.0, 0.0, 0.0], 2)).log["failed_with_positive_advantage"] == 0.0


# These read whole trajectories, which the columns of this file do not have.
FROM_TRAJECTORIES = {"gigpo", "ppo", "skill05"}


@pytest.mark.parametrize("name", sorted({*recipe_names()} - FROM_TRAJECTORIES))
def test_a_restored_method_goes_on_with_the_identical_trace(name: str) -> None:
    state, restored = start(name), start(name)
    walk(state, seed=1, steps=5)
    restored.load_state_dict(json.loads(json.dumps(state.state_dict())))
    assert restored.state_dict() == state.state_dict()
    assert walk(restored, seed=2, steps=5) == walk(state, seed=2, steps=5)
    assert restored.state_dict() == state.state_dict()


def test_checkpoints_of_another_run_are_refused() -> None:
    state = start("skillc")
    with pytest.raises(CheckpointError, match=r"method 'grpo'.*'skillc'"):
        state.load_state_dict(start("grpo").state_dict())
    with pytest.raises(CheckpointError, match=r"omega=0\.1 \(now 0\.4\)"):
        state.load_state_dict(start("skillc", omega=0.1).state_dict())
    with pytest.raises(CheckpointError, match="task_types"):
        state.load_state_dict(Method(get_recipe("skillc"), TYPES[:2], 180).state_dict())
    with pytest.raises(CheckpointError, match="total_steps"):
        state.load_state_dict(Method(get_recipe("skillc"), TYPES, 90).state_dict())
    with pytest.raises(CheckpointError, match="lacks contrast"):
        state.load_state_dict({k: v for k, v in state.state_dict().items() if k != "contrast"})


def test_an_unknown_type_is_named_before_anything_moves() -> None:
    state = start("skillc")
    with pytest.raises(UnknownNameError, match="heet"):
        state.credit(batch([1.0, 0.0], 1, kind="heet"))
    assert state.state_dict() == start("skillc").state_dict()


SPEEDS = {"pick": 0.2, "look": 0.09, "clean": 0.05, "heat": 0.022, "cool": 0.012, "pick2": 0.004}
PANEL, GROUP, TOTAL = 46, 8, 180


def rate(kind: str, condition: int, step: int) -> float:
    """With the skill 0.8 from the start; without it the gap closes at the type's speed and ends a little beyond."""
    return 0.8 if condition else 0.9 - 0.7 * np.exp(-SPEEDS[kind] * step)


def validate(state: Method, step: int, rng: np.random.Generator) -> None:
    rates = [{k: float(rng.binomial(PANEL, rate(k, z, step))) / PANEL for k in SPEEDS} for z in (1, 0)]
    state.validate(*rates, step)


def train(state: Method, step: int, rng: np.random.Generator) -> dict:
    rows = []
    for kind in SPEEDS:
        n_plus, task = state.n_plus(kind, GROUP), f"{kind}-{rng.integers(600)}"
        for condition in (1,) * n_plus + (0,) * (GROUP - n_plus):
            rows.append((task, kind, condition, float(rng.random() < rate(kind, condition, step))))
    tasks, kinds, conditions, returns = zip(*rows, strict=True)
    batch = RolloutBatch.build(returns=returns, task=tasks, task_type=kinds, condition=conditions)
    _, advantage, log = state.credit(batch)
    assert np.isfinite(advantage.values).all()
    return log


def test_a_noisy_run_keeps_every_promise() -> None:
    rng = np.random.default_rng(0)
    state = Method(get_recipe("skillc"), tuple(SPEEDS), TOTAL)
    validate(state, 0, rng)
    fraction: dict[str, list[float]] = {k: [] for k in SPEEDS}
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

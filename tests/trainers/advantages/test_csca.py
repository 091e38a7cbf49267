"""CSCA: exact checks of the two streams."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError, UnknownNameError
from trainers.advantages import Csca, Streams, csca, grpo


def csca_streams(returns: Any, task: Any, condition: Any, correction: Any, **options: Any) -> Streams:
    success = options.pop("success", None)
    return Csca(**options).streams(returns, task, condition, correction, success)


@st.composite
def batches(draw: st.DrawFn, binary: bool = True) -> dict[str, list]:
    """Tasks of any n_plus, constant branches included."""
    values = st.sampled_from([0.0, 1.0]) if binary else st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0])
    tasks = draw(st.integers(1, 4))
    size = draw(st.integers(1, 8))
    task = [f"t{i}" for i in range(tasks) for _ in range(size)]
    condition = [int(j < n) for n in (draw(st.integers(0, size)) for _ in range(tasks)) for j in range(size)]
    correction = [c for c in (draw(st.floats(0, 2)) for _ in range(tasks)) for _ in range(size)]
    returns = draw(st.lists(values, min_size=len(task), max_size=len(task)))
    return {"returns": returns, "task": task, "condition": condition, "correction": correction}


def branch_norm(returns: list[float], task: list[str], condition: list[int]) -> np.ndarray:
    """The conditional normalisation, written out a second time with numpy."""
    values, result = np.asarray(returns), np.zeros(len(returns))
    for t in set(task):
        for z in (0, 1):
            rows = [i for i in range(len(task)) if task[i] == t and condition[i] == z]
            if len({returns[i] for i in rows}) > 1:
                result[rows] = (values[rows] - values[rows].mean()) / (values[rows].std() + 1e-6)
    return result


def test_a_worked_example() -> None:
    returns = [1.0, 1.0, 0.0, 1.0, 0.0, 0.0]
    condition = [1, 1, 1, 0, 0, 0]
    got = csca(returns, ["x"] * 6, condition, [0.25] * 6)
    phi = (np.asarray(returns) - 0.5) / (0.5 + 1e-6)
    spread = math.sqrt(2) / 3 + 1e-6
    norm = np.array([1 / 3, 1 / 3, -2 / 3, 2 / 3, -1 / 3, -1 / 3]) / spread
    expected = phi + 0.4 * (norm + np.where(condition, -0.25, 0.25))
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    assert got.dtype == np.float64


@given(batches(binary=False))
def test_it_agrees_with_a_second_writing(batch: dict[str, list]) -> None:
    parts = csca_streams(**batch)
    np.testing.assert_allclose(
        parts.conditional, branch_norm(batch["returns"], batch["task"], batch["condition"]), atol=1e-9
    )
    np.testing.assert_array_equal(
        parts.correction, np.where(np.asarray(batch["condition"]) == 1, -1.0, 1.0) * batch["correction"]
    )


@given(batches(binary=False))
def test_without_contrast_it_is_phi_plus_the_conditional_norm_to_the_last_bit(batch: dict[str, list]) -> None:
    batch["correction"] = [0.0] * len(batch["task"])
    parts = csca_streams(**batch, omega=0.4)
    assert np.array_equal(csca(**batch, omega=0.4), parts.outcome + 0.4 * parts.conditional)


@given(batches(binary=False), st.randoms(use_true_random=False), st.sampled_from(["batch", "group"]))
def test_the_order_of_rollouts_does_not_matter_to_the_last_bit(batch: dict, rng: object, scope: str) -> None:
    order = list(range(len(batch["task"])))
    rng.shuffle(order)  # type: ignore[attr-defined]
    shuffled = {name: [values[i] for i in order] for name, values in batch.items()}
    assert np.array_equal(csca(**shuffled, scope=scope), csca(**batch, scope=scope)[order])  # type: ignore[arg-type]


@given(batches(), st.floats(0.1, 100), st.floats(-10, 10))
def test_norm_parts_ignore_scale_and_shift(batch: dict[str, list], scale: float, shift: float) -> None:
    moved = {**batch, "returns": [scale * r + shift for r in batch["returns"]]}
    ours, theirs = csca_streams(**batch, eps=1e-12), csca_streams(**moved, eps=1e-12)
    np.testing.assert_allclose(theirs.outcome, ours.outcome, atol=1e-6)
    np.testing.assert_allclose(theirs.conditional, ours.conditional, atol=1e-6)
    assert np.array_equal(theirs.correction, ours.correction)


@given(batches(binary=False), st.sampled_from(["batch", "group"]), st.sampled_from(["condition", "mixed"]))
def test_it_is_always_finite(batch: dict, scope: str, branch: str) -> None:
    result = csca(**batch, scope=scope, branch=branch)  # type: ignore[arg-type]
    assert np.isfinite(result).all()
    assert result.shape == (len(batch["task"]),)


@pytest.mark.parametrize("value", [0.0, 0.1, 0.3, 1 / 3, 1.0, 1e10])
@pytest.mark.parametrize("size", [1, 3, 7])
def test_constant_branches_are_exactly_zero(value: float, size: int) -> None:
    assert not csca([value] * size, ["x"] * size, [0] * size, [0.0] * size).any()


def test_a_retired_group_is_normalised_as_a_group() -> None:
    returns, task = [1.0, 0.0, 0.0, 1.0, 1.0], ["x"] * 5
    parts = csca_streams(returns, task, [0] * 5, [0.0] * 5)
    assert np.array_equal(parts.conditional, grpo(returns, task))
    assert not parts.correction.any()


def test_the_success_mask_rewards_only_successes_without_the_skill() -> None:
    parts = csca_streams(
        [1.0, 0.0, 1.0, 0.0],
        ["x"] * 4,
        [1, 1, 0, 0],
        [0.5] * 4,
        correction_mask="success",
        success=[True, False, True, False],
    )
    assert parts.correction.tolist() == [-0.5, -0.5, 0.5, 0.0]


def test_group_scope_is_the_group_norm_and_mixed_branches_join() -> None:
    returns, task, condition = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0], ["x"] * 3 + ["y"] * 3, [1, 0, 0, 1, 1, 0]
    parts = csca_streams(returns, task, condition, [0.0] * 6, scope="group", branch="mixed")
    assert np.array_equal(parts.outcome, grpo(returns, task))
    assert np.array_equal(parts.conditional, grpo(returns, task))


def test_bad_input_is_named() -> None:
    good = {"returns": [1.0, 0.0], "task": ["x", "x"], "condition": [1, 0], "correction": [0.1, 0.1]}
    for change, match in (
        ({"task": ["x"]}, "task"),
        ({"condition": [1, 2]}, "condition"),
        ({"correction": [0.1, -0.1]}, "correction"),
        ({"correction": [0.1]}, "correction"),
        ({"returns": [1.0, float("nan")]}, "finite"),
        ({"correction_mask": "success"}, "success"),
    ):
        with pytest.raises(ConfigError, match=match):
            csca(**{**good, **change})  # type: ignore[arg-type]
    for change in ({"scope": "bach"}, {"correction_mask": "succes"}, {"branch": "mix"}):
        with pytest.raises(UnknownNameError):
            csca(**{**good, **change})  # type: ignore[arg-type]

"""The smoothed contrast and what an update shows of it; CSCA: exact checks of the two streams."""

from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import CheckpointError, ConfigError, UnknownNameError
from trainers.advantages import Contrast, Csca, RolloutBatch, csca
from trainers.advantages.csca import paired_contrasts, unpaired_contrasts

contrasts = st.lists(st.floats(-1, 1), min_size=1, max_size=30)


@given(contrasts)
def test_a_contrast_is_the_bias_corrected_moving_average(observed: list[float]) -> None:
    contrast = Contrast()
    for c in observed:
        contrast.update({"heat": c})
    n = len(observed)
    m = sum(0.1 * 0.9 ** (n - 1 - i) * c for i, c in enumerate(observed))
    assert contrast.value("heat") == pytest.approx(m / (1 - 0.9**n), abs=1e-12)


def test_a_contrast_may_be_uncorrected_or_clipped() -> None:
    plain, clipped = Contrast(bias_correction=False), Contrast(clip=0.2)
    for contrast in (plain, clipped):
        contrast.update({"heat": -1.0, "cool": 1.0})
    assert plain.value("cool") == pytest.approx(0.1)
    assert (clipped.value("heat"), clipped.value("cool"), clipped.value("look")) == (-0.2, 0.2, 0.0)


def test_bad_values_and_states_are_refused() -> None:
    contrast = Contrast()
    with pytest.raises(ConfigError, match="cool"):
        contrast.update({"heat": 1.0, "cool": float("nan")})
    assert contrast.keys == ()
    with pytest.raises(ConfigError, match="decay"):
        Contrast(decay=1.0)
    with pytest.raises(CheckpointError, match="decay"):
        Contrast(decay=0.5).load_state_dict(contrast.state_dict())


def batch(rows: list[tuple[str, str, int, float]]) -> RolloutBatch:
    task, kind, condition, returns = zip(*rows, strict=True)
    return RolloutBatch.build(returns=returns, task=task, task_type=kind, condition=condition)


def test_only_what_has_both_branches_speaks_tasks_where_they_are_paired_or_types() -> None:
    rows = [("a", "heat", 1, 1.0)] * 2 + [("a", "heat", 0, 0.0), ("b", "heat", 1, 1.0)]
    rows += [("b", "heat", 0, 1.0), ("b", "heat", 0, 0.0), ("c", "cool", 0, 1.0), ("d", "look", 1, 1.0)]
    assert paired_contrasts(batch(rows), "type") == {"heat": 0.75}
    assert paired_contrasts(batch(rows), "task") == {"a": 1.0, "b": 0.5}
    assert unpaired_contrasts(batch(rows)) == {"heat": pytest.approx(2 / 3)}
    assert paired_contrasts(batch([*rows[:1], ("e", "heat", 0, 0.0)]), "type") == {}


PLAYED = st.tuples(st.sampled_from("abcdef"), st.integers(0, 1), st.sampled_from([0.0, 0.1, 0.7, 1.0]))


@given(st.lists(PLAYED, min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_the_order_within_a_batch_does_not_matter(rows: list[tuple[str, int, float]], rng: Random) -> None:
    full = [(t, "heat" if t < "d" else "cool", z, r) for t, z, r in rows]
    shuffled = batch(rng.sample(full, len(full)))
    assert paired_contrasts(batch(full), "type") == paired_contrasts(shuffled, "type")
    assert unpaired_contrasts(batch(full)) == unpaired_contrasts(shuffled)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"returns": [10.0, 0.0]}, "success scale"),
        ({"task": ["a"]}, "2 entries"),
        ({"task_type": ["heat", "cool"]}, "two task types"),
    ],
)
def test_bad_batches_are_named(change: dict, match: str) -> None:
    good = {"returns": [1.0, 0.0], "task": ["a", "a"], "task_type": ["heat", "heat"], "condition": [1, 0]}
    with pytest.raises(ConfigError, match=match):
        RolloutBatch.build(**{**good, **change})


def streams(success: Any = None, **given: Any) -> Mapping[str, Any]:
    """Outcome, conditional and correction, unweighted."""
    columns = [given.pop(name) for name in ("returns", "task", "condition", "correction")]
    return Csca(omega=1.0, **given).of_columns(*columns, success).parts


@st.composite
def batches(draw: st.DrawFn) -> dict[str, list]:
    """Tasks of any n_plus, constant branches included."""
    values = st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0])
    tasks = draw(st.integers(1, 4))
    size = draw(st.integers(1, 8))
    task = [f"t{i}" for i in range(tasks) for _ in range(size)]
    condition = [int(j < n) for n in (draw(st.integers(0, size)) for _ in range(tasks)) for j in range(size)]
    correction = [c for c in (draw(st.floats(0, 2)) for _ in range(tasks)) for _ in range(size)]
    returns = draw(st.lists(values, min_size=len(task), max_size=len(task)))
    return {"returns": returns, "task": task, "condition": condition, "correction": correction}


def normalised(returns: list[float], groups: list[Any], eps: float) -> np.ndarray:
    """Less the group's mean and over its spread, written out a second time with numpy; 0 where all are equal."""
    values, result = np.asarray(returns), np.zeros(len(returns))
    for group in set(groups):
        rows = [i for i, other in enumerate(groups) if other == group]
        if len({returns[i] for i in rows}) > 1:
            result[rows] = (values[rows] - values[rows].mean()) / (values[rows].std() + eps)
    return result


SCOPES = st.sampled_from(["batch", "group"])


@given(batches(), SCOPES, st.sampled_from(["condition", "mixed"]), st.sampled_from([1e-6, 0.1]))
def test_it_agrees_with_a_second_writing(batch: dict[str, list], scope: str, branch: str, eps: float) -> None:
    returns, task, condition = batch["returns"], batch["task"], batch["condition"]
    options = {"scope": scope, "branch": branch, "eps": eps}
    parts, whole = streams(**batch, **options), csca(**batch, **options)
    groups = task if scope == "group" else ["all"] * len(task)
    branches = task if branch == "mixed" else [*zip(task, condition, strict=True)]
    np.testing.assert_allclose(parts["outcome"], normalised(returns, groups, eps), atol=1e-9)
    np.testing.assert_allclose(parts["conditional"], normalised(returns, branches, eps), atol=1e-9)
    assert np.array_equal(parts["correction"], np.where(np.asarray(condition) == 1, -1.0, 1.0) * batch["correction"])
    assert np.array_equal(whole, parts["outcome"] + 0.4 * (parts["conditional"] + parts["correction"]))
    assert np.array_equal(csca(**batch, omega=0.0, scope=scope, eps=eps), parts["outcome"])
    assert np.array_equal(csca(**batch), csca(**batch, scope="batch", branch="condition", eps=1e-6))
    assert whole.dtype == np.float64


@given(batches(), st.randoms(use_true_random=False), SCOPES)
def test_the_order_of_rollouts_does_not_matter_to_the_last_bit(batch: dict, rng: Random, scope: str) -> None:
    order = rng.sample(range(len(batch["task"])), len(batch["task"]))
    shuffled = {name: [values[i] for i in order] for name, values in batch.items()}
    assert np.array_equal(csca(**shuffled, scope=scope), csca(**batch, scope=scope)[order])  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [0.0, 0.1, 0.3, 1 / 3, 1.0, 1e10])
@pytest.mark.parametrize("size", [1, 3, 7])
def test_constant_branches_are_exactly_zero(value: float, size: int) -> None:
    assert not csca([value] * size, ["x"] * size, [0] * size, [0.0] * size).any()


def test_the_success_mask_rewards_only_successes_without_the_skill() -> None:
    won = [True, False, True, False]
    given = {"task": ["x"] * 4, "condition": [1, 1, 0, 0], "correction": [0.5] * 4, "correction_mask": "success"}
    assert streams(won, returns=[1.0, 0.0, 1.0, 0.0], **given)["correction"].tolist() == [-0.5, -0.5, 0.5, 0.0]


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"condition": [1, 2]}, ConfigError, "condition"),
        ({"correction": [0.1, -0.1]}, ConfigError, "correction"),
        ({"correction_mask": "success"}, ConfigError, "success"),
        ({"scope": "bach"}, UnknownNameError, "batch"),
    ],
)
def test_bad_input_is_named(change: dict, error: type[Exception], match: str) -> None:
    good = {"returns": [1.0, 0.0], "task": ["x", "x"], "condition": [1, 0], "correction": [0.1, 0.1]}
    with pytest.raises(error, match=match):
        csca(**{**good, **change})  # type: ignore[arg-type]

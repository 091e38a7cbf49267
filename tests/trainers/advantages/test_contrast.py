"""The smoothed contrast, and what an update shows of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import CheckpointError, ConfigError
from trainers.advantages import Contrast, RolloutBatch
from trainers.advantages.csca import paired_contrasts, unpaired_contrasts

contrasts = st.lists(st.floats(-1, 1), min_size=1, max_size=30)


@given(contrasts)
def test_closed_form_with_bias_correction(observed: list[float]) -> None:
    contrast = Contrast()
    for c in observed:
        contrast.update({"heat": c})
    n = len(observed)
    m = sum(0.1 * 0.9 ** (n - 1 - i) * c for i, c in enumerate(observed))
    assert contrast.value("heat") == pytest.approx(m / (1 - 0.9**n), abs=1e-12)


def test_options() -> None:
    plain = Contrast(bias_correction=False)
    plain.update({"heat": 1.0})
    assert plain.value("heat") == pytest.approx(0.1)
    clipped = Contrast(clip=0.2)
    clipped.update({"heat": -1.0, "cool": 1.0})
    assert (clipped.value("heat"), clipped.value("cool"), clipped.value("look")) == (-0.2, 0.2, 0.0)


@given(contrasts, contrasts)
def test_state_round_trips_bit_for_bit(before: list[float], after: list[float]) -> None:
    first, second = Contrast(), Contrast()
    for c in before:
        first.update({"heat": c})
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    for c in after:
        first.update({"heat": c})
        second.update({"heat": c})
        assert second.value("heat") == first.value("heat")


def test_bad_values_and_states_are_refused() -> None:
    contrast = Contrast()
    with pytest.raises(ConfigError, match="cool"):
        contrast.update({"heat": 1.0, "cool": float("nan")})
    assert contrast.keys == ()
    with pytest.raises(ConfigError, match="decay"):
        Contrast(decay=1.0)
    with pytest.raises(CheckpointError, match="decay"):
        Contrast(decay=0.5).load_state_dict(contrast.state_dict())
    with pytest.raises(CheckpointError, match="complete"):
        contrast.load_state_dict({"decay": 0.9, "clip": 2.0, "bias_correction": True})


def batch(rows: list[tuple[str, str, int, float]]) -> RolloutBatch:
    task, kind, condition, returns = zip(*rows, strict=True)
    return RolloutBatch.build(returns=returns, task=task, task_type=kind, condition=condition)


ROWS = [
    ("a", "heat", 1, 1.0),
    ("a", "heat", 1, 1.0),
    ("a", "heat", 0, 0.0),
    ("b", "heat", 1, 1.0),
    ("b", "heat", 0, 1.0),
    ("b", "heat", 0, 0.0),
    ("c", "cool", 0, 1.0),
    ("d", "look", 1, 1.0),
]


def test_only_tasks_with_both_branches_speak_and_a_type_averages_its_tasks() -> None:
    assert paired_contrasts(batch(ROWS), "type") == {"heat": 0.75}
    assert paired_contrasts(batch(ROWS), "task") == {"a": 1.0, "b": 0.5}


def test_unpaired_contrasts_compare_across_tasks() -> None:
    rows = [("a", "heat", 1, 1.0), ("b", "heat", 0, 0.0), ("c", "heat", 0, 1.0), ("d", "look", 1, 1.0)]
    assert unpaired_contrasts(batch(rows)) == {"heat": 0.5}
    assert paired_contrasts(batch(rows), "type") == {}


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.integers(0, 1), st.sampled_from([0.0, 0.1, 0.7, 1.0])),
        min_size=1,
        max_size=40,
    ),
    st.randoms(use_true_random=False),
)
def test_the_order_within_a_batch_does_not_matter(rows: list[tuple[str, int, float]], rng: object) -> None:
    full = [(t, "heat" if t < "d" else "cool", z, r) for t, z, r in rows]
    shuffled = list(full)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    assert paired_contrasts(batch(full), "type") == paired_contrasts(batch(shuffled), "type")
    assert unpaired_contrasts(batch(full)) == unpaired_contrasts(batch(shuffled))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"returns": [10.0, 0.0]}, "success scale"),
        ({"returns": [], "task": [], "task_type": [], "condition": []}, "at least one"),
        ({"task": ["a"]}, "2 entries"),
        ({"task_type": ["heat", "cool"]}, "two task types"),
        ({"condition": [1]}, "condition"),
    ],
)
def test_bad_batches_are_named(change: dict, match: str) -> None:
    good = {"returns": [1.0, 0.0], "task": ["a", "a"], "task_type": ["heat", "heat"], "condition": [1, 0]}
    with pytest.raises(ConfigError, match=match):
        RolloutBatch.build(**{**good, **change})

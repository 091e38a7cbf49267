from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trainers.engines.random import uniforms

WORD = st.integers(0, 2**64 - 1)


def one(seed: int, counter: int) -> float:
    return float(uniforms(np.array([seed], dtype=np.uint64), np.array([counter], dtype=np.uint64))[0])


@given(WORD, WORD)
def test_numbers_lie_in_the_half_open_unit_interval(seed: int, counter: int) -> None:
    assert 0.0 <= one(seed, counter) < 1.0


@given(st.lists(st.tuples(WORD, WORD), min_size=1, max_size=20))
def test_each_pair_decides_its_own_number(pairs: list[tuple[int, int]]) -> None:
    seeds, counters = (np.array(column, dtype=np.uint64) for column in zip(*pairs, strict=True))
    assert uniforms(seeds, counters).tolist() == [one(*pair) for pair in pairs]


def test_streams_and_counters_look_independent() -> None:
    seeds, counters = np.meshgrid(np.arange(200, dtype=np.uint64), np.arange(200, dtype=np.uint64))
    grid = uniforms(seeds.ravel(), counters.ravel()).reshape(200, 200)
    assert abs(grid.mean() - 0.5) < 0.01
    assert abs(grid.std() - np.sqrt(1 / 12)) < 0.01
    assert np.abs(np.corrcoef(grid) - np.eye(200)).max() < 0.35
    assert len(np.unique(grid)) == grid.size

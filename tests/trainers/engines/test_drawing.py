"""Random numbers by seed and counter; top-k, min-p and top-p against their definitions, token by token."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError
from trainers.engines import Sampling
from trainers.engines.batching import draw, likely_tokens
from trainers.engines.random import uniforms

LOGITS = st.lists(st.integers(-40, 40).map(lambda n: n / 8), min_size=3, max_size=12, unique=True)


def slow(logits: list[float], sampling: Sampling) -> set[int]:
    """The tokens that may be drawn, the most probable first."""
    order = sorted(range(len(logits)), key=lambda i: -logits[i])
    shares = {i: float(np.exp(logits[i] - max(logits))) for i in order}
    kept = order[: sampling.top_k] if sampling.top_k else order
    kept = [i for i in kept if shares[i] >= sampling.min_p]
    total, before, inside = sum(shares[i] for i in kept), 0.0, set()
    for i in kept:
        if before / total < sampling.top_p or sampling.top_p == 1:
            inside.add(i)
        before += shares[i]
    return inside


@settings(max_examples=40, deadline=None)
@given(LOGITS, st.floats(0.05, 1), st.integers(0, 5), st.floats(0, 0.9))
def test_what_may_be_drawn(logits: list[float], top_p: float, top_k: int, min_p: float) -> None:
    sampling = Sampling(top_p=top_p, top_k=top_k, min_p=min_p)
    logprobs = torch.log_softmax(torch.tensor([logits], dtype=torch.float64), dim=-1)
    found = set(torch.nonzero(likely_tokens(logprobs, sampling)[0]).flatten().tolist())
    # A bound that is met up to rounding may go either way.
    near = {Sampling(top_p=min(1.0, top_p * f), top_k=top_k, min_p=min(0.99, min_p * f)) for f in (1 - 1e-9, 1 + 1e-9)}
    assert found in [slow(logits, each) for each in near] + [slow(logits, sampling)]


@settings(max_examples=40, deadline=None)
@given(LOGITS, st.floats(0, 0.999))
def test_nothing_outside_is_ever_drawn_and_log_probabilities_stay_whole(logits: list[float], number: float) -> None:
    rows, sampling = torch.tensor([logits]), Sampling(top_k=2)
    tokens, logprobs = draw(rows, np.array([number]), sampling)
    assert int(tokens[0]) in slow(logits, sampling)
    assert logprobs[0] == pytest.approx(float(torch.log_softmax(rows, -1)[0, tokens[0]]), abs=1e-6)


def test_a_sampling_out_of_range_is_refused() -> None:
    for wrong in ({"top_p": 0.0}, {"top_p": 1.5}, {"top_k": -1}, {"min_p": 1.0}):
        with pytest.raises(ConfigError, match=r"top_p|top_k|min_p"):
            Sampling(**wrong)
    assert not Sampling().truncates


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

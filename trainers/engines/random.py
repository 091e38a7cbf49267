"""Random numbers and seeds that depend on the numbers given alone, never on who else is drawing."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def _mix(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014): a bijection that scatters every bit."""
    bits = (bits ^ (bits >> np.uint64(30))) * _MIX_1
    bits = (bits ^ (bits >> np.uint64(27))) * _MIX_2
    return bits ^ (bits >> np.uint64(31))


def uniforms(seeds: npt.NDArray[np.uint64], counters: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """One number in [0, 1) per seed and counter, with 53 random bits, as many as a float64 holds; shape (n,)."""
    # A hash of (seed, counter) instead of a generator with a state: any number of any stream is had without those
    # before it, so a token's draw does not depend on who else was drawing.
    with np.errstate(over="ignore"):
        start = _mix(seeds.astype(np.uint64) + _GOLDEN)
        bits = _mix(start + (counters.astype(np.uint64) + np.uint64(1)) * _GOLDEN)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


class Purpose(IntEnum):
    """What a run's seed is derived for, the first number behind it; 6 and 7 are the laboratory's (``agents.base``)."""

    PLAY = 1
    """An update's rollouts."""
    ORDER = 2
    """The order of an update's rollouts in its optimiser steps."""
    VALIDATE = 3
    """The curriculum's panel."""
    DROPOUT = 4
    """What layers draw in an update."""
    EVALUATE = 4
    """The panel of an evaluation, which trains nothing: one number serves both."""
    WRITE = 5
    """What a skill memory has written."""


def derive_seed(*numbers: int) -> int:
    """A 64-bit seed of non-negative numbers in their order; padded with zeros: (3, 1) and (3, 1, 0) are one seed."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])

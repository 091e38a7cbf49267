"""GRPO's group advantage."""

from __future__ import annotations

import numpy as np
import pytest

from skillc_gym.errors import ConfigError
from trainers.advantages import grpo


def test_each_task_is_normalised_on_its_own() -> None:
    got = grpo([1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0], ["x", "x", "y", "y", "y", "y", "z"])
    half = 0.5 / (0.5 + 1e-6)
    np.testing.assert_allclose(got, [half, -half, half, half, -half, -half, 0.0], rtol=1e-12)
    assert got[-1] == 0.0


def test_one_task_per_return() -> None:
    with pytest.raises(ConfigError, match="2 tasks"):
        grpo([1.0, 0.0], ["x"])

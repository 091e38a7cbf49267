from __future__ import annotations

import pytest

pytest.importorskip("sb3_contrib", reason="needs the sb3 extra")

from benchmarks.maskable_ppo import measure


@pytest.mark.slow
def test_maskable_ppo_learns_through_the_discrete_view():
    found = measure(steps=40_000, seed=0, episodes=200)
    assert found["won"] >= 3 * max(found["won_uniform"], 4)

"""The environments' share of an update is measured around their calls alone, and nothing else stays changed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs the extra 'train'")

from benchmarks.env_share import Clock, _page, measure
from skillc_gym.vector import PairedVectorEnv
from tests.trainers import conftest
from tests.trainers.toys import toy_config

toy_folder = conftest.toy_folder


def test_a_clock_counts_calls_also_those_that_fail() -> None:
    clock = Clock()

    def fails(seconds: float) -> None:
        time.sleep(seconds)
        raise ValueError("fell over")

    assert clock.around(lambda value: value)(3) == 3
    clock.take()
    with pytest.raises(ValueError, match="fell over"):
        clock.around(fails)(0.01)
    assert clock.take() >= 0.01
    assert clock.take() == 0.0


def test_a_share_is_a_part_of_generating(toy_folder: Path) -> None:
    plain = PairedVectorEnv.step
    world = measure(toy_config(toy_folder, steps=3, validate_every=99, transcripts_every=0, save_every=99))
    assert PairedVectorEnv.step is plain
    assert len(world["every_share"]) == 2
    assert 0 < world["seconds"]["env"] < world["seconds"]["generate"]
    assert 0 < world["share"] < 1
    page = _page({"worlds": [world], "device": "cpu", "threads": 1, "updates": 2})
    assert f"{world['share']:.2%}" in page

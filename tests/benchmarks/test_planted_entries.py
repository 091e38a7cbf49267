"""Planted entries: the bank that methods start from, and the figures that are drawn from their runs."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the train extra")

from benchmarks.planted_entries import EMPTY, measure_planted, page, planted_bank, save_picture, use_share
from trainers.config import TrainConfig
from trainers.warmstart import small_policy_settings

HEAT = "pick_heat_then_place_in_recep"


def used(*counts: int, utility: float = 0.5) -> dict[str, Any]:
    return {f"s{i:05d}": {"utility": utility, "uses": count} for i, count in enumerate(counts, 1)}


RECORD = {
    "env": "alfworld",
    "task_type": HEAT,
    "planted": ["s00001", "s00002"],
    "useful": "s00002",
    "runs": [{"method": "d2skill", "seed": s, "updates": [used(4, 4), used(5, 11), used(5, 19)]} for s in (0, 1)],
}


def test_the_useful_entry_stands_last_and_nothing_else_tells_it_apart():
    bank, useful = planted_bank("alfworld", HEAT, 3)
    entries = list(bank)
    assert [entry.name == useful for entry in entries] == [False, False, False, True]
    assert {(entry.key, entry.task_type, entry.utility, entry.uses) for entry in entries} == {("heat", HEAT, 0.0, 0)}
    assert entries[0].text == EMPTY
    assert len({entry.text for entry in entries}) == 4


def test_uses_are_counted_per_update():
    assert use_share(RECORD["runs"][0], "s00002") == [0.5, 0.875, 1.0]
    assert use_share({"updates": [used(0, 0)]}, "s00002") == [None]


def test_the_page_and_the_picture_are_made_from_the_record(tmp_path):
    assert "| `d2skill` | 2 | 0.50 [0.50, 0.50] | 0.50 [0.50, 0.50] | 0.94 [0.94, 0.94] |" in page(RECORD)
    assert "methods write entries of their own, too." in page(RECORD)
    assert "`python -m benchmarks.planted_entries --only-planted`" in page({**RECORD, "only_planted": True})
    save_picture(RECORD, tmp_path / "uses.png")
    assert (tmp_path / "uses.png").stat().st_size > 1000


@pytest.mark.slow
def test_credit_alone_moves_the_planted_entries_and_nothing_is_written():
    settings = {**small_policy_settings("alfworld"), "learning_rate": 0.0, "panel_per_type": 1, "tasks_per_step": 1}
    own = {"task_types": (HEAT,), "steps": 2, "validate_every": 10**6, "save_every": 10**6, "method_options": {}}
    config = TrainConfig(model="shipped", **{**settings, **own})
    record = measure_planted(config, ["skill1", "retroagent"], [0], 3, only_planted=True)
    for run in record["runs"]:
        last = run["updates"][-1]
        assert set(last) == set(record["planted"])
        assert sum(entry["uses"] for entry in last.values()) > 0

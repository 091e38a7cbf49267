"""Groups without differences are left out, and others played in their place."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("trl", reason="needs the extra 'train'")

from skillc_gym.errors import ConfigError
from tests.trainers.toys import timeless, toy_config
from trainers.learner import Learner
from trainers.tracking.progress import SilentProgress
from trainers.training import prepare, run


def started(folder: Path, run_folder: Path, **changes: Any) -> Learner:
    # One draw in eight wins: some groups of four have differences, and most have none.
    settings = {"engine": "choosing", "max_reply_tokens": 8, "method": "grpo", "kl_coef": 0.0, **changes}
    with ExitStack() as stack:
        return prepare(toy_config(folder, run=str(run_folder), **settings), SilentProgress(), stack)[0]


def test_groups_are_drawn_again_until_they_differ_or_the_bound_is_reached(toy_folder: Path, tmp_path: Path) -> None:
    plain, bounded = (started(toy_folder, tmp_path / str(n), redraw_groups=n) for n in (0, 3))
    for update in range(1, 6):
        drawn = plain.draw(update)
        before, after = plain.play(*drawn, update), bounded.play(*drawn, update)
        wins = {group: {e.episode.won for e in before.trajectories if e.group == group} for group in range(4)}
        kept = {group for group, seen in wins.items() if len(seen) == 2}
        groups = Counter(each.group for each in after.trajectories)
        assert kept <= set(groups)
        assert set(groups.values()) == {4}
        assert len(groups) <= 4
        for group in groups:
            assert len({e.episode.won for e in after.trajectories if e.group == group}) == 2
        assert len({e.episode.task_id for e in after.trajectories}) == len(groups)
        _, advantages, figures = bounded.credit(after)
        assert np.asarray(advantages.values).all()
        # What was played in vain was generated, too.
        assert figures["env_steps"] == len(after.trajectories) + 4 * figures["groups_left_out"]


def test_a_run_with_redrawing_is_the_same_each_time_and_counts_what_it_played(toy_folder: Path, tmp_path: Path) -> None:
    settings = {"method": "grpo", "engine": "choosing", "max_reply_tokens": 8, "kl_coef": 0.0, "redraw_groups": 2}
    whole = run(toy_config(toy_folder, run=str(tmp_path / "whole"), **settings)).metrics
    again = run(toy_config(toy_folder, run=str(tmp_path / "again"), **settings)).metrics

    assert timeless(whole) == timeless(again)
    trained = [record for record in whole if record["event"] == "train"]
    assert any(record["groups_left_out"] for record in trained)
    assert trained[-1]["tokens_total"] == sum(record["tokens_generated"] for record in trained)


@pytest.mark.parametrize("method", ["contrastive_relabelling", "skillc", "raft", "evolver"])
def test_methods_that_learn_from_all_groups_refuse_it(toy_folder: Path, tmp_path: Path, method: str) -> None:
    with pytest.raises(ConfigError, match="learns from those too"):
        started(toy_folder, tmp_path, method=method, redraw_groups=1)

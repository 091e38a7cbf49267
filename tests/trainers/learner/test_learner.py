"""A learner: groups drawn again, and a memory with the policy as its writer."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("trl", reason="needs the extra 'train'")
pytest.importorskip("trl", reason="needs the train extra")

from skillc_gym.errors import ConfigError
from tests.trainers.rollouts_of import batch_of, episode
from tests.trainers.toys import timeless, toy_config
from trainers.learner import Learner
from trainers.learner.setup import SharedMemory
from trainers.memory import D2SkillMemory
from trainers.rollout.collect import SharedRollouts
from trainers.rollout.policies import TokenPolicy
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


class Recording:
    """An engine that answers every request alike."""

    def __init__(self) -> None:
        self.requests = []
        self.resets = 0

    def generate(self, requests, sampling):
        assert sampling.greedy
        self.requests += requests
        return [SimpleNamespace(token_ids=[1]) for _ in requests]

    def release(self, keys):
        pass

    def reset(self):
        self.resets += 1


@pytest.mark.parametrize(("preset", "shared"), [("d2skill", False), ("skillc", True)])
def test_what_may_show_nothing_leaves_no_member_the_copy_of_another(
    preset: str, shared: bool, toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as a bank is empty, both halves of d2skill's groups are asked the same."""
    seen: list[bool] = []
    collect = SharedRollouts.collect_own

    def recorded(self: SharedRollouts, *args: Any, **options: Any) -> Any:
        seen.append(options.get("shared_draws", True))
        return collect(self, *args, **options)

    monkeypatch.setattr(SharedRollouts, "collect_own", recorded)
    run(toy_config(toy_folder, method=preset, steps=1, run=str(tmp_path)))
    assert seen.count(False) == (not shared)  # validations stay paired
    assert len(seen) > 1


@pytest.mark.parametrize(("max_context", "asked"), [(10**6, 1), (100, 0)])
def test_a_question_that_leaves_no_room_is_a_bad_reply(max_context, asked, tmp_path):
    chat = SimpleNamespace(
        prompt=lambda messages: [0] * sum(len(message["content"]) for message in messages),
        reply_text=lambda ids: '{"skills": ["Heat it."]}',
    )
    engine = Recording()
    policy = TokenPolicy(engine, chat, growing=True, max_reply_tokens=8, max_context=max_context)
    rollouts = SimpleNamespace(policy=policy)
    setup = SimpleNamespace(
        rollouts=rollouts,
        config=SimpleNamespace(seed=0),
        folder=SimpleNamespace(path=tmp_path),
        prompts=SimpleNamespace(library=None),
    )
    memory = SharedMemory(D2SkillMemory(writer="policy"), setup)
    poor = batch_of([episode(won=False, condition=1), episode(won=True)])
    record = memory.observe(SimpleNamespace(num_processes=1), poor)
    log = record["memory"]
    assert (len(engine.requests), log["size"], log["bad_replies"]) == (asked, asked, 1 - asked)
    assert record.get("tokens_written", 0) == asked
    assert engine.resets == 2

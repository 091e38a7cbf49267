"""A memory at work in a run: the policy as its writer."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the train extra")

from tests.trainers.rollouts_of import batch_of, episode
from tests.trainers.toys import toy_config
from trainers.learner.setup import SharedMemory
from trainers.memory import D2SkillMemory
from trainers.rollout.collect import SharedRollouts
from trainers.rollout.policies import TokenPolicy
from trainers.training import run


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

"""Scores of the skill-augmented methods, and whether they find the useful entry."""

from __future__ import annotations

import math

import numpy as np
import pytest

from trainers.memory import Entry, SkillBank
from trainers.memory.credit import (
    d2skill_score,
    exploration_bonus,
    hindsight_bonus,
    intrinsic_reward,
    moving_utility,
    principle_score,
    retroagent_score,
)
from trainers.writers import Draft


def test_the_scores_follow_their_definitions():
    entry = Entry("a", utility=0.4, uses=3, wins=2.0)
    assert exploration_bonus(10, 3) == pytest.approx(math.sqrt(math.log(11) / 4))
    assert d2skill_score(0.5, entry, 10) == pytest.approx(0.05 + 0.9 * (0.4 + 0.05 * math.sqrt(math.log(11) / 4)))
    assert retroagent_score(0.5, entry, 10) == pytest.approx(0.35 + 0.3 * (0.4 + math.sqrt(math.log(10) / 3)))
    assert principle_score(entry) == pytest.approx(3 / 5)
    assert moving_utility(0.4, 1.0, 0.5) == pytest.approx(0.7)
    assert (intrinsic_reward(0.7, 0.5), intrinsic_reward(0.5, 0.7)) == (pytest.approx(0.2), 0.0)


def test_hindsight_compares_every_rollout_with_the_skill_free_ones_of_its_task():
    success = np.array([1.0, 0.0, 1.0, 0.0, 1.0])
    bonus = hindsight_bonus(success, ["a", "a", "a", "a", "b"], [True, True, False, False, True])
    assert bonus.tolist() == [0.5, -0.5, 0.5, -0.5, 0.0]


def test_an_unused_entry_has_a_finite_score():
    assert math.isfinite(retroagent_score(0.0, Entry("a"), 0))
    assert principle_score(Entry("a")) == 0.5


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("score", [d2skill_score, retroagent_score])
def test_the_useful_entry_comes_to_be_preferred(score, seed):
    bank = SkillBank()
    chances = {bank.add(Draft(text), update=0).name: chance for text, chance in (("good", 0.8), ("a", 0.2), ("b", 0.2))}
    rng = np.random.default_rng(seed)
    chosen = []
    for update in range(200):
        entry = max(bank, key=lambda e: score(0.5, e, bank.total_uses))
        won = bool(rng.random() < chances[entry.name])
        bank.record_use([entry.name], won, update)
        bank.rate(entry.name, moving_utility(entry.utility, float(won) - 0.2, 0.05))
        chosen.append(entry.name)
    assert chosen[100:].count("s00001") > 60
    assert bank["s00001"].utility > max(bank["s00002"].utility, bank["s00003"].utility)

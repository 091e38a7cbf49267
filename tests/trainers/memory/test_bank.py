"""A bank of texts: additions, uses, eviction, what is on disk, and the scores that find its useful entry."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError, MissingDataError, TranscriptError, UnknownNameError
from trainers.memory import Entry, SkillBank
from trainers.memory.bank import (
    d2skill_score,
    exploration_bonus,
    hindsight_bonus,
    intrinsic_reward,
    moving_utility,
    principle_score,
    retroagent_score,
)
from trainers.writers import Draft


def bank_of(*texts: str) -> SkillBank:
    bank = SkillBank()
    for number, text in enumerate(texts):
        bank.add(Draft(text, key=f"goal {number}", sources=("train/x",)), update=number)
    return bank


def test_the_same_text_is_kept_once_per_type():
    bank = bank_of("heat it")
    assert bank.add(Draft("heat it"), update=9).created == 0
    assert bank.add(Draft("heat it", task_type="heat"), update=9).name == "s00002"
    assert len(bank) == 2


def test_uses_and_wins_are_counted_per_entry():
    bank = bank_of("a", "b")
    bank.record_use(["s00001", "s00002"], won=True, update=5)
    bank.record_use(["s00001", "evicted"], won=False, update=6)
    assert [(e.uses, e.wins, e.last_used) for e in bank] == [(2, 1.0, 6), (1, 1.0, 5)]
    assert bank.total_uses == 3


def test_a_bank_that_is_missing_or_of_other_types_is_refused_in_words(tmp_path):
    with pytest.raises(MissingDataError, match=r"No bank .*nowhere.jsonl"):
        SkillBank.load(tmp_path / "nowhere.jsonl")
    state = bank_of("a").state_dict()
    for name, value in (("text", 3), ("uses", "many"), ("sources", "t"), ("utility", None)):
        with pytest.raises(TranscriptError, match=f"An entry's {name} is a"):
            SkillBank().load_state_dict({**state, "entries": [{**state["entries"][0], name: value}]})
    with pytest.raises(TranscriptError, match="how many entries"):
        SkillBank().load_state_dict({key: value for key, value in state.items() if key != "added"})


def test_names_are_never_given_again():
    bank = bank_of("a", "b")
    bank.remove("s00002")
    assert bank.add(Draft("c"), update=2).name == "s00003"
    assert "s00002" not in bank
    with pytest.raises(UnknownNameError, match="s00001"):
        bank["s00002"]


@given(st.lists(st.floats(-1, 1), max_size=8), st.integers(0, 8), st.sets(st.integers(0, 7)))
def test_eviction_keeps_the_best_and_the_protected(utilities, capacity, protected):
    bank = bank_of(*map(str, range(len(utilities))))
    for entry, utility in zip(bank, utilities, strict=True):
        bank.rate(entry.name, utility)
    safe = {f"s{i + 1:05d}" for i in protected}
    before = list(bank)
    gone = bank.keep_best(capacity, lambda entry: entry.utility, protect=lambda entry: entry.name in safe)
    left = {entry.name for entry in bank}
    assert left.isdisjoint(gone)
    assert len(left) == max(min(capacity, len(before)), sum(entry.name in safe for entry in before))
    worst = min((e.utility for e in bank if e.name not in safe), default=1.0)
    assert all(entry.utility <= worst for entry in before if entry.name in gone)


def test_a_bank_comes_back_from_disk_byte_for_byte(tmp_path):
    bank = bank_of("heat it — first", "b")
    bank.record_use(["s00001"], won=True, update=1)
    bank.remove("s00002")
    bank.save(tmp_path / "a.jsonl")
    again = SkillBank.load(tmp_path / "a.jsonl")
    again.save(tmp_path / "b.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert list(again) == list(bank)
    assert again.add(Draft("c"), update=2).name == "s00003"
    assert json.loads((tmp_path / "a.jsonl").read_text().splitlines()[0])["version"] == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty"),
        ("{", ":1 is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]\n", ":1 is not a JSON object"),
        ('{"format": "skillc-bank", "version": 2, "added": 0}\n', "version 2"),
        ('{"format": "skillc-bank", "version": 1, "added": 1}\n{"name": "s00001"}\n', "fields"),
    ],
)
def test_a_damaged_file_is_refused_in_words(tmp_path, content, message):
    (tmp_path / "bank.jsonl").write_text(content)
    with pytest.raises(TranscriptError, match=message):
        SkillBank.load(tmp_path / "bank.jsonl")


def test_what_no_agent_could_read_is_no_entry():
    with pytest.raises(ConfigError, match="empty"):
        Draft("  ")
    with pytest.raises(UnknownNameError, match="kind of entry"):
        Draft("a", kind="skil")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["one\u2028two", "one\x85two", "half \ud800", "line\r\nend"])
def test_what_a_model_writes_stays_on_one_line(tmp_path, text):
    bank = SkillBank()
    bank.add(Draft(text), update=1)
    bank.save(tmp_path / "bank.jsonl")
    assert SkillBank.load(tmp_path / "bank.jsonl").state_dict() == bank.state_dict()


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

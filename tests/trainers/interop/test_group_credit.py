"""A method's advantages over records of episodes that somebody else has played."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import CheckpointError, ConfigError, UnknownNameError
from tests.trainers.toys import episode
from trainers.advantages import RolloutBatch, csca, grpo
from trainers.interop.credit import GroupCredit, batch_of_records
from trainers.recipes import recipe_in
from trainers.recipes.method import Method

TYPES = ("heat", "cool")


def record(task: str, condition: int, won: float, **others) -> dict:
    return {"task_id": task, "task_type": "heat", "condition": condition, "won": won, **others}


UPDATE = [record("a", 1, 1.0), record("a", 1, 1.0), record("a", 0, 1.0), record("a", 0, 0.0), record("b", 1, 0.0)]


def test_advantages_are_those_of_the_two_streams_or_of_another_method_and_return():
    credit = GroupCredit("mine", task_types=TYPES, omega=0.3)
    gate = credit.method.curriculum.lam("heat")
    expected = csca([1, 1, 1, 0, 0], [*"aaaab"], [1, 1, 0, 0, 1], [0.5 * gate] * 5, omega=0.3)
    np.testing.assert_array_equal(credit.advantages(UPDATE), expected)
    assert credit.log["contrast"] == {"heat": 0.5}
    coins = GroupCredit("coins", "grpo", returns="reward")
    played = [{**entry, "task_type": "easy", "episode_return": 0.25 * i} for i, entry in enumerate(UPDATE)]
    np.testing.assert_array_equal(coins.advantages(played), grpo([0, 0.25, 0.5, 0.75, 1], [*"aaaab"]))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans()), min_size=1, max_size=12))
def test_updates_are_the_learners_and_a_state_goes_on_exactly(played):
    episodes = [episode(task, condition=int(shown), won=won) for task, shown, won in played]
    records = [record(task, int(shown), float(won), steps=2) for task, shown, won in played]
    method, credit = Method(recipe_in("mine", "skillc", {}), TYPES, 180), GroupCredit("mine", task_types=TYPES)
    for _ in range(2):
        state, credit = credit.state_dict(), GroupCredit("mine", task_types=TYPES)
        credit.load_state_dict(json.loads(json.dumps(state)))
        theirs = method.credit(RolloutBatch.from_episodes(episodes))
        np.testing.assert_array_equal(credit.advantages(records), theirs.advantages.values)
        np.testing.assert_array_equal(batch_of_records(episodes).outcome, batch_of_records(records).outcome)
        assert credit.log == theirs.log
    assert credit.state_dict() == {**method.state_dict(), "updates": 2}


def test_rollouts_are_compared_among_those_that_were_shown_one_text():
    credit = GroupCredit("mine", "skill_grpo+distraction", task_types=TYPES)
    played = [record("a", 1, won, skill_sha256=text) for won, text in ((1.0, "x"), (1.0, "x"), (0.0, "y"), (0.0, "y"))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert credit.advantages(played).tolist() == [0.0] * 4
        with pytest.raises(ConfigError, match="skill_sha256"):
            credit.advantages([record("a", 1, 1.0), *played])


@pytest.mark.parametrize("damage", [{"updates": -1}, {"contrast": None}, {"options": 5}], ids=str)
def test_a_damaged_state_is_refused_before_anything_moves(damage):
    credit = GroupCredit("mine", task_types=TYPES)
    credit.advantages(UPDATE)
    fresh = GroupCredit("mine", task_types=TYPES)
    with pytest.raises(CheckpointError):
        fresh.load_state_dict({**credit.state_dict(), **damage})
    assert fresh.state_dict() == GroupCredit("mine", task_types=TYPES).state_dict()


def test_validation_opens_the_gate_and_retires():
    credit = GroupCredit("mine", task_types=TYPES, capacity=(1,), total_steps=10)
    panel = [record("a", 1, 1.0), record("a", 0, 0.0)]
    panel += [{**entry, "task_id": "c", "task_type": "cool", "won": 1.0} for entry in panel]
    assert credit.validate(panel, 0) == ()
    assert (credit.n_plus("heat", 8), credit.n_plus("cool", 8)) == (7, 1)
    assert [entry.task_type for entry in credit.validate(panel, 5)] == ["cool"]
    assert credit.n_plus("cool", 8) == 0


def test_a_margin_wants_a_gap_that_is_surely_small():
    panel = [record(f"{won}{task}", shown, won) for task in range(4) for won in (0, 1) for shown in (0, 1)]
    panel += [{**entry, "task_id": f"c{entry['task_id']}", "task_type": "cool"} for entry in panel]
    for margin, retired in ((0.0, ["heat", "cool"]), (2.0, [])):
        credit = GroupCredit("mine", task_types=TYPES, margin=margin, tau_retire=0.1, retire_by=("gap",))
        assert [entry.task_type for entry in credit.validate(panel, 5)] == retired


@pytest.mark.parametrize("preset", ["skill0", "static_withdrawal"])
def test_a_budgets_stages_end_between_validations(preset):
    credit = GroupCredit("mine", preset, task_types=TYPES, total_steps=4, capacity=(2, 0))
    shown = []
    for _ in range(4):
        shown.append(credit.n_plus("heat", 8))
        credit.advantages(UPDATE)
    assert shown == [8, 8, 0, 0]


def test_a_cut_that_ranks_the_types_waits_for_the_validation_after_the_update():
    credit = GroupCredit("mine", "skill0", task_types=TYPES, total_steps=4, capacity=(2, 1))
    for _ in range(2):
        credit.advantages(UPDATE)
    panel = [record("a", 1, 0.0), record("a", 0, 0.0)]
    panel += [record("c", 1, 1.0, task_type="cool"), record("c", 0, 0.0, task_type="cool")]
    credit.validate(panel, 2)
    assert [credit.n_plus(kind, 8) for kind in TYPES] == [0, 8], "the gap of now is cool's"


@pytest.mark.parametrize(
    ("preset", "parts"),
    [
        ("opsd", "that no loss of it reads them; the loss distillation, whose teacher reads the skill"),
        ("guarded_imitation", "the loss relabelling; the rows won_rows"),
        ("pi_distill", "the loss policy, whose teacher reads no skill; the loss student; the rows plain_rows"),
    ],
)
def test_what_advantages_alone_leave_out_is_named(preset, parts):
    with pytest.warns(UserWarning, match="Advantages alone leave out") as said:
        GroupCredit("alfworld", preset)
    (warning,) = said
    assert f" of {preset}: {parts}. Have your learner do it" in str(warning.message)
    assert warning.filename == __file__


def test_methods_that_are_their_advantages_are_taken_in_silence():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for preset in ("grpo", "skill_grpo", "half_skill_grpo", "rloo", "skillc", "no_pairing", "skill0"):
            GroupCredit("alfworld", preset)


@pytest.mark.parametrize("records", [[None], [{"task_id": "a", "won": 1.0, "condition": 1}]])
def test_what_is_no_record_is_refused(records):
    with pytest.raises(ConfigError, match=r"records of episodes.*task_type.*ChatEnv.r"):
        batch_of_records(records)


@pytest.mark.parametrize(
    ("given", "error", "fault"),
    [
        ({"env": "somewhere-else"}, ConfigError, "task types"),
        ({"returns": "score"}, UnknownNameError, "return"),
        ({"preset": "ppo"}, ConfigError, r"need .*skillc train"),
    ],
)
def test_what_says_no_task_types_and_methods_that_need_more_are_refused(given, error, fault):
    with pytest.raises(error, match=fault):
        GroupCredit(**given)

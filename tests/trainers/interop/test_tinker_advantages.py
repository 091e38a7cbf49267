"""tinker-cookbook: its data carry the method's advantages."""

import numpy as np
import pytest

pytest.importorskip(
    "tinker_cookbook", reason="needs the tinker extra, in an environment of its own: make test-adapters"
)

import tinker
from tinker_cookbook.completers import TokensWithLogprobs
from tinker_cookbook.rl.types import Trajectory, TrajectoryGroup, Transition

from skillc_gym.errors import ConfigError
from trainers.interop.credit import GroupCredit
from trainers.interop.tinker import compute_advantages, training_data

RECORDS = [
    {"task_id": task, "task_type": "easy", "condition": float(shown), "won": float(won)}
    for task, shown, won in [("a", 1, 1), ("a", 1, 0), ("a", 0, 0), ("b", 1, 1), ("b", 0, 1)]
]


def played(record) -> Trajectory:
    """A prompt of two tokens, a reply of three."""
    reply = TokensWithLogprobs(tokens=[5, 6, 7], maybe_logprobs=[-0.1] * 3)
    end = Transition(tinker.ModelInput.from_ints([1, 2]), reply, record.get("won", 0.0), True, logs=record)
    return Trajectory([end], tinker.ModelInput.empty())


def groups(records):
    parts = [[entry for entry in records if entry.get("task_id") == task] for task in ("a", "b", None)]
    return [TrajectoryGroup([played(entry) for entry in part], [0.0] * len(part), [{}] * len(part)) for part in parts]


def test_every_group_gets_the_methods_advantages_and_data_carry_them_on_the_replies_alone():
    expected, played = GroupCredit("coins").advantages(RECORDS), groups(RECORDS)[:2]
    found = compute_advantages(GroupCredit("coins"), played)
    assert [len(values) for values in found] == [3, 2]
    np.testing.assert_allclose(np.concatenate([values.numpy() for values in found]), expected, rtol=1e-6)
    data, places = training_data(GroupCredit("coins"), played)
    assert [(place["group_idx"], place["traj_idx"]) for place in places] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    for datum, value in zip(data, expected, strict=True):
        assert datum.loss_fn_inputs["mask"].tolist() == [0.0, 1.0, 1.0, 1.0]
        np.testing.assert_allclose(datum.loss_fn_inputs["advantages"].tolist(), [0.0, *[value] * 3], rtol=1e-6)


def test_trajectories_of_others_are_refused():
    with pytest.raises(ConfigError, match="PairedGroupBuilder"):
        compute_advantages(GroupCredit("coins"), groups([{}]))

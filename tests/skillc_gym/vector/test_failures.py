"""Members that raise (a reset starts all groups or none, a step keeps what the others got), or that step at once."""

import pickle
import threading

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.wrappers import TimeLimit
from toy_env import ToyEnv

from skillc_gym.errors import EngineError, InvalidActionError, MemberError
from skillc_gym.vector import PairedVectorEnv


class Failing(ToyEnv):
    """Fails when it is told to: at the n-th reset or step of all instances together."""

    at: dict[str, int]

    def reset(self, *, seed=None, options=None):
        self._count("reset")
        return super().reset(seed=seed, options=options)

    def step(self, action):
        self._count("step")
        return super().step(action)

    def _count(self, what):
        Failing.at[what] = Failing.at.get(what, 0) - 1
        if Failing.at[what] == 0:
            raise EngineError(f"no {what}")


@pytest.fixture
def groups(toy_library):
    Failing.at = {}
    made = PairedVectorEnv(lambda: TimeLimit(Failing(), 9), 2, 3, library=toy_library)
    made.reset(seed=0, options={"n_plus": [1, 2]})
    return made


@pytest.mark.parametrize("member", [1, 4, 6])
@pytest.mark.parametrize("seed", [None, 1])
def test_a_reset_that_fails_starts_no_episode_and_draws_no_seed(groups, toy_library, member, seed):
    sound = PairedVectorEnv(ToyEnv, 2, 3, library=toy_library)
    sound.reset(seed=0)
    Failing.at = {"reset": member}
    with pytest.raises(EngineError):
        groups.reset(seed=seed, options={"n_plus": [3, 3]})
    assert not groups.active.any()
    assert groups.n_plus.tolist() == [1, 2]
    assert groups.np_random_seed == 0
    with pytest.raises(ResetNeeded, match=r"Groups \[0, 1\]"):
        groups.step(["wait"] * 6)
    _, infos = groups.reset()
    assert infos["condition"].tolist() == (infos["skill"] != "").tolist() == [1, 0, 0, 1, 1, 0]
    drawn = sound.reset()[1]
    assert all(infos[name].tolist() == drawn[name].tolist() for name in ("episode_seed", "task_id"))


def test_a_masked_reset_that_fails_leaves_the_other_groups_alone(groups):
    groups.step(["take key"] * 6)
    before = groups.member_info(0)
    Failing.at, second = {"reset": 2}, {"reset_mask": np.array([False] * 3 + [True] * 3)}
    with pytest.raises(EngineError):
        groups.reset(options=second)
    assert groups.active.tolist() == [True] * 3 + [False] * 3
    assert groups.member_info(0) == before
    with pytest.raises(ResetNeeded, match=r"Groups \[1\]"):
        groups.step({0: "wait"})
    groups.reset(options=second)
    assert groups.step(["wait"] * 6)[-1]["task_id"].tolist()[:3] == [before["task_id"]] * 3


def test_a_restart_that_fails_draws_no_seed(toy_library):
    Failing.at = {}
    failing, sound = (
        PairedVectorEnv(lambda make=make: TimeLimit(make(), 1), 1, 2, library=toy_library, autoreset=True)
        for make in (Failing, ToyEnv)
    )
    for groups in (failing, sound):
        groups.reset(seed=0)
        groups.step(["wait"] * 2)
    Failing.at = {"reset": 2}
    with pytest.raises(EngineError):
        failing.step(["wait"] * 2)
    drawn = [groups.reset()[1]["episode_seed"].tolist() for groups in (failing, sound)]
    assert drawn[0] == drawn[1]


def test_a_step_that_fails_keeps_what_the_others_got(groups):
    groups.step(["take key"] * 6)
    winning = [f"{groups.member_info(member)['task_type']} it" for member in range(6)]
    Failing.at = {"step": 2}
    with pytest.raises(MemberError, match=r"Member 1 of group 0, task .*, raised EngineError: no step") as caught:
        groups.step(winning)
    _, rewards, terminations, _, infos = caught.value.result
    assert rewards.tolist() == [1, 0, 1, 1, 1, 1]
    assert terminations.tolist() == [True, False, True, True, True, True]
    assert infos["won"].tolist() == [1, 0, 1, 1, 1, 1]
    assert groups.episode_returns.tolist() == rewards.tolist()
    assert groups.failed.tolist() == [False, True, False, False, False, False]
    assert not groups.active.any()
    assert isinstance(caught.value.raised[1], EngineError)
    assert caught.value.__cause__ is caught.value.raised[1]
    groups.reset(seed=1)
    assert (groups.active.all(), groups.failed.any()) == (True, False)


class Odd(ToyEnv):
    """Answers without an info when it is asked to."""

    def step(self, action):
        return "odd", 0.0, False, False, None if action == "odd" else {}


def test_an_answer_without_an_info_fails_its_member_alone():
    groups = PairedVectorEnv(Odd, 1, 3)
    groups.reset(seed=0)
    with pytest.raises(MemberError, match="Member 1 of group 0"):
        groups.step(["wait", "odd", "wait"])
    assert (groups.episode_lengths.tolist(), groups.failed.tolist()) == ([1, 0, 1], [False, True, False])


def test_several_failures_are_counted_and_survive_a_pickle(groups):
    with pytest.raises(MemberError, match=r"Member 0 .*\(and 5 others\) raised InvalidActionError") as caught:
        groups.step([3] * 6)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert {type(error) for error in again.raised.values()} == {InvalidActionError}


class Meeting(ToyEnv):
    """Every step waits until another member steps, too."""

    concurrent_steps = 2
    barrier = threading.Barrier(2, timeout=20)

    def step(self, action):
        self.barrier.wait()
        return super().step(action)


def test_members_step_at_once():
    groups, alone = PairedVectorEnv(Meeting, 2, 2), PairedVectorEnv(ToyEnv, 2, 2)
    assert groups.reset(seed=0)[0] == alone.reset(seed=0)[0]
    met, plain = groups.step(["take key"] * 4), alone.step(["take key"] * 4)
    assert met[0] == plain[0]
    assert (met[1] == plain[1]).all()

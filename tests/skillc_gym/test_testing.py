"""The kit passes on sound environments and finds each fault that it is there to find."""

import itertools
import random

import gymnasium
import pytest
from gymnasium.wrappers import TimeLimit
from toy_env import ToyEnv

from skillc_gym.testing import TextEnvContract, check_text_env
from skillc_gym.wrappers import SkillInjection


class TestToy(TextEnvContract):
    def make_env(self):
        return TimeLimit(ToyEnv(), 20)


counter = itertools.count()


def telling(change):
    """An environment whose infos are changed."""

    class Telling(ToyEnv):
        def _info(self):
            return change(super()._info())

    return Telling


Unseeded = telling(lambda info: info | {"luck": next(counter)})
IntWon = telling(lambda info: info | {"won": int(info["won"])})
NoGoal = telling(lambda info: {key: value for key, value in info.items() if key != "goal"})
Flattering = telling(lambda info: info | {"action_valid": True})
Boasting = telling(lambda info: info | {"admissible_commands": [*info["admissible_commands"], "fly"]})


class OwnRandomness(ToyEnv):
    def reset(self, *, seed=None, options=None):
        options = {"task_id": random.choice(self.task_ids)} | (options or {})
        return super().reset(seed=seed, options=options)


class Raising(ToyEnv):
    def step(self, action):
        if action.strip() not in self._commands():
            raise ValueError(action)
        return super().step(action)


class LeakyState(ToyEnv):
    def _state(self):
        return self._now, self.np_random.bit_generator.state

    def _restore_state(self, state):
        self._now, self.np_random.bit_generator.state = state


class Unpicklable(ToyEnv):
    def _state(self):
        return (*super()._state(), lambda: None)


class Unsorted(ToyEnv):
    def __init__(self):
        super().__init__()
        self.task_ids = tuple(reversed(self.task_ids))


class Deaf(ToyEnv):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed, options={k: v for k, v in (options or {}).items() if k == "task_id"})


class ClosesOnce(ToyEnv):
    def close(self):
        del self.task_ids


class Narrow(ToyEnv):
    def __init__(self):
        super().__init__()
        self.observation_space = type(self.observation_space)(20)


class Forgetful(ToyEnv):
    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed, options=options)
        (options or {}).pop("task_id", None)
        return observation, info


@pytest.mark.parametrize(
    ("faulty", "check"),
    [
        (Unseeded, "test_same_seed_same_transcript"),
        (OwnRandomness, "test_unseeded_resets_follow_the_last_seed"),
        (IntWon, "test_infos_hold_the_keys"),
        (NoGoal, "test_infos_hold_the_keys"),
        (Raising, "test_impossible_actions_are_answered"),
        (Flattering, "test_impossible_actions_are_answered"),
        (Boasting, "test_listed_actions_are_possible"),
        (LeakyState, "test_snapshots_are_exact"),
        (Unpicklable, "test_snapshots_are_exact"),
        (Unsorted, "test_task_ids_are_fixed"),
        (Forgetful, "test_task_ids_are_fixed"),
        (Deaf, "test_options_are_validated"),
        (ClosesOnce, "test_closing_twice"),
        (Narrow, "test_spaces_hold_everything"),
        (Narrow, "test_gymnasium_accepts_it"),
    ],
)
def test_faults_are_found(faulty, check):
    kit = TextEnvContract()
    kit.make_env = faulty
    with pytest.raises(Exception):  # noqa: B017, PT011 - an assertion, or the fault's own exception
        getattr(kit, check)()


def test_an_injection_that_shows_its_skill_when_off_is_found(toy_library):
    class Stuck(SkillInjection):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=seed, options={**(options or {}), "skill": True})

    kit = TextEnvContract()
    kit.make_env = lambda: Stuck(ToyEnv(), toy_library)
    with pytest.raises(AssertionError, match="skills off"):
        kit.test_skills_off_change_nothing()


def test_the_kit_closes_what_it_makes():
    opened: list[int] = []

    class Counted(ToyEnv):
        def __init__(self):
            super().__init__()
            opened.append(id(self))

        def close(self):
            if id(self) in opened:
                opened.remove(id(self))

    check_text_env(Counted)
    assert opened == []


def test_walks_may_be_of_one_step():
    class Short(TestToy):
        walk_length = 1

    check_text_env(ToyEnv, Short)


def test_the_failing_check_is_named():
    with pytest.raises(AssertionError, match="test_infos_hold_the_keys: info lacks 'goal'"):
        check_text_env(NoGoal)


def test_render_modes_are_tried_for_registered_environments(toy_id):
    check_text_env(lambda: gymnasium.make(toy_id, per_type=2))

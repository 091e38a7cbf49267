"""The kit passes on sound environments and finds each fault that it is there to find."""

import itertools
import random

import pytest
from gymnasium.wrappers import TimeLimit
from toy_env import ToyEnv, faulty, toys_with

from skillc_gym.spaces import Unicode
from skillc_gym.testing import TextEnvContract, check_text_env
from skillc_gym.wrappers import SkillInjection


class TestToy(TextEnvContract):
    def make_env(self):
        return TimeLimit(ToyEnv(), 20)


counter = itertools.count()


def telling(change):
    return faulty(_info=lambda env: change(ToyEnv._info(env)))


def resetting(change):
    """An environment that takes other options than it is given."""
    return faulty(
        reset=lambda env, *, seed=None, options=None: ToyEnv.reset(env, seed=seed, options=change(env, options or {}))
    )


def leaking(env, state):
    env._now, env.np_random.bit_generator.state = state


def emptying(env, task_id):
    env.__dict__.setdefault("bag", []).clear()
    return ToyEnv._start(env, task_id)


def hoarding(env, action):
    """Says how many actions there were, in a list that copies share."""
    env.bag.append(action)
    observation, *rest = ToyEnv._act(env, action)
    return (f"{observation} {len(env.bag)}", *rest)


def forgetting(env, state):
    """Goes back without one of the things that steps change."""
    ToyEnv._restore_state(env, state)
    env._now["key"] = False


def kit_of(make):
    kit = TextEnvContract()
    kit.make_env = make
    return kit


NO_GOAL = telling(lambda info: {key: value for key, value in info.items() if key != "goal"})
FAULTS = {
    "unseeded": (telling(lambda info: info | {"luck": next(counter)}), "test_same_seed_same_transcript"),
    "randomness of its own": (
        resetting(lambda env, options: {"task_id": random.choice(env.task_ids)} | options),
        "test_unseeded_resets_follow_the_last_seed",
    ),
    "no goal": (NO_GOAL, "test_infos_hold_the_keys"),
    "raising": (
        faulty(_act=lambda env, action: ToyEnv._act(env, action) if action in env._commands() else 1 / 0),
        "test_impossible_actions_are_answered",
    ),
    "flattering": (telling(lambda info: info | {"action_valid": True}), "test_impossible_actions_are_answered"),
    "boasting": (
        telling(lambda info: info | {"admissible_commands": [*info["admissible_commands"], "fly"]}),
        "test_listed_actions_are_possible",
    ),
    "a leaky state": (
        faulty(_state=lambda env: (env._now, env.np_random.bit_generator.state), _restore_state=leaking),
        "test_snapshots_are_exact",
    ),
    "a restore that returns nothing": (
        faulty(restore=lambda env, snapshot: ToyEnv.restore(env, snapshot) and None),
        "test_snapshots_are_exact",
    ),
    "forgetful copies": (faulty(_restore_state=forgetting), "test_copies_go_on_as_their_original"),
    "sharing": (faulty(_start=emptying, _act=hoarding), "test_copies_play_apart"),
    "unsorted": (toys_with(task_ids=ToyEnv().task_ids[::-1]), "test_task_ids_are_fixed"),
    "eating options": (
        resetting(lambda env, options: {"task_id": options.pop("task_id", None)}),
        "test_task_ids_are_fixed",
    ),
    "deaf": (
        resetting(lambda env, options: {key: options[key] for key in options if key == "task_id"}),
        "test_options_are_validated",
    ),
    "closing once": (faulty(close=lambda env: delattr(env, "task_ids")), "test_closing_twice"),
    "narrow": (toys_with(observation_space=Unicode(20)), "test_spaces_hold_everything"),
}


RAISING = {"raising": ZeroDivisionError, "closing once": AttributeError}
"""Faults that come to light as an exception of their own."""


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_found(name):
    make, check_name = FAULTS[name]
    make()
    check = getattr(kit_of(make), check_name)
    with pytest.raises(RAISING.get(name, AssertionError)):
        check()


def test_an_injection_that_shows_its_skill_when_off_is_found(toy_library):
    class Stuck(SkillInjection):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=seed, options={**(options or {}), "skill": True})

    with pytest.raises(AssertionError, match="skills off"):
        kit_of(lambda: Stuck(ToyEnv(), toy_library)).test_skills_off_change_nothing()


class Short(TextEnvContract):
    walk_length = 1


def test_walks_may_be_of_one_step_and_types_hold_what_yaml_quotes_and_all_that_was_made_is_closed():
    opened, quoting = set(), faulty(task_type_of=lambda env, task: f'{ToyEnv.task_type_of(env, task)} "it" \\')

    def make():
        opened.add(env := quoting())
        env.close = lambda: opened.discard(env)
        return env

    check_text_env(make, Short)
    assert opened == set()


def test_the_failing_check_is_named():
    with pytest.raises(AssertionError, match="test_infos_hold_the_keys: info lacks 'goal'"):
        check_text_env(NO_GOAL)

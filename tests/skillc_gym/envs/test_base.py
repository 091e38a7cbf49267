"""What every environment of named tasks gets from its base: options, actions, snapshots, copies, pickles."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from toy_env import GENERATED, SMALL, ToyEnv, faulty, made

from skillc_gym.envs.alfworld.env import ALFWorldEnv
from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.errors import ConfigError, InvalidActionError, UnknownNameError
from skillc_gym.vector import PairedVectorEnv
from skillc_gym.wrappers import (
    ActionFormat,
    ChatPrompt,
    DiscreteCommands,
    PlanShaping,
    ProceduralCurriculum,
    TextHistory,
    TypeStatistics,
    format_reply,
)

WEBSHOP_SWITCHES = ("show_attributes", "escape_markup", "human_goals", "show_attrs")
by_name = pytest.mark.parametrize("spec", GENERATED, ids=lambda spec: spec.name)


def walk(env, info, steps, seed=0):
    rng, seen = np.random.default_rng(seed), []
    for _ in range(steps):
        listed = info["admissible_commands"]
        seen.append(env.step(listed[int(rng.integers(len(listed)))].replace("<query>", "red")))
        info = seen[-1][-1]
        if seen[-1][2]:
            break
    return seen


def copies(env):
    return pickle.loads(pickle.dumps(env)), copy.deepcopy(env), copy.copy(env.unwrapped)


def test_steps_before_a_reset_and_after_a_failed_one_are_errors(toy):
    for act in (lambda: toy.step("wait"), toy.snapshot):
        with pytest.raises(ResetNeeded):
            act()
    toy._start = lambda task_id: 1 / 0
    with pytest.raises(ZeroDivisionError):
        toy.reset(seed=0)
    with pytest.raises(ResetNeeded):
        toy.step("wait")
    with pytest.raises(ConfigError, match=r"Faulty has no task_ids.*set self\.task_ids"):
        faulty(__init__=lambda env: None)().reset(seed=0)


@pytest.mark.parametrize("options", [{"tsak_id": "x"}, {"task_id": 3}, {"task_id": "toy/open/9"}])
def test_options_are_checked_before_anything_is_drawn(options):
    env, other = ToyEnv(), ToyEnv()
    env.reset(seed=0)
    other.reset(seed=0)
    moment = env.snapshot()
    with pytest.raises((ConfigError, UnknownNameError)):
        env.reset(options=options)
    assert env.snapshot() == moment
    assert [env.reset()[0] for _ in range(9)] == [other.reset()[0] for _ in range(9)]


@pytest.mark.parametrize(
    ("kind", "name"), [(ALFWorldEnv, "domain_randomization"), *((WebShopEnv, name) for name in WEBSHOP_SWITCHES)]
)
def test_a_text_is_no_switch(kind, name):
    for value in ("no", "False", 2):
        with pytest.raises(ConfigError, match=f"{name} is true or false, got {value!r}"):
            kind(data="generated", **{name: value})
    assert kind(data="generated", **{name: np.False_}).identify([]) == kind(data="generated", **{name: 0}).identify([])


@by_name
@pytest.mark.parametrize("action", [None, ["look"], np.int64(1)], ids=repr)
def test_what_is_no_text_is_a_mistake_of_the_program(spec, action):
    for env in (made(spec), ActionFormat(made(spec)), ChatPrompt(ActionFormat(made(spec)))):
        env.reset(seed=0)
        with pytest.raises(InvalidActionError, match=f"is a str .* got {type(action).__name__}"):
            env.step(action)
        env.step(np.str_("look"))


@by_name
def test_a_longer_action_than_the_space_has_is_not_admissible(spec):
    env = made(spec)
    _, info = env.reset(seed=0)
    for action in ("search[red]" + " " * env.action_space.max_length, "😀" * 1_000_000):
        assert action not in env.action_space
        _, _, terminated, _, after = env.step(action)
        assert (after["action_valid"], terminated) == (False, False)
        assert after["admissible_commands"] == info["admissible_commands"]
        assert len(env.unwrapped.snapshot().action) == 0


class DicedEnv(ToyEnv):
    """A toy whose parts keep the generator that they were begun with."""

    def _start(self, task_id):
        self.dice = self.np_random
        return super()._start(task_id)


def test_what_keeps_the_generator_draws_from_it_in_a_copy_too():
    env = DicedEnv()
    env.reset(seed=1)
    here = copies(env)
    expected = env.dice.integers(10**6, size=4).tolist()
    assert [other.dice.integers(10**6, size=4).tolist() for other in here] == [expected] * 3


@by_name
def test_environments_pickle_and_copy_in_the_middle_of_an_episode(spec):
    env = made(spec)
    started = env.reset(seed=4)
    assert pickle.loads(pickle.dumps(made(spec))).reset(seed=4) == started
    info = walk(env, env.reset()[1], 2)[-1][-1]
    here = copies(env)
    expected = [outcome[:3] + outcome[4:] for outcome in walk(env, info, 5, seed=1)]
    later = [env.reset()[0] for _ in range(5)]
    for other in here:
        assert [outcome[:3] + outcome[4:] for outcome in walk(other, info, 5, seed=1)] == expected
        assert [other.reset()[0] for _ in range(5)] == later


@pytest.mark.parametrize("wrapper", [PlanShaping, TypeStatistics, DiscreteCommands, ProceduralCurriculum])
def test_views_for_agents_pickle_and_copy(wrapper):
    generator = {"games_per_type": 2, "size": "small", "difficulty": [0.0, 1.0]}
    env = wrapper(gymnasium.make("skillc/ALFWorld-v0", data="generated", generator=generator))
    _, info = env.reset(seed=2)
    action = int(info["action_mask"].argmax()) if wrapper is DiscreteCommands else "look"
    others = copies(env)[:2]
    outcome = repr(env.step(action))
    assert [repr(other.step(action)) for other in others] == [outcome, outcome]


@by_name
def test_groups_pickle_and_copy_in_the_middle(spec):
    wrappers = (TextHistory, ActionFormat, ChatPrompt)
    options = {"data": "generated", "generator": SMALL[spec.name]}
    groups = PairedVectorEnv(spec.id, 2, 2, spec.library, where="info", wrappers=wrappers, **options)
    groups.reset(seed=0, options={"n_plus": [1, 2]})
    groups.step([format_reply("look")] * 4)
    others = pickle.loads(pickle.dumps(groups)), copy.deepcopy(groups)
    expected, after = groups.step([format_reply("inventory")] * 4), groups.reset()
    for other in others:
        assert other.step([format_reply("inventory")] * 4)[0] == expected[0]
        assert other.conditions.tolist() == [1, 0, 1, 1]
        assert other.reset()[0] == after[0]

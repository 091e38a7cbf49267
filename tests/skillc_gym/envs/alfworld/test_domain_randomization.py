"""Things numbered in another order in each episode: upstream's shuffle, seeded by ``reset``."""

import random
import re
from types import SimpleNamespace

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.envs.alfworld.engine.tables import display_names, renamed, renumbered
from skillc_gym.envs.alfworld.engine.world import World
from skillc_gym.envs.alfworld.env import ALFWorldEnv
from skillc_gym.testing import TextEnvContract

GENERATED = {"data": "generated", "generator": {"size": "medium", "games_per_type": 2}}
IDS = st.lists(
    st.from_regex(r"\A((mug|sink|desk)_bar_[1-9]?[0-9](_bar_sinkbasin)?|agent1|mugtype|x_minus_y)\Z"), unique=True
)


@pytest.fixture
def env():
    return ALFWorldEnv(**GENERATED, domain_randomization=True)


@given(IDS, st.integers(0, 2**32))
def test_names_keep_their_words_and_swap_their_numbers(ids, seed):
    names = list(display_names(ids).values())
    anew = renumbered(names, seed)
    assert sorted(anew) == sorted(anew.values()) == sorted(names)
    assert all(old.rpartition(" ")[0] == new.rpartition(" ")[0] for old, new in anew.items())


@given(IDS, st.integers(0, 2**32))
def test_names_are_upstreams(ids, seed):
    misc = pytest.importorskip("alfworld.agents.utils.misc")
    infos = {name: SimpleNamespace(id=name) for name in ids}
    names = display_names(ids)
    shuffled = renumbered(list(names.values()), seed)
    random.seed(seed)
    for shuffle, ours in ((False, names), (True, {name: shuffled[names[name]] for name in ids})):
        theirs = misc.Demangler(game_infos=infos, shuffle=shuffle)
        assert ours == {name: theirs.demangle_alfred_name(name) for name in ids}


@given(st.text("ab1 2_", max_size=30))
def test_commands_are_renamed_as_the_plain_pattern_has_it(text):
    names = {f"{word} {number}": f"{word} {9 - number}" for word in ("a", "b", "ab", "b_a") for number in (1, 2)}
    assert renamed(text, names) == re.sub(r"[^\W\d]\w* \d+", lambda found: names.get(found[0], found[0]), text)
    assert renamed("a1" * 500_000, {}) == "a1" * 500_000, "in linear time"


def test_a_renamed_game_is_the_same_game(env):
    game = env.games.load(env.task_ids[0])
    other = env.games.load(env.task_ids[0], 5)
    assert other is env.games.load(env.task_ids[0], 5)
    assert other is not env.games.load(env.task_ids[0], 6)
    assert sorted(other.receptacles) == sorted(game.receptacles)
    assert sorted(other.objects) == sorted(game.objects)
    assert other.receptacles != game.receptacles
    assert (other.start, other.goal) == (game.start, game.goal)
    for one in (game, other):
        world = World(one)
        world.reset()
        assert all(world.step(command)[1] for command in one.walkthrough)
        assert world.won


class TestContract(TextEnvContract):
    def make_env(self):
        return gym.make("skillc/ALFWorld-v0", **GENERATED, domain_randomization=True)


def test_another_seed_and_another_episode_are_other_numberings_whether_the_task_was_drawn_or_named(env):
    drawn, info = env.reset(seed=3)
    options = {"task_id": info["task_id"]}
    assert env.reset(seed=3, options=options)[0] == drawn
    assert len({env.reset(seed=seed, options=options)[0] for seed in range(8)}) == 8
    assert len({env.reset(options=options)[0] for _ in range(8)}) == 8
    assert {*env.commands} | {*ALFWorldEnv(**GENERATED).all_commands()} < {*env.all_commands()}


def test_a_snapshot_brings_its_numbering_to_an_environment_without_any(env):
    env.reset(seed=2)
    moment, other = env.snapshot(), ALFWorldEnv(**GENERATED)
    assert other.restore(moment)[1] == env.restore(moment)[1]
    assert other.step("look") == env.step("look")
    assert set(other.commands) == set(env.commands)


@pytest.mark.upstream
def test_both_engines_number_alike(folder, quick):
    native = ALFWorldEnv(data=folder, split="valid_seen", domain_randomization=True)
    env = ALFWorldEnv(data=folder, split="valid_seen", domain_randomization=True, engine="textworld")
    task = {"options": {"task_id": env.task_ids[0]}}
    assert env.reset(seed=4, **task) == native.reset(seed=4, **task)
    moment = env.snapshot()
    for command in native._engine.game.walkthrough:
        assert env.step(command) == native.step(command)
    assert env.reset(**task) == native.reset(**task)
    assert env.restore(moment) == native.reset(seed=4, **task)
    env.close()

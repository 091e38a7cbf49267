"""Things numbered in another order in each episode: upstream's shuffle, seeded by ``reset``."""

from __future__ import annotations

import functools
import itertools
import pickle
import random
import re
from collections import Counter

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillc_gym.envs.alfworld.data.games import open_games
from skillc_gym.envs.alfworld.engine import textworld
from skillc_gym.envs.alfworld.engine.tables import display_names, renamed, renumbered
from skillc_gym.envs.alfworld.engine.textworld import UpstreamProcess, UpstreamWorld
from skillc_gym.envs.alfworld.engine.world import World
from skillc_gym.envs.alfworld.env import ALFWorldEnv
from skillc_gym.envs.alfworld.vector import ALFWorldVectorEnv

GENERATED = {"data": "generated", "generator": {"size": "medium", "games_per_type": 2}}
IDS = st.lists(
    st.builds(
        "{}_bar_{}{}".format,
        st.sampled_from(["mug", "sink", "desk"]),
        st.integers(0, 99),
        st.sampled_from(["", "_bar_sinkbasin"]),
    )
    | st.sampled_from(["agent1", "mugtype", "x_minus_y"]),
    unique=True,
)


@pytest.fixture
def env():
    return ALFWorldEnv(**GENERATED, domain_randomization=True)


def words_of(names):
    return Counter(name.rpartition(" ")[0] for name in names)


@given(IDS, st.integers(0, 2**32))
def test_names_keep_their_words_and_swap_their_numbers(ids, seed):
    names = list(display_names(ids).values())
    anew = renumbered(names, seed)
    assert sorted(anew) == sorted(anew.values()) == sorted(names)
    assert all(old.rpartition(" ")[0] == new.rpartition(" ")[0] for old, new in anew.items())


@given(IDS, st.integers(0, 2**32))
@settings(deadline=None)
def test_names_are_upstreams(ids, seed):
    misc = pytest.importorskip("alfworld.agents.utils.misc")

    class Info:
        def __init__(self, name):
            self.id = name

    infos = {name: Info(name) for name in ids}
    random.seed(seed)
    for shuffle in (False, True):
        theirs = misc.Demangler(game_infos=infos, shuffle=shuffle)
        names = display_names(ids)
        ours = (
            renumbered(list(names.values()), seed)
            if shuffle
            else dict(zip(names.values(), names.values(), strict=True))
        )
        assert {name: ours[names[name]] for name in ids} == {name: theirs.demangle_alfred_name(name) for name in ids}


def test_every_numbering_is_equally_likely():
    names = [*display_names(["mug_bar_1", "mug_bar_2", "mug_bar_3", "desk_bar_1", "agent1"]).values()]
    mugs = [name for name in names if name.startswith("mug")]
    counts = Counter(tuple(renumbered(names, seed)[mug] for mug in mugs) for seed in range(6000))
    assert counts.keys() == set(itertools.permutations(mugs))
    # Five standard deviations of a binomial with mean 1000.
    assert all(abs(count - 1000) < 5 * (1000 * 5 / 6) ** 0.5 for count in counts.values())


@given(st.text("ab1 2_", max_size=30))
def test_commands_are_renamed_as_the_plain_pattern_has_it(text):
    names = {f"{word} {number}": f"{word} {9 - number}" for word in ("a", "b", "ab", "b_a") for number in (1, 2)}
    assert renamed(text, names) == re.sub(r"[^\W\d]\w* \d+", lambda found: names.get(found[0], found[0]), text)


def test_renaming_takes_linear_time():
    for text in ("a" * 1_000_000, "a1" * 500_000, "1" * 1_000_000, "a 1 " * 250_000):
        assert renamed(text, {}) == text


def test_a_renamed_game_is_the_same_game(env):
    game = env.games.load(env.task_ids[0])
    other = env.games.load(env.task_ids[0], 5)
    assert other is env.games.load(env.task_ids[0], 5)
    assert other is not env.games.load(env.task_ids[0], 6)
    assert words_of(other.receptacles) == words_of(game.receptacles)
    assert sorted(other.objects) == sorted(game.objects)
    assert other.receptacles != game.receptacles
    assert (other.start, other.goal) == (game.start, game.goal)
    assert sorted(other.commands) != []
    for one in (game, other):
        world = World(one)
        world.reset()
        assert all(world.step(command)[1] for command in one.walkthrough)
        assert world.won


def test_the_seed_alone_decides(env):
    assert env.reset(seed=3) == env.reset(seed=3)
    task_id = env.task_ids[0]
    seen = {env.reset(seed=seed, options={"task_id": task_id})[0] for seed in range(8)}
    assert len(seen) == 8
    again = [env.reset(seed=0, options={"task_id": task_id})[0], env.reset(options={"task_id": task_id})[0]]
    assert again[0] != again[1], "another episode, another numbering"
    assert again == [env.reset(seed=0, options={"task_id": task_id})[0], env.reset(options={"task_id": task_id})[0]]


def test_every_numbering_is_among_all_commands(env):
    plain = ALFWorldEnv(**GENERATED).all_commands()
    assert set(plain) < set(env.all_commands())
    seen = {command for seed in range(20) for command in [env.reset(seed=seed), env.commands][1]}
    assert seen <= set(env.all_commands())
    assert not seen <= set(plain)


def test_snapshots_know_the_numbering(env):
    env.reset(seed=2)
    command = next(
        command for command in env.commands if command.startswith("go to") and command in env._engine.admissible
    )
    env.step(command)
    moment = pickle.loads(pickle.dumps(env.snapshot()))
    expected = env.step("look")
    env.reset(seed=9)
    env.restore(moment)
    assert env.step("look") == expected
    other = ALFWorldEnv(**GENERATED)
    other.restore(moment)
    assert other.step("look") == expected


def test_vectors_number_as_single_environments_do():
    fast = ALFWorldVectorEnv(3, **GENERATED, domain_randomization=True)
    sync = gym.make_vec(
        "skillc/ALFWorld-v0", num_envs=3, vectorization_mode="sync", **GENERATED, domain_randomization=True
    )
    assert fast.reset(seed=5)[0] == sync.reset(seed=5)[0]
    assert fast.reset()[0] == sync.reset()[0]


@pytest.mark.upstream
@pytest.mark.slow
def test_upstream_plays_shuffled_real_games_alike(alfworld_data, upstream):
    games = open_games(alfworld_data, split="valid_unseen")
    for index, task_id in enumerate(games.task_ids[::45]):
        raw, game = games.raw(task_id), games.load(task_id, index)
        theirs, ours = UpstreamWorld(upstream, raw, index), World(game)
        assert theirs.reset() == ours.reset()
        for command in game.walkthrough:
            assert theirs.step(command) == ours.step(command)
            assert (theirs.admissible, theirs.won) == (ours.admissible, ours.won)
        assert ours.won


@pytest.mark.upstream
def test_both_engines_number_alike(folder, upstream, monkeypatch):
    monkeypatch.setattr(textworld, "UpstreamProcess", functools.partial(UpstreamProcess, cached=True))
    native = ALFWorldEnv(data=folder, split="valid_seen", domain_randomization=True)
    env = ALFWorldEnv(data=folder, split="valid_seen", domain_randomization=True, engine="textworld")
    options = {"task_id": env.task_ids[0]}
    assert env.reset(seed=4, options=options) == native.reset(seed=4, options=options)
    moment = env.snapshot()
    assert env.reset(options=options) == native.reset(options=options)
    observation, info = env.restore(moment)
    assert re.search("Your task is to", observation)
    assert (observation, info) == native.reset(seed=4, options=options)
    env.close()

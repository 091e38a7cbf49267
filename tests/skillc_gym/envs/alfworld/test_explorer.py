"""The scripted agent: it wins by what it reads, loses when it leaves the essential step out, and survives odd input."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_game import generate_game

from benchmarks.parity_alfworld import older_wording
from skillc_gym.envs.alfworld.data.game_set import GameSet
from skillc_gym.envs.alfworld.data.games import open_games
from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.engine.world import World
from skillc_gym.envs.alfworld.experts.explorer import Explorer, ParsedGoal, parse_goal
from skillc_gym.envs.alfworld.generate import GeneratedGames
from skillc_gym.envs.alfworld.generate.knobs import SIZES
from skillc_gym.envs.alfworld.tasks import SHORT_NAMES
from skillc_gym.errors import ConfigError

KINDS = tuple(SHORT_NAMES.values())


def play(game: Game, *, steps: int = 50, **options) -> tuple[bool, list[str]]:
    """Lets an explorer play; every command it gives must be admissible."""
    world = World(game)
    observation = world.reset()
    explorer = Explorer(game.task_type, game.goal, **options)
    commands = []
    while not world.won and len(commands) < steps:
        commands.append(explorer.act(observation, world.admissible))
        assert commands[-1] in world.admissible
        observation, _ = world.step(commands[-1])
    return world.won, commands


def parts(kind: str, **options) -> tuple[str, dict]:
    made = generate_game(kind, **options)
    return made.task_id, made.raw


def share_won(games: GameSet, task_ids: Iterable[str], **options) -> float:
    won = [play(games.load(task_id), **options)[0] for task_id in task_ids]
    return sum(won) / len(won)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", [0, None])
def test_wins_generated_games(size: str, seed: int | None):
    games = GeneratedGames("valid_seen", games_per_type=6, size=size)
    assert share_won(games, games.task_ids, seed=seed, steps=150) == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_never_wins_without_the_essential_step(kind: str):
    games = GeneratedGames("train", task_types=[kind], games_per_type=12, size="medium")
    assert share_won(games, games.task_ids, skip_essential=True, steps=60) == 0.0
    assert share_won(games, games.task_ids, steps=100) == 1.0


def test_plays_the_older_wording_too():
    task_id, raw = parts("heat", seed=2)
    won, commands = play(Game.parse(task_id, older_wording(raw)))
    assert won
    assert any(re.fullmatch(r"put \S+ \d+ in/on \S+ \d+", command) for command in commands)


def test_the_same_seed_gives_the_same_play_and_seeds_differ():
    game = Game.parse(*parts("pick", seed=1, size="real"))
    assert play(game, seed=3) == play(game, seed=3)
    assert len({tuple(play(game, seed=seed, steps=100)[1]) for seed in range(8)}) > 1


def test_wins_real_games(alfworld_data):
    games = open_games(alfworld_data, split="valid_unseen")
    sample = games.task_ids[::2]
    assert share_won(games, sample, steps=150) == 1.0
    assert share_won(games, sample[::2], skip_essential=True, steps=60) == 0.0


@pytest.mark.parametrize(
    ("goal", "wish"),
    [
        ("put a hot apple in fridge.", ParsedGoal("apple", "fridge")),
        ("clean some cloth and put it in bathtubbasin.", ParsedGoal("cloth", "bathtubbasin")),
        ("put two cd in safe.", ParsedGoal("cd", "safe")),
        ("look at bowl under the desklamp.", ParsedGoal("bowl", "desklamp")),
        ("Your task is to: put an egg in microwave.", ParsedGoal("egg", "microwave")),
    ],
)
def test_reads_task_sentences(goal: str, wish: ParsedGoal):
    assert parse_goal(goal) == wish


@pytest.mark.parametrize("goal", ["", "buy a red shirt", "put", "look at", "make me a coffee", "puté a mug"])
def test_other_sentences_are_errors(goal: str):
    with pytest.raises(ConfigError, match=re.escape(repr(goal))):
        parse_goal(goal)


@settings(max_examples=120, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    skip=st.booleans(),
    observations=st.lists(st.text(max_size=60) | st.just("You see a mug 1, and a cabinet 2."), min_size=1, max_size=6),
    commands=st.lists(
        st.sampled_from(["look", "go to cabinet 2", "open cabinet 2", "take mug 1 from cabinet 2", "inventory"])
        | st.text(max_size=20),
        min_size=1,
        max_size=6,
    ),
)
def test_odd_input_gets_a_command_not_an_exception(kind, skip, observations, commands):
    goal = "look at mug under the desklamp." if kind == "look" else "put a mug in cabinet."
    explorer = Explorer(kind, goal, skip_essential=skip)
    for observation in observations:
        assert isinstance(explorer.act(observation, commands), str)
        assert explorer.thought


def test_its_mistake_is_to_take_the_wanted_thing_where_it_stands_without_it():
    explorer = Explorer("heat", "put a hot mug in cabinet.", seed=None)
    rng = np.random.default_rng(0)
    start = "Looking quickly around you, you see a cabinet 1, a countertop 1, and a microwave 1."
    going = ["go to cabinet 1", "go to countertop 1", "go to microwave 1"]
    assert explorer.act(start, going) == "go to countertop 1"
    assert explorer.mistake(going, rng) is None
    here = ["go to cabinet 1", "go to microwave 1", "take cup 1 from countertop 1"]
    assert (
        explorer.act("You arrive at countertop 1. On the countertop 1, you see a cup 1.", here) == "go to microwave 1"
    )
    thought, command = explorer.mistake(here, rng)
    assert thought == "take mug for cabinet"
    assert re.fullmatch(r"take mug [123] from countertop 1", command)
    assert explorer.mistake([f"take mug {n} from countertop 1" for n in (1, 2, 3)], rng) is None

from __future__ import annotations

from collections.abc import Iterable

import gymnasium
import pytest

from skill_library import load_library
from skillc_gym.envs.alfworld.experts.planner import shortest_plan
from skillc_gym.envs.registry import env_spec
from skillc_lab.cli.main import main as skillc
from skillc_lab.commands.play import Game, in_columns, play


def started(name: str, **options: object) -> Game:
    """A game of the first seed; what it tells is kept as ``said``."""
    said: list[str] = []
    spec = env_spec(name)
    env = gymnasium.make(spec.id, data="generated", render_mode="ansi", max_episode_steps=100, **options)
    game = Game(env, spec, said.append, skills=load_library(spec.library))
    game.said = said
    game.start(seed=0)
    return game


@pytest.fixture
def game():
    return started("alfworld", split="valid_unseen")


@pytest.fixture
def shop():
    return started("webshop", split="test", generator={"size": 200})


def type_in(game: Game, lines: Iterable[str]) -> None:
    left = iter(lines)

    def ask(_: str) -> str:
        try:
            return next(left)
        except StopIteration:
            raise EOFError from None

    play(game, ask)


def test_a_task_can_be_won_and_the_win_taken_back(game):
    plan = shortest_plan(game.env)
    type_in(game, plan)
    assert f"Won in {len(plan)} commands" in game.said[-1]
    type_in(game, [":undo"])
    assert game.said[-1].startswith("Took back 1.")
    assert game.info["won"] == 0.0
    type_in(game, [plan[-1]])
    assert "Won" in game.said[-1]


def test_undo_knows_what_was_seen_before_and_goes_no_further_than_the_start(game):
    place = next(name for name in game.info["admissible_commands"] if name.startswith("go to ")).removeprefix("go to ")
    first = game.info["admissible_commands"]
    type_in(game, [f"go to {place}", "look", ":view", ":undo", ":view"])
    assert game.said[-1] == game.said[-3]
    assert f"@ {place}" in game.said[-1]
    type_in(game, [":undo 9"])
    assert game.info["admissible_commands"] == first
    type_in(game, [":undo"])
    assert game.said[-1] == "Nothing to take back."


def test_going_back_leads_into_the_same_house():
    game = started("alfworld", split="valid_unseen", domain_randomization=True)
    plan = shortest_plan(game.env)
    type_in(game, ["look", ":undo"])
    assert shortest_plan(game.env) == plan


def test_the_skill_is_shown_and_hidden(game):
    type_in(game, [":skill", ":new", ":skill", ":new"])
    shown, before_task, _, hidden, new = game.said[1:]
    assert shown.startswith("General skill")
    assert before_task.startswith("General skill")
    assert hidden == "The skill is hidden now."
    assert new.startswith("[valid_unseen/")


def test_commands_stand_in_columns_read_downwards():
    columns = in_columns(["go", "look", "open", "take", "use"], width=14).splitlines()
    assert columns == ["go     take", "look   use", "open"]
    assert in_columns(["one long name"], width=5) == "one long name"


def test_the_players_words_show_what_they_say(game):
    type_in(game, [":commands", ":view", ":skill", ":plan", ":nonsense", ":new", ":quit", "look"])
    commands, house, skill, plan, help_text, _, new = game.said[1:]
    assert "inventory" in commands
    assert "hand: empty" in house
    assert "Skill:" in skill
    assert plan.splitlines()[0].removeprefix(" 1. ") in commands
    assert ":undo" in help_text
    assert new.startswith("[valid_unseen/")


def test_a_shop_is_played_alike(shop):
    assert "search[<query>]" in shop.possible
    type_in(shop, [":skill", ":commands", ":plan"])
    skill, commands, plan = shop.said[1:]
    assert skill == load_library("webshop").for_task(shop.info["task_type"]).text
    assert commands == "search[<query>]"
    steps = [line.split(". ", 1)[1] for line in plan.splitlines()[1:]]
    assert steps[-1].lower() == "click[buy now]"
    type_in(shop, steps)
    assert any(word in shop.said[-1] for word in ("Won in", "with a score of", "lost"))
    type_in(shop, ["click[buy now]"])
    assert "The task is over." in shop.said[-1]
    type_in(shop, [":undo"])
    assert "Took back 1." in shop.said[-1]


def test_it_runs_as_a_command(monkeypatch, capsys):
    lines = iter(["look", ":quit"])
    monkeypatch.setattr("builtins.input", lambda _: next(lines))
    assert skillc(["play", "--seed", "0"]) == 0
    assert "Your task is to:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--task-type", "fly"], "task type"),
        (["env.foo=1"], "cannot be made from"),
        (["--task-id", "nothing"], "task id"),
    ],
)
def test_bad_input_is_named(words, says, capsys):
    assert skillc(["play", *words]) == 2
    assert says in capsys.readouterr().err

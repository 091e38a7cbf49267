from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import gymnasium
import pytest

import skillc_gym  # noqa: F401 - registers the environments
from scripts.play import Game, in_columns, main, play
from skillc_gym.envs.alfworld.experts.planner import shortest_plan

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def game():
    said: list[str] = []
    env = gymnasium.make("skillc/ALFWorld-v0", data="generated", split="valid_unseen", render_mode="ansi")
    game = Game(env, said.append)
    game.said = said
    game.start(seed=0)
    return game


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


def test_undo_goes_back_to_the_start_and_no_further(game):
    first = game.info["admissible_commands"]
    type_in(game, ["look", first[0], ":undo 9"])
    assert game.info["admissible_commands"] == first
    type_in(game, [":undo"])
    assert game.said[-1] == "Nothing to take back."


def test_what_was_seen_before_is_known_after_an_undo(game):
    place = next(name for name in game.info["admissible_commands"] if name.startswith("go to ")).removeprefix("go to ")
    type_in(game, [f"go to {place}", "look", ":house", ":undo", ":house"])
    assert game.said[-1] == game.said[-3]
    assert f"@ {place}" in game.said[-1]


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
    type_in(game, [":commands", ":house", ":skill", ":plan", ":nonsense", ":new", ":quit", "look"])
    commands, house, skill, plan, help_text, _, new = game.said[1:]
    assert "inventory" in commands
    assert "hand: empty" in house
    assert "Skill:" in skill
    assert plan.splitlines()[0].removeprefix(" 1. ") in commands
    assert ":undo" in help_text
    assert new.startswith("[valid_unseen/")


def test_it_runs_as_a_command_and_names_bad_input(capsys):
    words = [sys.executable, "-m", "scripts.play", "--seed", "0"]
    done = subprocess.run(words, cwd=ROOT, input="look\n:quit\n", capture_output=True, text=True, check=True)
    assert "Your task is to:" in done.stdout
    assert main(["--task-type", "fly"]) == 2
    assert "task type" in capsys.readouterr().err

"""Play a task in the terminal: ``python -m scripts.play``, or ``python -m scripts.play --data FOLDER --task-id ID``.

TAB completes commands. Words that begin with ":" are for the player, not for the game:

  :commands   what is possible now          :undo [N]   take back one command, or N
  :house      the house as you know it      :plan       the shortest plan from here
  :skill      show the skill, or hide it    :new        another task
  :help       this list                     :quit       leave

While the skill is shown, it stands before each new task, as an agent with the skill reads it.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium

import skillc_gym  # noqa: F401 - registers the environments
from skill_library import load_library
from skillc_gym.envs.alfworld.experts.planner import shortest_plan
from skillc_gym.errors import SkillCError

Ask = Callable[[str], str]
Tell = Callable[[str], None]


class Game:
    """One player at one environment.

    Args:
        env: ``skillc/ALFWorld-v0`` with render_mode "ansi".
        tell: Receives what is shown.
        shows_skill: Whether the skill stands before each task.
    """

    def __init__(self, env: gymnasium.Env[str, str], tell: Tell, *, shows_skill: bool = False) -> None:
        self.env = env
        self.tell = tell
        self.core: Any = env.unwrapped
        self.skills = load_library("alfworld")
        self.info: dict[str, Any] = {}
        self.shows_skill = shows_skill
        self._commands: list[str] = []

    def start(self, task_id: str | None = None, seed: int | None = None) -> None:
        """Begins a task."""
        observation, self.info = self.env.reset(seed=seed, options={"task_id": task_id} if task_id else None)
        self._commands = []
        if self.shows_skill:
            self.tell(f"{self._skill()}\n")
        self.tell(f"[{self.info['task_id']}]\n{observation}")

    def act(self, command: str) -> None:
        """Carries out a command of the game."""
        self._commands.append(command)
        observation, _, won, cut, self.info = self.env.step(command)
        self.tell(observation)
        if won:
            self.tell(f"Won in {len(self._commands)} commands. :new for another task, :undo to go back.")
        elif cut:
            self.tell("The step limit is reached; the task counts as lost. :new for another one.")

    def undo(self, words: Sequence[str]) -> None:
        """Takes back commands: plays the others again, so that the house is known as it was."""
        if not self._commands:
            self.tell("Nothing to take back.")
            return
        count = min(int(words[0]) if words and words[0].isdigit() else 1, len(self._commands))
        kept, self._commands = self._commands[: len(self._commands) - count], []
        observation, self.info = self.env.reset(options={"task_id": self.info["task_id"]})
        for command in kept:
            self._commands.append(command)
            observation, *_, self.info = self.env.step(command)
        self.tell(f"Took back {count}.\n{observation}")

    def word(self, line: str) -> bool:
        """Carries out one of the player's own words; returns whether to go on."""
        name, *rest = line[1:].split() or [""]
        if name in ("quit", "q"):
            return False
        actions: dict[str, Callable[[], None]] = {
            "commands": lambda: self.tell(in_columns(self.info["admissible_commands"])),
            "house": lambda: self.tell(str(self.env.render()).split("\n\n", 1)[0]),
            "skill": self._toggle_skill,
            "plan": self._plan,
            "new": self.start,
            "undo": lambda: self.undo(rest),
        }
        actions.get(name, lambda: self.tell(__doc__ or ""))()
        return True

    def _plan(self) -> None:
        plan = shortest_plan(self.env)
        self.tell("\n".join(f"{n:2}. {command}" for n, command in enumerate(plan, 1)) or "The goal holds already.")

    def _skill(self) -> str:
        return self.skills.for_task(self.info["task_type"]).text

    def _toggle_skill(self) -> None:
        self.shows_skill = not self.shows_skill
        self.tell(self._skill() if self.shows_skill else "The skill is hidden now.")


def in_columns(names: Sequence[str], width: int = 0) -> str:
    """Names in as many columns as a terminal has room for, read downwards."""
    width = width or shutil.get_terminal_size().columns
    room = max(map(len, names), default=0) + 3
    rows = -(-len(names) // max(1, width // room))
    return "\n".join("".join(name.ljust(room) for name in names[row::rows]).rstrip() for row in range(rows))


def show(text: str) -> None:
    """Prints text, long lines broken between words."""
    width = shutil.get_terminal_size().columns
    for line in text.splitlines():
        print(textwrap.fill(line, width, break_on_hyphens=False) if len(line) > width else line)


def play(game: Game, ask: Ask) -> None:
    """Reads and carries out lines until the player leaves.

    Args:
        game: A started game.
        ask: Gives the next line, or raises EOFError.
    """
    while True:
        try:
            line = ask("> ").strip()
        except (EOFError, KeyboardInterrupt):
            return
        if line.startswith(":"):
            if not game.word(line):
                return
        elif line:
            game.act(line)


def _complete_with(game: Game) -> None:
    """TAB completes what is possible now, where the terminal can."""
    try:
        import readline
    except ImportError:
        return

    def complete(text: str, state: int) -> str | None:
        words = [":commands", ":help", ":house", ":new", ":plan", ":quit", ":skill", ":undo"]
        known = [name for name in [*game.info["admissible_commands"], *words] if name.startswith(text)]
        return known[state] if state < len(known) else None

    readline.set_completer_delims("")
    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="generated", help="'generated' (default), or a folder or archive of games")
    parser.add_argument("--split", default="valid_unseen")
    parser.add_argument("--task-type", help="only this type: pick, look, clean, heat, cool, pick2")
    parser.add_argument("--task-id", help="this task")
    parser.add_argument("--skill", action="store_true", help="show the skill before each task")
    parser.add_argument("--seed", type=int, help="seed of the choice of tasks")
    args = parser.parse_args(argv)
    try:
        env = gymnasium.make(
            "skillc/ALFWorld-v0",
            data=args.data,
            split=args.split,
            task_types=args.task_type,
            render_mode="ansi",
            max_episode_steps=10_000,
            disable_env_checker=True,
        )
        game = Game(env, show, shows_skill=args.skill)
        game.start(args.task_id, args.seed)
    except SkillCError as error:
        print(f"play: {error}", file=sys.stderr)
        return 2
    print("\n:help lists what a player can ask.")
    _complete_with(game)
    play(game, input)
    return 0


if __name__ == "__main__":
    sys.exit(main())

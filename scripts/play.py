"""Play a task in the terminal: ``python -m scripts.play``, or ``python -m scripts.play --data FOLDER --task-id ID``.

TAB completes commands. Words that begin with ":" are for the player, not for the game:

  :commands   what is possible now          :undo [N]   take back one command, or N
  :house      the house as you know it      :plan       the shortest plan from here
  :skill      show or hide the skill        :new        another task
  :quit       leave
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium

import skillc_gym  # noqa: F401 - registers the environments
from skill_library import load_library
from skillc_gym.alfworld.planner import shortest_plan
from skillc_gym.errors import SkillCError

Ask = Callable[[str], str]
Tell = Callable[[str], None]


class Game:
    """One player at one environment.

    Args:
        env: ``skillc/ALFWorld-v0`` with render_mode "ansi".
        tell: Receives what is shown.
    """

    def __init__(self, env: gymnasium.Env[str, str], tell: Tell) -> None:
        self.env = env
        self.tell = tell
        self.core: Any = env.unwrapped
        self.skills = load_library("alfworld")
        self.info: dict[str, Any] = {}
        self._moments: list[Any] = []

    def start(self, task_id: str | None = None, seed: int | None = None) -> None:
        """Begins a task."""
        observation, self.info = self.env.reset(seed=seed, options={"task_id": task_id} if task_id else None)
        self._moments = []
        self.tell(f"[{self.info['task_id']}]\n{observation}")

    def act(self, command: str) -> None:
        """Carries out a command of the game."""
        self._moments.append(self.core.snapshot())
        observation, _, won, cut, self.info = self.env.step(command)
        self.tell(observation)
        if won:
            self.tell(f"Won in {len(self._moments)} commands. :new for another task, :undo to go back.")
        elif cut:
            self.tell("The step limit is reached; the task counts as lost. :new for another one.")

    def undo(self, words: Sequence[str]) -> None:
        """Takes back commands."""
        count = int(words[0]) if words and words[0].isdigit() else 1
        if not self._moments:
            self.tell("Nothing to take back.")
            return
        count = min(count, len(self._moments))
        moment = self._moments[-count]
        del self._moments[-count:]
        observation, self.info = self.core.restore(moment)
        self.tell(f"Took back {count}.\n{observation}")

    def word(self, line: str) -> bool:
        """Carries out one of the player's own words; returns whether to go on."""
        name, *rest = line[1:].split() or [""]
        if name in ("quit", "q"):
            return False
        actions: dict[str, Callable[[], None]] = {
            "commands": lambda: self.tell("\n".join(self.info["admissible_commands"])),
            "house": lambda: self.tell(str(self.env.render())),
            "skill": self._skill,
            "plan": lambda: self.tell("\n".join(shortest_plan(self.env)) or "The goal holds already."),
            "new": self.start,
            "undo": lambda: self.undo(rest),
        }
        actions.get(name, lambda: self.tell(__doc__ or ""))()
        return True

    def _skill(self) -> None:
        self.tell(self.skills.for_task(self.info["task_type"]).text)


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
        words = [":commands", ":house", ":new", ":plan", ":quit", ":skill", ":undo"]
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
        game = Game(env, print)
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

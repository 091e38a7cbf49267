"""``skillc play``."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium

import skillc_gym  # noqa: F401 - registers the environments
from skill_library import load_library
from skillc_gym.envs.registry import EnvSpec, env_spec, env_specs
from skillc_gym.errors import ConfigError, unknown_name
from skillc_lab.commands.cli.command import Command
from skillc_lab.commands.cli.console import say
from skillc_lab.commands.play import WORDS, Game, play

__all__ = ["COMMAND", "PlayOptions"]


@dataclass(frozen=True)
class PlayOptions:
    """Play a task in the terminal, in any environment; :help lists what a player can ask.

    Example: skillc play --env webshop --skill
    """

    env: str = "alfworld"
    """Environment: a short name (alfworld, webshop) or a registered id."""
    data: str | None = None
    """"generated", or the environment's folder or archive; none takes generated tasks where there are some."""
    split: str | None = None
    """Split of the tasks; none takes held-out ones where the environment names some."""
    task_type: str | None = None
    """Only this type of task."""
    task_id: str | None = None
    """This task."""
    skill: bool = False
    """Show the skill before each task."""
    library: str | None = None
    """Skill library by name or path; the environment's own if none."""
    seed: int | None = None
    """Seed of the choice of tasks."""
    env_options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the environment; singly as env.generator='{"size": "small"}'."""

    def make(self, spec: EnvSpec) -> gymnasium.Env[Any, Any]:
        """Makes the environment.

        Raises:
            UnknownNameError: If there is none of that name.
            ConfigError: If it does not take the options.
        """
        known = spec.warm_start
        wanted = {
            "data": self.data or ("generated" if known else None),
            "split": self.split or (known.demo.held_out_splits[0] if known else None),
            "task_types": self.task_type,
        }
        given = {name: value for name, value in wanted.items() if value is not None} | dict(self.env_options)
        plain = {"render_mode": "ansi", "max_episode_steps": 10_000, "disable_env_checker": True}
        try:
            return gymnasium.make(spec.id, **plain, **given)  # type: ignore[arg-type]
        except gymnasium.error.UnregisteredEnv as error:
            raise unknown_name("environment", self.env, [found.name for found in env_specs()]) from error
        except TypeError as error:
            raise ConfigError(f"{spec.id} cannot be made from {given}: {error}") from error


def run(options: PlayOptions) -> int:
    """Runs the command."""
    spec = env_spec(options.env)
    library = options.library or spec.library
    skills = load_library(library) if library else None
    game = Game(options.make(spec), spec, _show, skills=skills, shows_skill=options.skill)
    game.start(options.task_id, options.seed)
    say("\n:help lists what a player can ask.")
    _complete_with(game)
    play(game, input)
    return 0


def _show(text: str) -> None:
    """Prints text, long lines broken between words."""
    width = shutil.get_terminal_size().columns
    for line in text.splitlines():
        say(textwrap.fill(line, width, break_on_hyphens=False) if len(line) > width else line)


def _complete_with(game: Game) -> None:
    """TAB completes what is possible now, where the terminal can."""
    try:
        import readline
    except ImportError:
        return

    def complete(text: str, state: int) -> str | None:
        known = [name for name in [*game.possible, *WORDS] if name.startswith(text)]
        return known[state] if state < len(known) else None

    readline.set_completer_delims("")
    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")


COMMAND = Command(PlayOptions, run)

"""``skillc play``: play a task in the terminal."""

from __future__ import annotations

import secrets
import shutil
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium

from skill_library import SkillLibrary, load_library
from skillc_gym.envs.registry import EnvSpec, env_spec, make_env
from skillc_gym.envs.warm_start import WarmStart
from skillc_gym.errors import ConfigError, InvalidGameError, SkillCError
from skillc_gym.lazy import load_reference
from skillc_lab.cli.command import Command, say
from trainers.base import Natural

HELP = """TAB completes commands. Words that begin with ":" are for the player, not for the environment:

  :commands   what is possible now          :undo [N]   take back one command, or N
  :view       draw what is known by now     :plan       what an expert would do
  :skill      show the skill, or hide it    :new        another task
  :help       this list                     :quit       leave

While the skill is shown, it stands before each new task, as an agent with the skill reads it."""
WORDS = (":commands", ":help", ":new", ":plan", ":quit", ":skill", ":undo", ":view")

Ask = Callable[[str], str]
Tell = Callable[[str], None]


@dataclass
class Game:
    """One player at one environment."""

    env: gymnasium.Env[str, str]
    """A text environment with render_mode "ansi"."""
    spec: EnvSpec
    tell: Tell
    """Receives what is shown."""
    skills: SkillLibrary | None = None
    shows_skill: bool = False
    """Whether the skill stands before each task."""
    info: dict[str, Any] = field(default_factory=dict)
    _task_id: str | None = None
    _seed: int = 0
    _commands: list[str] = field(default_factory=list)
    _over: bool = False

    @property
    def possible(self) -> list[str]:
        """The commands that are possible now."""
        return list(self.info.get("admissible_commands") or self.info.get("available_actions") or ())

    def start(self, task_id: str | None = None, seed: int | None = None) -> None:
        """Begins a task."""
        self._task_id, self._seed = task_id, secrets.randbelow(2**31) if seed is None else seed
        observation = self._reset()
        if "task_id" not in self.info:
            raise ConfigError(
                f"{self.spec.id} is no environment of text tasks (its infos have no task_id), and nothing can be typed "
                "to it; `skillc environments` lists some that can be played."
            )
        if self.shows_skill:
            self.tell(f"{self._skill()}\n")
        self.tell(f"[{self.info['task_id']}]\n{observation}")

    def _reset(self) -> str:
        """The task from its start; the seed decides the task, and what else is drawn."""
        named = {"task_id": self._task_id} if self._task_id else None
        observation, self.info = self.env.reset(seed=self._seed, options=named)
        self._commands, self._over = [], False
        return observation

    def act(self, command: str) -> None:
        """Carries out a command of the environment."""
        if self._over:
            self.tell("The task is over. :new for another one, :undo to go back.")
            return
        observation, over = self._step(command)
        self.tell(observation)
        if not self.info["action_valid"]:
            self.tell(f"({command!r} was not possible; :commands lists what is.)")
        if over:
            self.tell(self._ending())

    def _step(self, command: str) -> tuple[str, bool]:
        self._commands.append(command)
        observation, _, terminated, truncated, self.info = self.env.step(command)
        self._over = terminated or truncated
        return observation, self._over

    def _ending(self) -> str:
        score = f"with a score of {self.info['task_score']:.2f}" if self.info.get("task_score") else "lost"
        count = len(self._commands)
        how = f"Won in {count} commands." if self.info["won"] else f"The task is over after {count} commands, {score}."
        return f"{how} :new for another one, :undo to go back."

    def undo(self, words: Sequence[str]) -> None:
        """Takes back commands: plays the others again, so that what is known is as it was."""
        if not self._commands:
            self.tell("Nothing to take back.")
            return
        # Python reads no number of thousands of digits.
        count = min(int(words[0][:9]) if words and words[0].isdecimal() else 1, len(self._commands))
        kept = self._commands[: len(self._commands) - count]
        observation = self._reset()
        for command in kept:
            observation, _ = self._step(command)
        self.tell(f"Took back {count}.\n{observation}")

    def word(self, line: str) -> bool:
        """Carries out one of the player's own words; returns whether to go on."""
        name, *rest = line[1:].split() or [""]
        if name in ("quit", "q"):
            return False
        actions: dict[str, Callable[[], None]] = {
            "commands": lambda: self.tell(in_columns(self.possible)),
            "view": lambda: self.tell(str(self.env.render()).split("\n\n", 1)[0]),
            "skill": self._toggle_skill,
            "plan": self._plan,
            "new": lambda: self.start(seed=self._seed + 1),
            "undo": lambda: self.undo(rest),
        }
        actions.get(name, lambda: self.tell(HELP))()
        return True

    def _plan(self) -> None:
        if self.spec.planner:
            try:
                plan = load_reference(self.spec.planner)(self.env)
            except InvalidGameError as error:
                self.tell(str(error))
            else:
                self.tell(_numbered(plan) or "The goal holds already.")
        elif self.spec.warm_start:
            self.tell(f"From the start of the task:\n{_numbered(self._shown(self.spec.warm_start))}")
        else:
            self.tell("Nobody has shown how this environment is played.")

    def _shown(self, start: WarmStart) -> list[str]:
        """Commands of the environment's expert from the start of the task; the player's own stay as they are."""
        played = list(self._commands)
        observation = self._reset()
        expert, over = start.demonstrator(self.info, False), False
        while not over:
            observation, over = self._step(expert.act(observation, self.possible))
        found = list(self._commands)
        self._reset()
        for command in played:
            self._step(command)
        return found

    def _skill(self) -> str:
        if self.skills is None:
            return "This environment has no skills."
        try:
            return self.skills.for_task(self.info["task_type"]).text
        except SkillCError as error:
            return str(error)

    def _toggle_skill(self) -> None:
        self.shows_skill = not self.shows_skill
        self.tell(self._skill() if self.shows_skill else "The skill is hidden now.")


def _numbered(commands: Sequence[str]) -> str:
    return "\n".join(f"{n:2}. {command}" for n, command in enumerate(commands, 1))


def in_columns(names: Sequence[str]) -> str:
    """Names in as many columns as the terminal has room for, read downwards."""
    width = shutil.get_terminal_size().columns
    room = max(map(len, names), default=0) + 3
    rows = -(-len(names) // max(1, width // room))
    return "\n".join("".join(name.ljust(room) for name in names[row::rows]).rstrip() for row in range(rows))


def play(game: Game, ask: Ask) -> None:
    """Carries out the lines that are asked for, until the player of a started game leaves or EOFError is raised."""
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


# The command -----------------------------------------------------------------------------------------------


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
    seed: Natural | None = None
    """Seed of the choice of tasks."""
    env_options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the environment; singly as env.generator='{"size": "small"}'."""

    def make(self, spec: EnvSpec) -> gymnasium.Env[Any, Any]:
        """Makes the environment; an error in words where there is none, or it does not take the options."""
        known = spec.warm_start
        wanted = {
            "data": self.data or ("generated" if known else None),
            "split": self.split or spec.held_out_split or None,
            "task_types": self.task_type,
        }
        given = {name: value for name, value in wanted.items() if value is not None} | dict(self.env_options)
        plain: dict[str, Any] = {"render_mode": "ansi", "max_episode_steps": 10_000, "disable_env_checker": True}
        return make_env(spec.id, **{**plain, **given})


def _run(options: PlayOptions) -> int:
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


COMMAND = Command(PlayOptions, _run)

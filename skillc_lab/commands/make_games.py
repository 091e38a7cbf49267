"""``skillc tools make-games``: write generated ALFWorld games in upstream's layout.

``skillc tools make-demonstrations``: write demonstrations of an expert as JSON lines.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import gymnasium

from skillc_gym.chat import ChatFormat
from skillc_gym.envs.alfworld import SHORT_NAMES, SPLITS
from skillc_gym.envs.alfworld.data import GAME_FILE
from skillc_gym.envs.alfworld.experts import Explorer, shortest_plan
from skillc_gym.envs.alfworld.generate import (
    SCENES,
    GeneratedGames,
    proved_by_planner,
    proved_by_upstream,
    skill_of_game,
)
from skillc_gym.errors import ConfigError
from skillc_gym.files import replace_file, storing
from skillc_gym.wrappers import ActionFormat, ChatPrompt, SkillInjection
from skillc_lab.agents.shown import expert_replies
from skillc_lab.cli.command import Command, complain, count_line, require_empty, say
from trainers.base import Count, Natural
from trainers.tracking import json_line

_LAYOUT = "json_2.1.1"
"""Upstream's folder of games, in the one that is named."""


@dataclass(frozen=True)
class Family:
    """Which family of games is generated."""

    seed: int = 0
    """Seed of the family of games."""
    games_per_type: int = 50
    """Games of each type in each split."""
    size: str = "small"
    """Size of the houses: small, medium, large or real."""
    scenes: int = SCENES
    """Layouts of each kind of room outside valid_unseen."""
    mix: tuple[str, ...] | None = None
    """Weights of the task types: "real", or such as heat=2 pick=1."""


@dataclass(frozen=True)
class Knobs:
    """How difficult the games are; what is not named is the size's."""

    difficulty: tuple[float, ...] | None = None
    """0 to 1, one or several: sets all knobs at once."""
    receptacles: tuple[int, ...] | None = None
    """How many, or the lowest and the highest number."""
    objects: tuple[int, ...] | None = None
    """How many, or the lowest and the highest number."""
    closed: float | None = None
    """Share of doors among what may have one, 0 to 1."""
    hidden: float | None = None
    """Chance that a wanted object begins behind a door, 0 to 1."""
    spares: int | None = None
    """Further objects of the wanted kind."""
    rooms: tuple[str, ...] | None = None
    """Kinds of room that tasks are set in."""
    convention: int | Literal["drawn"] | None = None
    """Tasks do not say where things belong: a number fixes it for each type, "drawn" draws it for each game."""


@dataclass(frozen=True)
class MakeGamesOptions:
    """Write generated ALFWorld games in upstream's layout; the folder is then played here and with upstream itself."""

    family: Family
    knobs: Knobs
    out: Path
    """Folder to write, new or empty."""
    splits: tuple[str, ...] = SPLITS
    """Splits to write."""
    task_types: tuple[str, ...] = tuple(SHORT_NAMES.values())
    """Task types, by full or short name."""
    prove: bool = False
    """Have every game won by the planner."""
    prove_upstream: int = 0
    """Games of each split to have won in upstream too."""

    def generator(self) -> dict[str, Any]:
        """The generator's options, as ``generator=`` takes them."""
        given = {name: _few(value) for name, value in vars(self.knobs).items()}
        if self.knobs.rooms is not None:
            given["rooms"] = list(self.knobs.rooms)
        chosen = {**vars(self.family), **given, "mix": _mix(self.family.mix)}
        return {name: value for name, value in chosen.items() if value is not None}


def _few(value: Any) -> Any:
    """One number as itself, several as a list."""
    if not isinstance(value, tuple):
        return value
    return value[0] if len(value) == 1 else list(value)


def _mix(words: Sequence[str] | None) -> dict[str, float] | str | None:
    if words is None or (len(words) == 1 and "=" not in words[0]):
        return words[0] if words else None
    try:
        return {name: float(weight) for name, weight in (word.split("=") for word in words)}
    except ValueError as error:
        raise ConfigError(f"--mix takes 'real' or weights such as heat=2 pick=1; got {' '.join(words)}") from error


def _write(sets: Mapping[str, GeneratedGames], out: Path) -> None:
    """Writes the games of every split, or leaves nothing of them."""
    try:
        with storing(out):
            for split, games in sets.items():
                _write_games(games, out, split)
    except BaseException:
        shutil.rmtree(out / _LAYOUT, ignore_errors=True)
        raise


def _write_games(games: GeneratedGames, out: Path, split: str) -> None:
    """Writes every game of a set to ``<out>/json_2.1.1/<split>/<task folder>/<trial folder>/game.tw-pddl``."""
    for done, task_id in enumerate(games.task_ids, start=1):
        folder = out / _LAYOUT / task_id
        folder.mkdir(parents=True)
        (folder / GAME_FILE).write_text(json.dumps(games.raw(task_id)), encoding="utf-8")
        (folder / "traj_data.json").write_text(json.dumps(_described(task_id)), encoding="utf-8")
        count_line(split, done, len(games.task_ids))


def _described(task_id: str) -> dict[str, Any]:
    """Upstream looks for games beside a file of this: it filters by the type, and its expert reads the rest."""
    kind, thing, _, place, _ = task_id.split("/")[1].split("-")
    lamp = kind == "look_at_obj_in_light"
    wanted = {"object_target": thing, "parent_target": "" if lamp else place, "toggle_target": place if lamp else ""}
    return {"task_type": kind, "pddl_params": {**wanted, "mrecep_target": "", "object_sliced": False}}


def _report(games: GeneratedGames, options: MakeGamesOptions) -> dict[str, Any]:
    found: dict[str, Any] = {"games": len(games.task_ids)}
    if options.prove:
        found["won_by_planner"] = len(proved_by_planner(games))
    if options.prove_upstream:
        found["won_in_upstream"] = proved_by_upstream(games, options.prove_upstream)
    return found


def _make(options: MakeGamesOptions) -> int:
    require_empty(options.out)
    if not options.splits:
        raise ConfigError(f"--splits names no split; name some of {', '.join(SPLITS)}, or leave it out for all.")
    # Nothing is written before everything has been generated and proved.
    sets = {split: GeneratedGames(split, options.task_types, **options.generator()) for split in options.splits}
    proofs = {split: _report(games, options) for split, games in sets.items()}
    _write(sets, options.out)
    say(json.dumps(proofs, indent=2))
    return 0


# Demonstrations -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MakeDemonstrationsOptions:
    """Write demonstrations of an ALFWorld expert as JSON lines.

    Each line has the columns task_id, task_type, condition (1: the skill was in the prompt), won and messages (a chat,
    as chat templates and datasets.load_dataset("json", ...) take it).
    """

    out: Path
    """File to write."""
    data: str = "generated"
    """"generated", or a folder or archive of games."""
    split: str = "train"
    """Split of the tasks."""
    task_types: tuple[str, ...] | None = None
    """Only these types."""
    count: Count | None = None
    """Only the first so many tasks."""
    expert: Literal["explorer", "planner"] = "explorer"
    """Who plays: one that searches as a person would, or one that knows where everything is."""
    skills: Literal["on", "off", "both"] = "both"
    """In which conditions each task is shown."""
    chat: Literal["default", "compact"] = "default"
    """Wording of the prompt."""
    max_steps: Count = 50
    """Step limit of an episode."""
    seed: Natural = 0
    """Seed of the explorer's search."""


class Planner:
    """An expert that knows where everything is, and says how far it is from the end."""

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        self._env, self.thought = env, ""

    def act(self, observation: str, commands: Sequence[str]) -> str:
        """The next command of the shortest plan."""
        plan = shortest_plan(self._env)
        self.thought = f"{len(plan)} steps to go"
        return plan[0] if plan else "look"


def demonstrations(options: MakeDemonstrationsOptions) -> Iterator[dict[str, Any]]:
    """Plays the split's tasks in order, each in every condition that was asked for; a line each."""
    make: dict[str, Any] = {"data": options.data, "split": options.split, "task_types": options.task_types}
    env: Any = gymnasium.make("skillc/ALFWorld-v0", max_episode_steps=options.max_steps, **make)
    chat = ChatFormat.compact() if options.chat == "compact" else ChatFormat.default()
    env = ChatPrompt(ActionFormat(SkillInjection(env, library="alfworld", where="info")), chat)
    for index, task_id in enumerate(env.unwrapped.task_ids[: options.count]):
        for skill in {"on": (True,), "off": (False,), "both": (True, False)}[options.skills]:
            seed, asked = options.seed + index, {"task_id": task_id, "skill": skill, "skill_text": skill_of_game}
            _, info = begun = env.reset(seed=seed, options=asked)
            explorer = Explorer(info["task_type"], info["goal"], seed=seed, skill=info["skill_text"])
            for _, outcome in expert_replies(env, begun, explorer if options.expert == "explorer" else Planner(env)):
                info = outcome[4]
            told = info["messages"]
            named = {"task_id": task_id, "task_type": info["task_type"], "condition": int(skill)}
            messages = told if told[-1]["role"] == "assistant" else told[:-1]
            yield {**named, "won": bool(info["won"]), "messages": messages}


def _demonstrate(options: MakeDemonstrationsOptions) -> int:
    if options.out.exists():
        raise ConfigError(f"{options.out} exists; name another file, or remove it first.")
    won: list[bool] = []

    def lines() -> Iterator[bytes]:
        for line in demonstrations(options):
            won.append(line["won"])
            yield json_line(line)

    replace_file(options.out, lines())
    complain(f"{len(won)} demonstrations in {options.out}, {sum(won)} of them won")
    return 0


COMMANDS: dict[str, Command[Any]] = {
    "tools make-games": Command(MakeGamesOptions, _make, "interrupted; no game was left in the folder."),
    "tools make-demonstrations": Command(
        MakeDemonstrationsOptions, _demonstrate, "interrupted; the file was not completed."
    ),
}

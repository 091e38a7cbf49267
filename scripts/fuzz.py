"""Fuzzes ALFWorld's loader or stepper with atheris: ``python -m scripts.fuzz loader --seconds 600``.

The loader is given game files with pieces replaced, repeated, dropped or retyped, and may only succeed or raise
SkillCError. The stepper plays whatever text comes, and may never raise; what it answers is checked against what it
offers. An input that takes over a second, or more memory than the limit, ends the run like an exception does; the input
is written to the current folder.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from skillc_gym.alfworld.game import Game
from skillc_gym.alfworld.games import GameSet, open_games
from skillc_gym.alfworld.sources import decode
from skillc_gym.alfworld.world import NOTHING_HAPPENS, World
from skillc_gym.errors import SkillCError, missing_extra

GENERATOR = {"seed": 0, "games_per_type": 2, "size": "small"}
FIELDS = ("pddl_domain", "grammar", "pddl_problem", "walkthrough", "solvable")
PIECES = (
    "(",
    ")",
    "[",
    "{",
    '"',
    ":- ",
    "#{o.name}#",
    "#[o:x]#",
    "(and ",
    "(exists (?o - object) ",
    "(forall (?o - object) ",
    "(not ",
    "?o",
    " - ",
    "__import__('os')",
    "{0.__class__}",
    "%s",
    "\x00",
    "\n",
    "é😀",
)
MAX_REPEATS = 20_000


def _games() -> GameSet:
    return open_games("generated", split="train", generator=GENERATOR)


def mutated(provider: Any, raw: dict[str, Any]) -> dict[str, Any]:
    """A game file's content with a few changes that the fuzzer chooses."""
    changed = dict(raw)
    for _ in range(provider.ConsumeIntInRange(1, 4)):
        key = FIELDS[provider.ConsumeIntInRange(0, len(FIELDS) - 1)]
        changed[key] = _changed(provider, changed.get(key))
    return changed


def _changed(provider: Any, value: Any) -> Any:
    way = provider.ConsumeIntInRange(0, 5)
    if way == 0 or not isinstance(value, str):
        return [None, 0, [], {}, "", [[1]], "x"][provider.ConsumeIntInRange(0, 6)]
    start = provider.ConsumeIntInRange(0, len(value))
    end = min(len(value), start + provider.ConsumeIntInRange(0, 200))
    if way == 1:
        return value[:start] + value[end:]
    if way == 2:
        return value[:start] + value[start:end] * provider.ConsumeIntInRange(2, 50) + value[end:]
    if way == 3:
        piece = PIECES[provider.ConsumeIntInRange(0, len(PIECES) - 1)]
        return value[:start] + piece * provider.ConsumeIntInRange(1, MAX_REPEATS) + value[end:]
    return value[:start] + str(provider.ConsumeUnicodeNoSurrogates(40)) + value[end:]


def loader_target(atheris: Any) -> Callable[[bytes], None]:
    """Reads mutated game files; whatever is accepted is also played a little."""
    games = _games()
    raws = [(task_id, games.raw(task_id)) for task_id in games.task_ids]

    def target(data: bytes) -> None:
        provider = atheris.FuzzedDataProvider(data)
        task_id, raw = raws[provider.ConsumeIntInRange(0, len(raws) - 1)]
        try:
            if provider.ConsumeBool():
                game = Game.parse(task_id, decode(data, "a fuzzed file"))
            else:
                game = Game.parse(task_id, decode(json.dumps(mutated(provider, raw)).encode(), "a fuzzed file"))
        except SkillCError:
            return
        world = World(game)
        world.reset()
        for command in world.admissible[:20]:
            world.step(command)

    return target


def stepper_target(atheris: Any) -> Callable[[bytes], None]:
    """Plays fuzzed commands among admissible ones."""
    games = _games()
    loaded = [games.load(task_id) for task_id in games.task_ids]

    def target(data: bytes) -> None:
        provider = atheris.FuzzedDataProvider(data)
        world = World(loaded[provider.ConsumeIntInRange(0, len(loaded) - 1)])
        world.reset()
        while provider.remaining_bytes() > 1:
            step_checked(world, _command(provider, world))

    return target


def _command(provider: Any, world: World) -> str:
    commands = world.game.commands if provider.ConsumeBool() else tuple(world.admissible)
    command: str = commands[provider.ConsumeIntInRange(0, len(commands) - 1)]
    way = provider.ConsumeIntInRange(0, 3)
    if way == 0:
        return str(provider.ConsumeUnicode(60))
    if way == 1:
        cut = provider.ConsumeIntInRange(0, len(command))
        return command[:cut] + str(provider.ConsumeUnicode(10)) + command[cut:]
    return command


def step_checked(world: World, command: str) -> None:
    """Makes a step and checks what must hold of any answer.

    Raises:
        AssertionError: Something does not.
    """
    before, possible = world.state, world.is_admissible(command)
    answer, admissible = world.step(command)
    assert admissible is possible, "admissible and answered differently"
    if not admissible:
        assert answer == NOTHING_HAPPENS, "an impossible command got another answer"
        assert world.state == before, "an impossible command changed the state"
    assert answer, "an empty answer"
    assert world.admissible == sorted(world.admissible), "the commands are not sorted"


TARGETS = {"loader": loader_target, "stepper": stepper_target}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the fuzzer until the time is over or something breaks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--memory", type=int, default=1024, help="limit in MiB")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    try:
        import atheris
    except ImportError as error:
        raise missing_extra("atheris", "fuzz") from error
    target = TARGETS[args.target](atheris)
    atheris.instrument_all()
    flags = [
        sys.argv[0],
        f"-max_total_time={args.seconds}",
        f"-rss_limit_mb={args.memory}",
        "-timeout=1",
        f"-seed={args.seed}",
        "-max_len=4096",
    ]
    atheris.Setup(flags, target)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())

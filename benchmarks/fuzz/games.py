"""Hostile game files and archives, and any text among the admissible commands of ALFWorld's engine."""

from __future__ import annotations

import functools
import gzip
import io
import json
import re
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.fuzz.target import GENERATOR, FuzzTarget, Run, changed_text
from skillc_gym.envs.alfworld.data import ArchiveSource, decode, open_games
from skillc_gym.envs.alfworld.engine import NOTHING_HAPPENS, Game, World
from skillc_gym.errors import SkillCError

FIELDS = ("pddl_domain", "grammar", "pddl_problem", "walkthrough", "solvable")
PIECES = (
    *("(", ")", "[", "{", '"', ":- ", "#{o.name}#", "#[o:x]#", "(and ", "(exists (?o - object) "),
    *("(forall (?o - object) ", "(not ", "?o", " - ", "__import__('os')", "{0.__class__}", "%s", "\x00", "\n", "é😀"),
)
MAX_REPEATS = 20_000


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
    if way == 1:
        words = _words(value)
        one, other = (words[provider.ConsumeIntInRange(0, len(words) - 1)] for _ in range(2))
        return value.replace(one, other, provider.ConsumeIntInRange(1, 3))
    return changed_text(provider, value, PIECES, MAX_REPEATS)


@functools.lru_cache(maxsize=64)
def _words(text: str) -> list[str]:
    return sorted({*re.findall(r"[#\w.:()-]+", text)}) or [""]


def loader_target(atheris: Any) -> Run:
    """Reads mutated game files and archives; whatever is accepted is also played a little."""
    games = open_games("generated", split="train", generator=dict(GENERATOR))
    raws = [(task_id, games.raw(task_id)) for task_id in games.task_ids]
    folder = tempfile.TemporaryDirectory(prefix="skillc-fuzz-")
    archives = packed(raws[:2])

    def target(data: bytes) -> None:
        provider = atheris.FuzzedDataProvider(data)
        way = provider.ConsumeIntInRange(0, 3)
        try:
            if way == 0:
                for task_id, content in read_archive(Path(folder.name), changed_archive(provider, archives)):
                    play(Game.parse(task_id, decode(content, "a fuzzed file")))
                return
            task_id, raw = raws[provider.ConsumeIntInRange(0, len(raws) - 1)]
            content = data if way == 1 else json.dumps(mutated(provider, raw)).encode()
            play(Game.parse(task_id, decode(content, "a fuzzed file")))
        except SkillCError:
            return

    return target


def play(game: Game) -> None:
    """Plays a game a little, in both of its numberings."""
    for one in (game, game.renamed(1)):
        world = World(one)
        world.reset()
        for command in world.admissible[:20]:
            world.step(command)


def packed(raws: Sequence[tuple[str, dict[str, Any]]]) -> list[bytes]:
    """The same games as a tar and as a zip file."""
    tarred, zipped = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tarred, mode="w") as tar, zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        for task_id, raw in raws:
            content = json.dumps(raw).encode()
            member = tarfile.TarInfo(f"json_2.1.1/{task_id}/game.tw-pddl")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
            archive.writestr(zipfile.ZipInfo(member.name), content)
    return [tarred.getvalue(), zipped.getvalue()]


def changed_archive(provider: Any, archives: Sequence[bytes]) -> bytes:
    """An archive with a few changes that the fuzzer chooses, most of them among the headers."""
    content = bytearray(archives[provider.ConsumeIntInRange(0, len(archives) - 1)])
    is_tar = content[:2] != b"PK"
    for _ in range(provider.ConsumeIntInRange(1, 6)):
        start, end = (0, 512) if is_tar else (max(0, len(content) - 512), len(content))
        if provider.ConsumeBool():
            start, end = 0, len(content)
        place = provider.ConsumeIntInRange(start, max(start, end - 1))
        dropped = provider.ConsumeIntInRange(0, 12)
        content[place : place + dropped] = provider.ConsumeBytes(provider.ConsumeIntInRange(0, 12))
    if is_tar and provider.ConsumeBool():
        _sum_up(content)
    return gzip.compress(content, 1) if is_tar and provider.ConsumeBool() else bytes(content)


def _sum_up(content: bytearray) -> None:
    """Corrects the sum of the first header, without which nothing else in it is looked at."""
    content[148:156] = b" " * 8
    content[148:156] = b"%06o\0 " % sum(content[:512])


def read_archive(folder: Path, content: bytes) -> list[tuple[str, bytes]]:
    """Reads the games of an archive."""
    path = folder / "games"
    path.write_bytes(content)
    source = ArchiveSource(path, "train")
    return [(task_id, source.read(task_id)) for task_id in source.task_ids]


LOADER = FuzzTarget(
    "The loader reads game files with pieces replaced, repeated, dropped or retyped, and archives with changed bytes; "
    "it may succeed or refuse in words, nothing else.",
    loader_target,
)


def stepper_target(atheris: Any) -> Run:
    """Plays fuzzed commands among admissible ones, and goes back to earlier moments."""
    games = open_games("generated", split="train", generator=dict(GENERATOR))
    loaded = [games.load(task_id, naming) for task_id in games.task_ids for naming in (None, 1)]

    def target(data: bytes) -> None:
        provider = atheris.FuzzedDataProvider(data)
        world = World(loaded[provider.ConsumeIntInRange(0, len(loaded) - 1)])
        world.reset()
        moments = [(world.snapshot(), world.admissible)]
        while provider.remaining_bytes() > 1:
            step_checked(world, _command(provider, world))
            if provider.ConsumeIntInRange(0, 15) == 0:
                moments.append((world.snapshot(), world.admissible))
                state, admissible = moments[provider.ConsumeIntInRange(0, len(moments) - 1)]
                world.restore(state)
                assert world.admissible == admissible, "a snapshot led elsewhere"

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
    """Makes a step and checks what must hold of any answer."""
    before, possible = world.state, world.is_admissible(command)
    answer, admissible = world.step(command)
    assert admissible is possible, "admissible and answered differently"
    if not admissible:
        assert answer == NOTHING_HAPPENS, "an impossible command got another answer"
        assert world.state == before, "an impossible command changed the state"
    assert answer, "an empty answer"
    assert world.admissible == sorted(world.admissible), "the commands are not sorted"


STEPPER = FuzzTarget(
    "The stepper plays any text among admissible commands and goes back to earlier moments; it may never raise, and "
    "what it answers must agree with what it offers.",
    stepper_target,
)

"""Compares the native ALFWorld engine with upstream on many games, command by command, and writes down what came of it.

    python -m benchmarks.parity_alfworld  # every validation game and 200 of train, against the cached upstream
    python -m benchmarks.parity_alfworld --oracle plain --games valid_unseen=24
    python -m benchmarks.parity_alfworld --wording older --games valid_unseen=12

For each game: its walkthrough with a few more commands after the win, and random walks that mix admissible,
inadmissible and malformed commands. After every command the feedback, the admissible commands and winning must be
equal. Every finished game is one line of the record; a run that was stopped goes on where it left off. The summary
beside the record counts all lines of it.
"""

from __future__ import annotations

import argparse
import json
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks.measuring import RECORDS, exit_status, versions_of
from skillc_gym.envs.alfworld import SPLITS
from skillc_gym.envs.alfworld.data import open_games
from skillc_gym.envs.alfworld.engine import Game, UpstreamProcess, UpstreamWorld, World
from skillc_gym.errors import ConfigError, require_name
from skillc_lab.tables import write_record

Key = tuple[str, str, str, int]
DEFAULT_GAMES = ("valid_seen", "valid_unseen", "train=200")
PACKAGES = ("textworld", "alfworld", "fast-downward-textworld", "gymnasium", "numpy")
WALKS = 2
STEPS = 36
STEPS_AFTER_WINNING = 12

Answer = tuple[str, list[str], bool]
"""Feedback, admissible commands, won."""

T = TypeVar("T")

_OLDER = (
    ("You arrive at {r.name}.", "You arrive at {lend.name}."),
    ("move {o} to {r}", "put {o} in/on {r}"),
    ("You move the {o.name} to the {r.name}.", "You put the {o.name} in/on the {r.name}."),
    ("  move (object) to (receptacle):  place", "  put (object) in/on (receptacle):  place"),
)


@dataclass(frozen=True)
class Comparison:
    """What came of comparing one game.

    Attributes:
        oracle: "plain" upstream, or "cached" upstream, which remembers what it parses.
        wording: "file" for the game as it is, "older" for the game rewritten by `older_wording`.
        answers: How many answers were compared, first feedbacks included; ``wins`` of them on a won state.
        differences: Where the two engines differed; empty for equal.
        seconds_native: Time the native engine took for all answers, reading the game included.
        seed: Seed of the walks.
    """

    task_id: str
    oracle: str
    wording: str
    answers: int
    wins: int
    differences: list[dict[str, Any]]
    seconds_native: float
    seconds_upstream: float
    seed: int = 0


def compare(
    task_id: str, raw: Mapping[str, Any], process: UpstreamProcess, *, oracle: str, seed: int = 0, wording: str = "file"
) -> Comparison:
    """Plays a game with both engines and compares every answer."""
    started = time.perf_counter()
    game = Game.parse(task_id, raw)
    scripts = scripts_for(game, seed)
    native = [_play(World(game), script) for script in scripts]
    halfway = time.perf_counter()
    upstream_world = UpstreamWorld(process, raw)
    upstream = [_play(upstream_world, script) for script in scripts]
    return Comparison(
        task_id=task_id,
        oracle=oracle,
        wording=wording,
        answers=sum(map(len, native)),
        wins=sum(won for answers in native for _, _, won in answers),
        differences=[
            found for episode in zip(scripts, native, upstream, strict=True) for found in _differing(*episode)
        ],
        seconds_native=round(halfway - started, 6),
        seconds_upstream=round(time.perf_counter() - halfway, 3),
        seed=seed,
    )


def scripts_for(game: Game, seed: int) -> list[list[str]]:
    """Returns the command lists that a game is compared on: the walkthrough with more after it, and random walks."""

    def rng(index: int) -> np.random.Generator:
        return np.random.default_rng([seed, zlib.crc32(game.task_id.encode()), index])

    walks = [random_walk(game, rng(1 + index), STEPS) for index in range(WALKS)]
    return [random_walk(game, rng(0), STEPS_AFTER_WINNING, first=game.walkthrough), *walks]


def random_walk(game: Game, rng: np.random.Generator, steps: int, first: Sequence[str] = ()) -> list[str]:
    """Returns commands of a random walk: about 70 % admissible, 15 % inadmissible, 15 % malformed."""
    world = World(game)
    world.reset()
    commands = list(first)
    for command in commands:
        world.step(command)
    for _ in range(steps):
        draw = rng.random()
        make = _admissible if draw < 0.7 else _inadmissible if draw < 0.85 else _malformed
        commands.append(make(world, rng))
        world.step(commands[-1])
    return commands


def older_wording(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Rewrites a game's grammar into the words of alfworld up to 0.3: ``put O in/on R``, arriving at ``loc N``."""
    grammar = str(raw["grammar"])
    for newer, older in _OLDER:
        grammar = grammar.replace(newer, older)
    return {**raw, "grammar": grammar}


def sum_up(comparisons: Iterable[Comparison]) -> list[dict[str, Any]]:
    """Counts games, answers and differences per split, oracle and wording."""
    groups: dict[tuple[str, str, str], list[Comparison]] = defaultdict(list)
    for found in comparisons:
        groups[found.task_id.split("/")[0], found.oracle, found.wording].append(found)
    return [
        {
            "split": split,
            "oracle": oracle,
            "wording": wording,
            "games": len(group),
            "answers": sum(found.answers for found in group),
            "answers_on_won_states": sum(found.wins for found in group),
            "games_that_differ": sum(bool(found.differences) for found in group),
            "differences": sum(len(found.differences) for found in group),
            "seconds_native": round(sum(found.seconds_native for found in group), 3),
            "seconds_upstream": round(sum(found.seconds_upstream for found in group), 1),
        }
        for (split, oracle, wording), group in sorted(groups.items())
    ]


def _play(world: World | UpstreamWorld, commands: Iterable[str]) -> list[Answer]:
    answers = [(world.reset(), world.admissible, world.won)]
    for command in commands:
        feedback, _ = world.step(command)
        answers.append((feedback, world.admissible, world.won))
    return answers


def _differing(commands: Sequence[str], native: Sequence[Answer], upstream: Sequence[Answer]) -> list[dict[str, Any]]:
    return [
        {"step": step, "commands": [*commands[:step]], "native": list(ours), "upstream": list(theirs)}
        for step, (ours, theirs) in enumerate(zip(native, upstream, strict=True))
        if ours != theirs
    ]


def _admissible(world: World, rng: np.random.Generator) -> str:
    """Draws a kind of command first, so that the many ways to go do not drown the rest."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for command in world.admissible:
        kinds[command.split(" ", 1)[0]].append(command)
    return _pick(rng, kinds[_pick(rng, list(kinds))])


def _inadmissible(world: World, rng: np.random.Generator) -> str:
    admissible = set(world.admissible)
    return _pick(rng, [command for command in world.game.commands if command not in admissible])


def _malformed(world: World, rng: np.random.Generator) -> str:
    return _pick(rng, _DISTORTIONS)(_admissible(world, rng))


def _pick(rng: np.random.Generator, choices: Sequence[T]) -> T:
    return choices[int(rng.integers(len(choices)))]


_DISTORTIONS: tuple[Callable[[str], str], ...] = (
    lambda command: f"  {command}",
    lambda command: f"{command} \t\n",
    lambda command: f"\u00a0{command}\u2003",
    lambda command: command.replace(" ", "  ", 1),
    lambda command: command.upper(),
    lambda command: command.rsplit(" ", 1)[0],
    lambda command: f"{command}.",
    lambda command: f"please {command}",
    lambda command: command.replace("o", "ö"),
    lambda _command: "",
    lambda _command: "   ",
    lambda _command: "take the 杯子 from the table",
    lambda _command: "{r.name} #look.feedback# [{o}] %s",
    lambda _command: "go to desk 99",
    lambda command: f"{command}; look",
    lambda command: f"{command}\x00",
)


# The command ---------------------------------------------------------------------------------------------------------


def main(words: Sequence[str] | None = None) -> int:
    """Runs the comparison; returns 1 if any game differed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=None, help="folder or archive of games (default: ALFWORLD_DATA)")
    parser.add_argument("--games", nargs="+", default=DEFAULT_GAMES, metavar="SPLIT[=N]", help="splits, or N of one")
    parser.add_argument("--oracle", choices=("cached", "plain"), default="cached", help="how upstream runs")
    parser.add_argument("--wording", choices=("file", "older"), default="file", help="words of the games")
    parser.add_argument("--seed", type=int, default=0, help="seed of the choice of games and of the walks")
    parser.add_argument("--out", type=Path, default=RECORDS / "parity_alfworld", help="record, without suffix")
    parser.add_argument("--fresh", action="store_true", help="compare everything anew, also what the record holds")
    options = parser.parse_args(words)
    return exit_status(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    record = options.out.with_suffix(".jsonl")
    record.parent.mkdir(parents=True, exist_ok=True)
    kept = [] if options.fresh or not record.exists() else record.read_text(encoding="utf-8").splitlines()
    done = {_key(found): found for found in (Comparison(**json.loads(line)) for line in kept)}
    before = len(done)
    process = UpstreamProcess(cached=options.oracle == "cached")
    try:
        for task_id, raw in _chosen(options, done):
            found = compare(task_id, raw, process, oracle=options.oracle, seed=options.seed, wording=options.wording)
            done[_key(found)] = found
            with record.open("w" if options.fresh and len(done) == 1 else "a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(found)) + "\n")
            count, seconds = len(found.differences), found.seconds_upstream
            print(f"{len(done):5d}  {count:3d} differences  {seconds:6.1f} s  {task_id}", flush=True)
    except KeyboardInterrupt:
        print(f"\nStopped; the same command goes on from {record}.")
    finally:
        process.close()
        if len(done) > before:  # else the record is of the revision that compared
            _write_summary(options, list(done.values()))
        print(f"{len(done) - before} comparisons made now, {before} read from {record}.")
    return int(any(found.differences for found in done.values()))


def _chosen(options: argparse.Namespace, done: Container[Key]) -> Iterator[tuple[str, dict[str, Any]]]:
    for wanted in options.games:
        split, _, count = wanted.partition("=")
        require_name("split", split, SPLITS)
        games = open_games(options.data, split=split)
        if count and not count.isdecimal():
            raise ConfigError(f"--games takes SPLIT or SPLIT=COUNT, got {wanted!r}")
        for task_id in _sample(games.task_ids, int(count) if count else None, options.seed):
            if (task_id, options.oracle, options.wording, options.seed) not in done:
                raw = games.raw(task_id)
                yield task_id, older_wording(raw) if options.wording == "older" else raw


def _sample(task_ids: Sequence[str], count: int | None, seed: int) -> list[str]:
    if count is None or count >= len(task_ids):
        return list(task_ids)
    chosen = np.random.default_rng(seed).choice(len(task_ids), size=count, replace=False)
    return [task_ids[index] for index in sorted(chosen.tolist())]


def _key(found: Comparison) -> Key:
    return found.task_id, found.oracle, found.wording, found.seed


def _write_summary(options: argparse.Namespace, found: list[Comparison]) -> None:
    summary = {
        "seeds": sorted({comparison.seed for comparison in found}),
        "versions": versions_of(*PACKAGES),
        "games": len({comparison.task_id for comparison in found}),
        "answers": sum(comparison.answers for comparison in found),
        "differences": sum(len(comparison.differences) for comparison in found),
        "groups": sum_up(found),
    }
    write_record(options.out.with_suffix(".json"), summary)


if __name__ == "__main__":
    raise SystemExit(main())

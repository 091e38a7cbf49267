"""Opens games in a process that may use little memory and little time."""

import multiprocessing
import re
import resource
from multiprocessing.connection import Connection
from pathlib import Path

from skillc_gym.envs.alfworld.data.games import open_games
from skillc_gym.envs.alfworld.engine.world import World

MEGABYTES = 200
"""What a process may take beyond what it has with everything imported."""
CPU_SECONDS = 20
"""A hang ends here; what is refused is refused some fifteen times sooner."""


def opened(data: Path) -> tuple[str, str]:
    """Opens the games of valid_seen in a fork, loads them all and plays a little.

    Returns:
        The error's name ("" for none, "killed" for a process that died) and its message.
    """
    forks = multiprocessing.get_context("fork")
    answer, answers = forks.Pipe(duplex=False)
    process = forks.Process(target=_confined, args=(data, answers))
    process.start()
    answers.close()
    try:
        name, message = answer.recv()
    except EOFError:
        return "killed", ""
    finally:
        process.join()
    return name, message


def refused(data: Path, message: str, *named: str) -> None:
    """Asserts that the games are refused in words that name one of these, and that nothing was carried out."""
    name, said = opened(data)
    assert (name, bool(re.search(message, said))) == ("InvalidGameError", True), (name, said[:500])
    assert any(one in said for one in named or [str(data)])
    assert len(said) < 1_500
    assert not Path("carried out").exists()


def _confined(data: Path, answers: Connection) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEGABYTES * 1_000_000
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    try:
        _play(data)
    except Exception as error:  # noqa: BLE001 - the test looks at its name
        answers.send((type(error).__name__, str(error)))
    else:
        answers.send(("", ""))


def _play(data: Path) -> None:
    games = open_games(data, split="valid_seen")
    for task_id in games.task_ids:
        world = World(games.load(task_id))
        world.reset()
        for command in world.admissible[:20]:
            world.step(command)

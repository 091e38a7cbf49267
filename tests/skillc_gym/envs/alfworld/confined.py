"""Opens games in a process that may use little memory and little time; run as a script, see `Confined`."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

MEGABYTES = 200
"""What a process may take beyond what it has with everything imported."""
CPU_SECONDS = 20
"""A hang ends here; what is refused is refused some fifteen times sooner."""


class Confined:
    """The other end: a process that forks for each request and answers how its child fared."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def open(self, data: Path, split: str = "valid_seen") -> tuple[str, str]:
        """Opens the games of a split, loads them all and plays a little.

        Returns:
            The error's name ("" for none, "killed" for a process that died) and its message.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(data), split]) + "\n")
        self._process.stdin.flush()
        name, message = json.loads(self._process.stdout.readline())
        return name, message

    def refuses(self, data: Path, message: str, *named: str) -> None:
        """Asserts that the games are refused in words that name one of these, and that nothing was carried out."""
        name, said = self.open(data)
        assert (name, bool(re.search(message, said))) == ("InvalidGameError", True), (name, said[:500])
        assert any(one in said for one in named or [str(data)])
        assert len(said) < 1_500
        assert not Path("carried out").exists()

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()


def main() -> None:
    from skillc_gym.envs.alfworld.engine.world import World  # noqa: F401 - imported before the limits are drawn

    for line in sys.stdin:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            os.write(writing, json.dumps(_confined(*json.loads(line))).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as answers:
            answer = answers.read().decode() or json.dumps(["killed", ""])
        os.waitpid(child, 0)
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


def _confined(data: str, split: str) -> tuple[str, str]:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEGABYTES * 1_000_000
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    try:
        _play(data, split)
    except Exception as error:  # noqa: BLE001 - the test looks at its name
        return type(error).__name__, str(error)
    return "", ""


def _play(data: str, split: str) -> None:
    from skillc_gym.envs.alfworld.data.games import open_games
    from skillc_gym.envs.alfworld.engine.world import World

    games: Any = open_games(data, split=split)
    for task_id in games.task_ids:
        world = World(games.load(task_id))
        world.reset()
        for command in world.admissible[:20]:
            world.step(command)


if __name__ == "__main__":
    main()

"""Upstream's own engine behind the same environment, in a process of its own.

Upstream leaks memory with every game, overwrites ``sys.argv``, swaps ``sys.stdout`` and is not safe across threads. It
therefore runs in a worker process that is replaced after a number of games.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillc_gym.alfworld.env import Engine
from skillc_gym.alfworld.games import GameSet
from skillc_gym.alfworld.wording import goal_of
from skillc_gym.errors import InvalidGameError, missing_extra

__all__ = ["UpstreamProcess", "UpstreamStarter", "UpstreamWorld", "require_upstream"]

WORKER = Path(__file__).with_name("upstream_worker.py")
GAMES_PER_PROCESS = 20


def require_upstream() -> None:
    """Checks that upstream is installed.

    Raises:
        MissingExtraError: If textworld or alfworld is not.
    """
    for package in ("textworld", "fast_downward", "alfworld"):
        if importlib.util.find_spec(package) is None:
            raise missing_extra(package, "alfworld")


class UpstreamProcess:
    """A worker process that plays one game at a time with upstream's engine.

    Args:
        cached: Let upstream remember what it parses: the same answers, many times faster.
        games_per_process: After so many games the process is replaced by a fresh one.
    """

    def __init__(self, *, cached: bool = False, games_per_process: int = GAMES_PER_PROCESS) -> None:
        require_upstream()
        self._cached = cached
        self._limit = games_per_process
        self._games = 0
        self._folder = tempfile.TemporaryDirectory(prefix="skillc-upstream-")
        self._said = (Path(self._folder.name) / "said.txt").open("w+b")
        self._process: subprocess.Popen[bytes] | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None

    @property
    def pid(self) -> int | None:
        """The worker's process id, None while there is none."""
        return None if self._process is None else self._process.pid

    def load(self, raw: Mapping[str, Any]) -> None:
        """Loads a game from the content of its file.

        Raises:
            InvalidGameError: If upstream cannot load it, or dies of it.
        """
        if self._process is None or self._games >= self._limit:
            self._restart()
        self._games += 1
        path = Path(self._folder.name) / f"{self._games}.tw-pddl"
        path.write_text(json.dumps(raw), encoding="utf-8")
        try:
            self.ask(op="load", path=str(path), cached=self._cached)
        finally:
            path.unlink()

    def ask(self, **request: Any) -> dict[str, Any]:
        """Sends a request and returns its answer.

        Raises:
            InvalidGameError: If upstream reports an error or its process ends.
        """
        if self._process is None or self._process.stdin is None or self._process.stdout is None:
            raise InvalidGameError("Upstream's process is not running: load a game first.")
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = b""
        if not line:
            code, said = self._process.wait(), self._last_words()
            self.close()
            raise InvalidGameError(f"Upstream's process ended with code {code} during {request['op']!r}: {said}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise InvalidGameError(f"Upstream failed during {request['op']!r}: {answer['error']}")
        return answer

    def close(self) -> None:
        """Ends the process; closing twice is fine."""
        if self._finalizer is not None:
            self._finalizer()
        self._process, self._finalizer, self._games = None, None, 0

    def _last_words(self) -> str:
        self._said.seek(0)
        return self._said.read()[-500:].decode(errors="replace").strip() or "it said nothing."

    def _restart(self) -> None:
        self.close()
        self._said.truncate(0)
        self._process = subprocess.Popen(
            # -P: the script's folder has a module named textworld, which must not be found instead of upstream.
            [sys.executable, "-P", str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
        )
        self._finalizer = weakref.finalize(self, _end, self._process)


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                continue
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class UpstreamWorld:
    """A game that upstream plays; the counterpart of `skillc_gym.alfworld.world.World`.

    Its state is the list of commands so far: restoring one that does not continue the present plays them again.
    """

    def __init__(self, process: UpstreamProcess, raw: Mapping[str, Any]) -> None:
        process.load(raw)
        self._process = process
        self._answer: dict[str, Any] = {"won": False, "admissible": []}
        self._history: list[str] = []

    @property
    def won(self) -> bool:
        """Whether the goal holds now."""
        return bool(self._answer["won"])

    @property
    def admissible(self) -> list[str]:
        """The admissible commands, sorted; a new list each time."""
        return list(self._answer["admissible"])

    def reset(self) -> str:
        """Starts the game again and returns the first feedback."""
        self._history = []
        self._answer = self._process.ask(op="reset")
        return str(self._answer["feedback"])

    def step(self, command: str) -> tuple[str, bool]:
        """Returns the feedback, and whether the command was admissible."""
        valid = command.strip() in self._answer["admissible"]
        self._answer = self._process.ask(op="step", command=command)
        if valid:
            self._history.append(command)
        return str(self._answer["feedback"]), valid

    def snapshot(self) -> tuple[str, ...]:
        """Returns the admissible commands so far."""
        return tuple(self._history)

    def restore(self, state: tuple[str, ...]) -> None:
        """Plays again from the start, unless the state is the present one."""
        if tuple(self._history) != state:
            self.reset()
            for command in state:
                self.step(command)


class UpstreamStarter:
    """Starts tasks on upstream's engine, for `skillc_gym.alfworld.env.ALFWorldEnv`."""

    def __init__(self, games: GameSet) -> None:
        self._games = games
        self._process = UpstreamProcess()
        self._task_id: str | None = None

    def __call__(self, task_id: str, engine: Engine | None) -> tuple[Engine, str, str]:
        """Returns an engine at the start of a task, its first feedback and the goal."""
        if not isinstance(engine, UpstreamWorld) or self._task_id != task_id:
            engine = UpstreamWorld(self._process, self._games.raw(task_id))
        self._task_id = task_id
        feedback = engine.reset()
        return engine, feedback, goal_of(feedback.rsplit("\n\n", 1)[-1])

    def close(self) -> None:
        """Ends the process."""
        self._process.close()
        self._task_id = None

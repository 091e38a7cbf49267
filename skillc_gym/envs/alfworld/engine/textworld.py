"""Upstream's own engine behind the same environment, in a process of its own.

Upstream leaks memory with every game, overwrites ``sys.argv``, swaps ``sys.stdout`` and is not safe across threads. It
therefore runs in a worker process that is replaced after a number of games, when it has grown, and when it has died.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from skillc_gym.envs.alfworld.engine.wording import goal_of, read_wording
from skillc_gym.errors import ConfigError, EngineError, InvalidGameError, missing_extra

WORKER = Path(__file__).with_name("upstream_worker.py")
GAMES_PER_PROCESS = 20
"""Upstream grows by some 6 MB with each game, from 80 MB on; resets and steps leave it as it is."""
MEGABYTES_PER_PROCESS = 500
SECONDS_PER_ANSWER = 600


class _Worker(NamedTuple):
    process: subprocess.Popen[bytes]
    folder: Path
    owner: int
    """The process that started it: a fork of that one must leave it alone."""


class UpstreamProcess:
    """A worker process that plays one game at a time with upstream's engine; a fresh one replaces it at its limits.

    ``cached`` lets upstream remember what it parses: the same answers, many times faster. MissingExtraError if upstream
    is not installed.
    """

    def __init__(self, *, cached: bool = False) -> None:
        for package in ("textworld", "fast_downward", "alfworld"):
            if importlib.util.find_spec(package) is None:
                raise missing_extra(package, "alfworld")
        self._cached = cached
        self._worker: _Worker | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None
        self._games, self._megabytes = 0, 0.0
        self._loaded: tuple[Mapping[str, Any], int | None] | None = None

    @property
    def pid(self) -> int | None:
        """The worker's process id, None while there is none."""
        return None if self._worker is None else self._worker.process.pid

    @property
    def too_large(self) -> bool:
        """Whether the process has grown beyond its limit."""
        return self._megabytes >= MEGABYTES_PER_PROCESS

    def holds(self, raw: Mapping[str, Any], naming: int | None) -> bool:
        """Whether this very game is loaded, in a process that runs and belongs to this one (which may be a fork)."""
        if self._worker is None or self._worker.owner != os.getpid() or self._loaded is None:
            return False
        return self._loaded[0] is raw and self._loaded[1] == naming

    def load(self, raw: Mapping[str, Any], naming: int | None = None) -> None:
        """Loads a game; InvalidGameError if upstream cannot, EngineError if its process ends, or is too slow."""
        worker = self._worker
        if worker is None or worker.owner != os.getpid() or self._games >= GAMES_PER_PROCESS or self.too_large:
            worker = self._restart()
        self._games, self._loaded = self._games + 1, None
        path = worker.folder / f"{self._games}.tw-pddl"
        request = {"op": "load", "path": str(path), "cached": self._cached, "naming": naming}
        path.write_text(json.dumps(raw), encoding="utf-8")
        try:
            answer = self._exchange(worker, request)
        finally:
            path.unlink(missing_ok=True)
        if "error" in answer:
            raise InvalidGameError(f"Upstream cannot load the game: {answer['error']}")
        self._loaded, self._megabytes = (raw, naming), answer["megabytes"]

    def ask(self, **request: Any) -> dict[str, Any]:
        """Sends a request and returns its answer; EngineError for an error of upstream's, its end, or its silence."""
        if self._worker is None or self._worker.owner != os.getpid():
            raise EngineError("Upstream's process is not running: reset() starts it.")
        answer = self._exchange(self._worker, request)
        if "error" in answer:
            raise EngineError(f"Upstream failed during {request['op']!r}: {answer['error']}")
        self._megabytes = answer["megabytes"]
        return answer

    def close(self) -> None:
        """Ends the process; closing twice is fine."""
        if self._finalizer is not None:
            self._finalizer()
        self._worker, self._finalizer, self._loaded = None, None, None
        self._games, self._megabytes = 0, 0.0

    def _exchange(self, worker: _Worker, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            line = self._answer(worker.process, json.dumps(request).encode() + b"\n")
        except BaseException:  # an answer that nobody waited for would be taken for the next one's
            self.close()
            raise
        if not line.endswith(b"\n"):  # none, or the beginning of one
            code = worker.process.wait()
            said = (worker.folder / "said.txt").read_bytes()[-500:].decode(errors="replace").strip()
            self.close()
            raise EngineError(
                f"Upstream's process ended with code {code} during {request['op']!r}: "
                f"{said or 'it said nothing.'} reset() starts another."
            )
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _answer(self, process: subprocess.Popen[bytes], request: bytes) -> bytes:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(request)
            process.stdin.flush()
        except BrokenPipeError:
            return b""
        waiting = select.poll()  # unlike select.select, for any number of open files
        waiting.register(process.stdout, select.POLLIN)
        if not waiting.poll(1e3 * SECONDS_PER_ANSWER):
            process.kill()
            raise EngineError(f"Upstream gave no answer in {SECONDS_PER_ANSWER:g} seconds; its process was ended.")
        return process.stdout.readline()

    def _restart(self) -> _Worker:
        self.close()
        folder = Path(tempfile.mkdtemp(prefix="skillc-upstream-"))
        with (folder / "said.txt").open("wb") as said:
            process = subprocess.Popen(
                # -P: the script's folder has a module named textworld, which must not be found instead of upstream.
                [sys.executable, "-P", str(WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                start_new_session=True,  # an interrupt at the terminal is for the program, not for upstream
            )
        self._worker = _Worker(process, folder, os.getpid())
        self._finalizer = weakref.finalize(self, _end, self._worker)
        return self._worker


def _end(worker: _Worker) -> None:
    process = worker.process
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
    if worker.owner != os.getpid():
        return
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    shutil.rmtree(worker.folder, ignore_errors=True)


class UpstreamWorld:
    """A game that upstream plays. Its state is the list of commands so far: restoring another plays it again."""

    def __init__(self, process: UpstreamProcess, raw: Mapping[str, Any], naming: int | None = None) -> None:
        process.load(raw, naming)
        self.naming = naming
        self._process = process
        self._raw = raw
        self._answer: dict[str, Any] = {"won": False, "admissible": []}
        self._history: list[str] = []
        self.goal = ""
        """The task without its prefix, from the first `reset` on."""

    @property
    def won(self) -> bool:
        """Whether the goal holds now."""
        return bool(self._answer["won"])

    @property
    def admissible(self) -> list[str]:
        """The admissible commands, sorted; a new list each time."""
        return list(self._answer["admissible"])

    def reset(self) -> str:
        """Starts the game again, which is loaded again where the process has not got it; returns the first feedback."""
        if not self._process.holds(self._raw, self.naming) or self._process.too_large:
            self._process.load(self._raw, self.naming)
        self._history = []
        self._answer = self._process.ask(op="reset")
        feedback = str(self._answer["feedback"])
        self.goal = goal_of(self._task(feedback))
        return feedback

    def _task(self, feedback: str) -> str:
        """The task's sentence as the grammar has it; the last paragraph, where upstream alone can read that."""
        try:
            return read_wording(self._raw["grammar"])[1]
        except (InvalidGameError, KeyError):
            return feedback.rsplit("\n\n", 1)[-1]

    def step(self, command: str) -> tuple[str, bool]:
        """Returns the feedback, and whether the command was admissible."""
        if not self._process.holds(self._raw, self.naming):
            raise EngineError("Upstream's process does not hold this game any more: reset() loads it again.")
        valid = command.strip() in self._answer["admissible"]
        self._answer = self._process.ask(op="step", command=command)
        if valid:
            self._history.append(command)
        return str(self._answer["feedback"]), valid

    def snapshot(self) -> tuple[str, ...]:
        """Returns the admissible commands so far."""
        return tuple(self._history)

    def restore(self, state: tuple[str, ...]) -> None:
        """Plays again from the start, unless the state is the present one; ConfigError for another engine's state."""
        if not isinstance(state, tuple) or not all(isinstance(command, str) for command in state):
            raise ConfigError("The state was made by another engine; engine='textworld' keeps the commands so far.")
        if tuple(self._history) != state or not self._process.holds(self._raw, self.naming):
            self.reset()
            for command in state:
                self.step(command)

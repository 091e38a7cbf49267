"""Rollouts one update ahead: the next update's groups are played in a process of their own while this one learns.

The weights that play are then one optimiser step behind those that learn from it, and the objective weighs every token
by the truncated ratio between the two, as it does for an engine whose arithmetic is another (the decoupled objective of
AReaL, arXiv 2505.24298). What is played depends on seeds and weights alone, not on which process is faster.
"""

from __future__ import annotations

import atexit
import logging
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing

from skillc_gym.errors import ConfigError, SkillCError
from trainers.base import Trajectory
from trainers.config import TrainConfig
from trainers.engines.registry import IN_PROCESS, TrainerModel, engine_spec
from trainers.models import attend_without_plans, load_tokenizer
from trainers.recipes.recipe import Recipe
from trainers.rollout.opening import make_chat, make_rollouts, token_policy

_FILE = "ahead.pt"
_STOPPING = (signal.SIGINT, signal.SIGTERM)
_PATIENCE = 1.0
"""Seconds in which the process may end by itself."""


@dataclass(frozen=True)
class WeightsCopy:
    """A whole copy of the trained weights, which ``refresh`` brings up to date; ``autocast`` is the trainer's type."""

    model: torch.nn.Module
    refresh: Callable[[], object]
    autocast: torch.dtype | None = None


@dataclass(frozen=True)
class Drawn:
    """What an update plays: its number, its tasks, and how many of each group's members see the skill."""

    update: int
    tasks: tuple[str, ...]
    n_plus: tuple[int, ...]


class Ahead:
    """Plays in another process with a copy of the weights as they were when it began, whose memory both read."""

    def __init__(self, config: TrainConfig, weights: WeightsCopy) -> None:
        self._config, self._weights = config, weights
        self._process: Any = None
        self._connection: Connection | None = None

    def begin(self, drawn: Drawn, **options: Any) -> None:
        """Plays with the present weights; ``options`` as of :meth:`trainers.rollout.collect.GroupRollouts.collect`.

        Raises as :meth:`collect` does.
        """
        self._weights.refresh()
        self._play(drawn, options)

    def collect(self) -> list[Trajectory]:
        """What was begun, once it is played; raises what went wrong in the other process (its end: RuntimeError)."""
        connection = self._connection
        assert connection is not None, "nothing was begun"
        wait([connection, self._process.sentinel])
        with self._its_end_in_words():
            played: list[Trajectory] | Exception = connection.recv()
        if isinstance(played, Exception):
            raise played
        return played

    def save(self, folder: Path) -> None:
        """Keeps the weights that play in a checkpoint's folder; the state of what is played is the learner's."""
        torch.save(self._weights.model.state_dict(), folder / _FILE)

    def resume(self, folder: Path, drawn: Drawn, **options: Any) -> None:
        """Plays again what was under way when a checkpoint was written, with the weights of then."""
        self._weights.refresh()
        kept = torch.load(folder / _FILE, weights_only=True, map_location="cpu")
        self._weights.model.load_state_dict(kept)
        self._play(drawn, options)

    def close(self) -> None:
        """Ends the other process, whatever it is doing."""
        if self._process is not None:
            atexit.unregister(self.close)
            assert self._connection is not None
            self._connection.close()  # while it waits to be asked, it ends by itself and closes its environments
            self._process.join(_PATIENCE)
            self._process.kill()
            self._process.join()
            self._process = self._connection = None

    def _play(self, drawn: Drawn, options: dict[str, Any]) -> None:
        if self._connection is None:
            self._start()
        assert self._connection is not None
        if any(parameter.is_cuda for parameter in self._weights.model.parameters()):
            # The other process reads the very memory, which this one's device may still be writing to.
            torch.cuda.synchronize()
        with self._its_end_in_words():
            self._connection.send({"task_ids": drawn.tasks, "n_plus": drawn.n_plus, **options})

    @contextmanager
    def _its_end_in_words(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, ConnectionError) as error:
            self._process.join(_PATIENCE)
            raise RuntimeError(
                f"The process that plays ahead ended (exit code {self._process.exitcode}); the same command goes on "
                "from the last checkpoint."
            ) from error

    def _start(self) -> None:
        context = torch.multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        model = self._weights.model.share_memory()
        # It never outlives a run that ends in whatever way. multiprocessing would end a daemon by SIGTERM, which it
        # ignores, and wait: what is registered later is called before.
        atexit.register(self.close)
        self._process = context.Process(
            target=_serve, args=(theirs, self._config, model, self._weights.autocast), daemon=True
        )
        with _signals_held():
            self._process.start()
        theirs.close()


@contextmanager
def _signals_held() -> Iterator[None]:
    """Holds the signals that stop a run; a process that is started within holds them until it says what it does."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Connection, config: TrainConfig, model: torch.nn.Module, autocast: torch.dtype | None) -> None:
    """The other process: plays what it is asked to until nobody asks any more."""
    # Ctrl-C and SIGTERM are for the process that learns, which finishes its update first.
    for number in _STOPPING:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
    attend_without_plans()
    chat = make_chat(config, load_tokenizer(config))
    trained = TrainerModel(model, chat.eos_ids, config, autocast=autocast)
    engine = engine_spec(config.engine).for_trainer(trained)
    rollouts = make_rollouts(config, token_policy(config, chat, engine))
    with closing(rollouts), suppress(EOFError, ConnectionError):
        while True:
            asked = connection.recv()
            try:
                answer: Any = rollouts.collect(**asked)
            except SkillCError as error:
                answer = error
            except Exception:
                logging.getLogger(__name__).exception("playing ahead failed")
                answer = RuntimeError(f"Playing ahead failed:\n{traceback.format_exc()}")
            connection.send(answer)


def check_ahead(config: TrainConfig, recipe: Recipe, processes: int) -> None:
    """Refuses (ConfigError) what can't be played ahead."""
    if not config.rollouts_ahead:
        return
    for holds, why in (
        (config.engine not in IN_PROCESS, f"engine={config.engine} serves the weights that learn; take transformers"),
        (processes > 1, f"{processes} processes train; start one"),
        (config.redraw_groups > 0, "redraw_groups decides by an update's rollouts what else to play; leave it out"),
        (not recipe.memory.is_fixed, f"{recipe.name} learns between updates which skills it shows"),
    ):
        if holds:
            raise ConfigError(f"rollouts_ahead plays the next update's groups with a copy of the weights, and {why}.")

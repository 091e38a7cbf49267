"""What a learner works with: a run's parts, a skill memory, and whoever owns the weights and the optimiser."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch

from skillc_gym.errors import ConfigError
from trainers.advantages import RolloutBatch
from trainers.config import TrainConfig
from trainers.engines.lockstep import NO_WRITER, LockstepEngine
from trainers.engines.random import Purpose, derive_seed
from trainers.engines.types import Engine
from trainers.learner.ahead import WeightsCopy
from trainers.losses.base import Weights
from trainers.memory import Memory, MemoryTools, skill_selectors
from trainers.memory.banked import BankOptions
from trainers.recipes.method import Method
from trainers.rollout.batches import Tokens
from trainers.rollout.chat_tokens import ChatTokens
from trainers.rollout.collect import GroupRollouts, Processes
from trainers.rollout.opening import TaskSplit
from trainers.rollout.policies import EngineChat, TokenPolicy
from trainers.rollout.rows import Prompts
from trainers.tracking.loggers import Logger
from trainers.tracking.progress import Progress
from trainers.tracking.run_folder import RunFolder


@dataclass(frozen=True)
class Setup:
    """All that a learner needs but a backend."""

    config: TrainConfig
    """The run's settings."""
    folder: RunFolder
    """Where the run is written."""
    split: TaskSplit
    """Training tasks and the curriculum's panel."""
    method: Method
    """Allocation, advantages and curriculum, with their state."""
    rollouts: GroupRollouts
    """Environments and engine."""
    prompts: Prompts
    """Renders rows behind other prompts."""
    pad_id: int
    """Token that fills up."""
    progress: Progress
    """Shown to a person."""
    loggers: Sequence[Logger] = ()
    """Told every record, in the process that writes files."""
    read: Mapping[str, str] = field(default_factory=dict)
    """Hashes of what is read again when the run goes on: skills, tasks, weights that a checkpoint does not hold."""


class Backend(Processes, Protocol):
    """Owns weights and optimiser; :func:`trainers.learner.train` calls it, and it calls nobody.

    Made for one run: :meth:`prepare`, then for each update :meth:`start_update`, passes in :meth:`accumulate`, and a
    :meth:`step` after those of each optimiser step. What several processes must do together is said.
    """

    @property
    def device(self) -> torch.device:
        """Where tensors belong."""

    def all_reduce_sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """The sum over processes, on every process."""

    def engine(self, chat: ChatTokens) -> Engine:
        """The engine that generates with the trained weights."""

    def copy(self) -> WeightsCopy:
        """A whole copy of the trained weights; asked for with ``rollouts_ahead`` alone, where one process trains."""

    # Training ----------------------------------------------------------------------------------------------------

    def prepare(self, checkpoint: Path | None) -> None:
        """Makes optimiser and schedule, places weights, goes on from a checkpoint if given one; all together."""

    def start_update(self, update: int) -> None:
        """Turns from playing to training: what layers draw at random depends on the update's number from here on."""

    def accumulate(self, *, last: bool) -> AbstractContextManager[object]:
        """Surrounds a forward and backward pass; at the ``last`` of a step processes sum their gradients."""

    def forward(self, tokens: Tokens, wants: Collection[str]) -> dict[str, torch.Tensor]:
        """A forward pass of the trained weights, with gradient; figures as of :meth:`score`."""

    def backward(self, loss: torch.Tensor) -> None:
        """Adds a loss's gradient; the losses of all passes and processes are parts of one sum."""

    def step(self) -> Mapping[str, float | None]:
        """Takes an optimiser step; gives ``grad_norm`` before clipping, and the ``learning_rate`` that was used."""

    # Looking -----------------------------------------------------------------------------------------------------

    def score(self, tokens: Tokens, wants: Collection[str], weights: Weights = "policy") -> dict[str, torch.Tensor]:
        """One forward pass with somebody's weights; without gradient, dropout and the like do not act.

        Figures: ``logprobs``, ``entropies`` or the name of a head, each (rows, tokens) and 0 outside the own tokens;
        ``logits``: (own tokens row by row, vocabulary), divided by the temperature.
        """

    def gradient_norm(self, losses: Iterable[torch.Tensor]) -> float:
        """Norm of the gradient of some losses' sum with respect to the trained weights, which stay as they are."""

    # Keeping -----------------------------------------------------------------------------------------------------

    def save(self, folder: Path) -> None:
        """Writes weights, optimiser, schedule and random states into a folder that is there; all together."""

    def restore(self, checkpoint: Path) -> None:
        """Loads a checkpoint's weights alone."""

    def save_policy(self, path: Path) -> None:
        """Writes the trained policy as a transformers checkpoint; all together."""


class SharedMemory:
    """A recipe's memory that all processes have alike: what one has learned, all know.

    The run's rollouts show from now on what the memory chooses, in validations without exploring. A ConfigError where
    the policy is to write, and cannot be asked by one process.
    """

    def __init__(self, options: Memory, setup: Setup, *, resumed: bool = False) -> None:
        if resumed and isinstance(options, BankOptions):
            options = replace(options, bank=None)  # the checkpoint holds it, and the file need not be there any more
        policy = setup.rollouts.policy
        assert isinstance(policy, TokenPolicy), "models are trained on tokens"
        if isinstance(policy.engine, LockstepEngine) and getattr(options, "writer", "") == "policy":
            raise ConfigError(NO_WRITER)
        limits = {"max_tokens": policy.max_reply_tokens, "max_context": policy.max_context}
        seed = derive_seed(setup.config.seed, Purpose.WRITE)
        self._writer = EngineChat(policy.engine, policy.chat, seed=seed, fresh=True, **limits)
        self.memory = options.start(MemoryTools(setup.folder.path, setup.prompts.library, self._writer))
        setup.rollouts.choose_skills = partial(skill_selectors, self.memory, training=False)

    def observe(self, backend: Backend, batch: RolloutBatch) -> dict[str, Any]:
        """Takes in an update and gives figures for the log; the first process's state becomes everybody's."""
        before = self._writer.tokens_generated
        log = self.memory.observe(batch)
        written = self._writer.tokens_generated - before
        if backend.num_processes > 1:
            state, written = backend.gather([(self.memory.state_dict(), written)])[0]
            self.memory.load_state_dict(state)
        return {**log, "tokens_written": written} if written else log

"""The learner: draw tasks, play groups, assign credit, make rows, weigh losses, validate, keep count."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from skillc_gym.errors import ConfigError
from trainers.advantages import Advantages, FloatArray, RolloutBatch
from trainers.base import Trajectory, load_object
from trainers.engines.registry import engine_spec
from trainers.evaluation.cuts import cut_warning
from trainers.evaluation.paired import paired_evaluation
from trainers.evaluation.validation import validation_record
from trainers.learner.backend import Backend
from trainers.learner.objective import Objective, configured, policy_value
from trainers.learner.remembering import SharedMemory
from trainers.learner.rows import OwnPart, RowAssembler
from trainers.learner.setup import Setup
from trainers.recipes.parts.rows import UpdateView
from trainers.rollout.collate import MicroBatch
from trainers.rollout.collect import derive_seed
from trainers.rollout.distributed import SharedRollouts
from trainers.rollout.task_sampling import sample_tasks
from trainers.rollout.training_rows import TrainingRow
from trainers.tracking.metrics import rollout_metrics

__all__ = ["Learner"]

_PLAY, _VALIDATE = 1, 3
"""What a seed is derived for; 2 orders the rollouts of an update."""


class Learner:
    """Turns episodes into micro-batches and micro-batches into losses; a backend does the rest.

    A run starts with :meth:`begin`. One update is: :meth:`prepare`, then for each of its micro-batches a forward pass
    and :meth:`loss`, with a step of the optimiser after every ``micro_batches`` of them, then :meth:`finish`. All that
    is random depends on the seed and the update's number alone.

    Args:
        setup: What it works with.

    Attributes:
        update: Updates done.
        stop_requested: Set to stop after the current update.
    """

    backend: Backend

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.config = setup.config
        self.method = setup.method
        self.update = 0
        self.stop_requested = False
        self.counters = {"tokens_generated": 0, "env_steps": 0}
        losses = [configured(loss, self.config) for loss in self.method.recipe.losses]
        exact = engine_spec(self.config.engine).exact_logprobs
        self.objective = Objective(losses, setup.prompts, setup.pad_id, exact_sampling=exact)
        self.rows = RowAssembler(self.config, self.objective, setup.pad_id)
        self.memory = SharedMemory(self.method.recipe.memory, setup)
        self.metrics = (rollout_metrics, *(load_object(path, "metric") for path in self.config.metrics))
        self._pending: dict[str, Any] = {}
        self._update_began, self._began = 0.0, time.monotonic()

    def attach(self, backend: Backend) -> None:
        """Says who owns the weights.

        Raises:
            ConfigError: The groups of an update cannot be dealt to so many processes.
        """
        if self.config.tasks_per_step % backend.num_processes:
            raise ConfigError(
                f"tasks_per_step ({self.config.tasks_per_step}) must be a multiple of the {backend.num_processes} "
                "training processes."
            )
        self.backend = backend
        self.shared = SharedRollouts(self.setup.rollouts, backend)

    @property
    def passes_per_update(self) -> int:
        """Forward and backward passes of one update."""
        return self.config.micro_batches * self.config.minibatches

    def begin(self) -> None:
        """Validates the policy to start from; in a run that goes on that lies behind."""
        if self.update == 0:
            self.validate()

    # One update --------------------------------------------------------------------------------------------------

    def prepare(self) -> list[MicroBatch]:
        """Plays the next update's rollouts; returns its micro-batches in the order of the passes."""
        update, began = self.update + 1, time.perf_counter()
        batch = self._play(update)
        played = time.perf_counter()
        batch = replace(batch, returns=self.memory.returns(batch))
        batch, advantages, diagnostics = self.method.credit(batch)
        diagnostics |= self.memory.observe(self.backend, batch)
        part = OwnPart(batch, [i for i, each in enumerate(batch.trajectories) if self._is_own(each)])
        batches = self.rows.update(self.backend, part, advantages, self._extra(part, advantages, update), update)
        self._pending = diagnostics
        for metric in self.metrics:
            self._pending |= metric(batch.trajectories)
        if self.config.stream_norms_every and update % self.config.stream_norms_every == 0:
            self._pending["stream_grad_norm"] = self._part_norms(part, advantages)
        for count in self.counters:
            self.counters[count] += self._pending[count]
        self.counters["tokens_generated"] += self._pending.get("tokens_written", 0)
        self._pending["seconds_generate"] = played - began
        self._pending["seconds_prepare"] = time.perf_counter() - played
        self._update_began = time.perf_counter()
        return batches

    def loss(self, batch: MicroBatch, figures: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """The micro-batch's part of the objective, a sum over its tokens.

        Args:
            batch: One of :meth:`prepare`'s.
            figures: A forward pass over ``batch.tokens`` with gradient, of all that ``objective.wants``.
        """
        value = self.objective(self.backend, batch, figures, self.update + 1)
        self.setup.progress.phase("update", self.objective.passes, self.passes_per_update)
        return value

    def finish(self, figures: Mapping[str, Any]) -> None:
        """Writes the update's line of metrics, and validates when it is due.

        Args:
            figures: What the optimiser has to say: ``grad_norm``, ``learning_rate``.
        """
        if not self._pending:
            return
        self.update += 1
        log = self.objective.take_log(self.backend)
        record = {
            "step": self.update,
            "event": "train",
            **self._pending,
            **log,
            "loss": log["loss"] / self.config.minibatches,
            **figures,
            "tokens_total": self.counters["tokens_generated"],
            "seconds_update": time.perf_counter() - self._update_began,
        }
        self._pending = {}
        self._write(record)
        if self.update % self.config.validate_every == 0 or self.over_budget:
            self.validate()

    def validate(self) -> None:
        """Plays the panel with and without skills, and tells the curriculum."""
        began, setup = time.perf_counter(), self.setup
        setup.rollouts.on_progress = lambda done, total: setup.progress.phase("validation", done, total)
        report = paired_evaluation(
            self.memory.remembering(self.shared),
            setup.split.panel,
            seed=derive_seed(self.config.seed, _VALIDATE),
            sampling=self.config.eval_sampling,
        )
        record = validation_record(report, self.method, self.update)
        record["seconds_validation"] = time.perf_counter() - began
        if self._is_main:
            setup.folder.write_transcripts(f"validation-{self.update:06d}", report.episodes)
            if warning := cut_warning(report, self.config.max_context):
                setup.progress.note(warning)
        self._write(record)

    @property
    def over_budget(self) -> bool:
        """Whether the budget of generated tokens is used up, the update in progress included."""
        budget = self.config.budget_tokens
        return budget is not None and self.counters["tokens_generated"] >= budget

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to train."""
        return self.update >= self.config.steps or self.over_budget

    def due_to_save(self, update: int) -> bool:
        """Whether a checkpoint follows an update, for its number's sake or because it is the last."""
        return update % self.config.save_every == 0 or update == self.config.steps or self.over_budget

    def agree_to_stop(self) -> bool:
        """Whether any process has been asked to stop, or its time is up."""
        minutes = self.config.max_minutes
        late = minutes is not None and time.monotonic() - self._began > 60 * minutes
        return any(self.backend.gather([self.stop_requested or late]))

    # State -------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint holds beside weights and optimiser, as JSON-able values."""
        return {
            "step": self.update,
            "config": self.config.to_json(),
            "task_digest": self.setup.split.digest,
            "method": self.method.state_dict(),
            "counters": self.counters,
            "memory": self.memory.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where :meth:`state_dict` was taken.

        Raises:
            CheckpointError: The state is of another method.
        """
        self.method.load_state_dict(state["method"])
        self.memory.load_state_dict(state.get("memory", {}))
        self.counters = {name: int(count) for name, count in state["counters"].items()}
        self.update = int(state["step"])

    # Parts of an update ------------------------------------------------------------------------------------------

    def _play(self, update: int) -> RolloutBatch:
        """Plays this process's groups; returns all processes' trajectories, group by group."""
        config, setup = self.config, self.setup
        tasks = sample_tasks(setup.split, config.tasks_per_step, config.draw, seed=config.seed, step=update)
        n_plus = [self.method.n_plus(setup.split.type_of[task], config.group_size) for task in tasks]
        setup.rollouts.on_progress = lambda done, total: setup.progress.phase("episodes", done, total)
        own = self.shared.collect_own(
            tasks,
            n_plus,
            config.group_size,
            seed=derive_seed(config.seed, _PLAY, update),
            sampling=config.sampling,
            skills=self.memory.skills(n_plus, config.group_size, training=True),
            shared_draws=self.memory.shared_draws,
        )
        scored = zip(own, self._scores(own), strict=True)
        everything = sorted(self.backend.gather(list(scored)), key=lambda entry: entry[0].group)
        trajectories = [trajectory for trajectory, _ in everything]
        if config.transcripts_every and update % config.transcripts_every == 0 and self._is_main:
            setup.folder.write_transcripts(f"train-{update:06d}", [each.episode for each in trajectories])
        batch = RolloutBatch.from_trajectories(trajectories, config.returns)
        names = self.method.recipe.advantage.inputs
        return replace(batch, scores={name: [scores[name] for _, scores in everything] for name in names})

    def _scores(self, own: Sequence[Trajectory]) -> list[dict[str, FloatArray]]:
        """The figures per own token that the advantage scheme asks for."""
        wants = self.method.recipe.advantage.inputs
        return self.rows.scores(self.backend, own, wants) if wants else [{} for _ in own]

    def _extra(self, own: OwnPart, advantages: Advantages, update: int) -> list[TrainingRow]:
        view = UpdateView(own.batch, advantages, own.numbers, self.setup.prompts, update, self.config.seed)
        return [row for maker in self.method.recipe.rows for row in maker(view)]

    def _part_norms(self, own: OwnPart, advantages: Advantages) -> dict[str, float] | None:
        """The gradient's norm if one part of the advantages were alone; None with several processes."""
        loss = self.objective.policy_loss
        if self.backend.num_processes > 1 or loss is None:
            return None
        bare = replace(loss, beta=0.0)
        everyone = range(len(own.numbers))
        norms = {}
        for name, values in advantages.parts.items():
            if not any(np.any(value) for value in values):
                norms[name] = 0.0
                continue
            rows = self.rows.rows(self.backend, own, Advantages(values), everyone)
            batches = self.rows.stack(self.backend, rows)
            norms[name] = self.backend.gradient_norm(
                policy_value(
                    bare,
                    batch,
                    self.backend.score(batch.tokens, {"logprobs"}),
                    exact_sampling=self.objective.exact_sampling,
                )
                for batch in batches
            )
        return norms

    def _write(self, record: dict[str, Any]) -> None:
        if self._is_main:
            self.setup.folder.append(record)
            self.setup.progress.record(record)
            for logger in self.setup.loggers:
                logger.log(record)

    def _is_own(self, trajectory: Trajectory) -> bool:
        return trajectory.group % self.backend.num_processes == self.backend.process_index

    @property
    def _is_main(self) -> bool:
        return self.backend.process_index == 0

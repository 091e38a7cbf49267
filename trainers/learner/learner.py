"""The learner: tasks, credit, rows, losses, validations and counts of one run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from skillc_gym.errors import ConfigError
from trainers.advantages import Advantages, RolloutBatch
from trainers.base import load_object
from trainers.base.trajectory import rollout_metrics
from trainers.config import TrainConfig
from trainers.engines.random import Purpose, derive_seed
from trainers.evaluation import cut_warning, paired_evaluation, validation_record
from trainers.evaluation.player import save_policy_memory
from trainers.learner.ahead import Ahead, Drawn, check_ahead
from trainers.learner.objective import Objective, policy_value, samples_exactly
from trainers.learner.redrawing import Played, check_redrawing, groups_of, other_tasks, split_by_difference
from trainers.learner.rows import RowAssembler, own_rollouts
from trainers.learner.setup import Backend, Setup, SharedMemory
from trainers.losses import ClippedPolicyGradient
from trainers.memory import skill_selectors
from trainers.recipes.parts.rows import UpdateView
from trainers.recipes.recipe import Recipe
from trainers.rollout.batches import MicroBatch, TrainingRow
from trainers.rollout.collect import SharedRollouts
from trainers.rollout.opening import sample_tasks
from trainers.tracking.files import json_line, parse_object, storing_weights
from trainers.tracking.policy_settings import save_policy_settings

Record = dict[str, Any]


def check_run(config: TrainConfig, recipe: Recipe, processes: int) -> None:
    """Refuses (ConfigError) what a method, or that number of training processes, cannot do."""
    if config.tasks_per_step % processes:
        raise ConfigError(
            f"tasks_per_step={config.tasks_per_step} is no multiple of {processes} training processes; change one."
        )
    if config.lora_dropout and (config.num_minibatches > 1 or not samples_exactly(config)):
        raise ConfigError(
            "lora_dropout puts its noise into ratios of probabilities, which num_minibatches above 1, rollouts_ahead "
            "and engine=vllm take; leave lora_dropout out, or these."
        )
    teachers = [loss.teacher.weights for loss in recipe.losses if loss.teacher]
    if config.reference_sync_every and "reference" in teachers:
        raise ConfigError(
            "reference_sync_every would move the teacher of method.teacher_weights=reference; leave one of the two out."
        )
    check_redrawing(config, recipe)
    check_ahead(config, recipe, processes)


def _figures_of(path: str, found: Any) -> Record:
    """What a metric of one's own says."""
    if not isinstance(found, Mapping):
        raise ConfigError(f"metrics={path}: it gives a dictionary of figures by name, got {found!r:.80}")
    try:
        json_line(found)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"metrics={path}: its figures are to be written as JSON: {error}") from error
    return {**found}


class Learner:
    """What an update does, part by part; :func:`trainers.learner.train` says in which order.

    All that is random depends on the seed and the update's number alone. ``update`` counts those done;
    ``stop_requested`` is set to stop after the current one; ``resumed`` says that a state follows. A ConfigError if
    groups cannot be dealt to the processes.
    """

    def __init__(self, setup: Setup, objective: Objective, backend: Backend, *, resumed: bool = False) -> None:
        self.setup, self.objective, self.backend = setup, objective, backend
        self.config, self.method = setup.config, setup.method
        check_run(self.config, self.method.recipe, backend.num_processes)
        self.ahead = Ahead(self.config, backend.copy()) if self.config.rollouts_ahead else None
        self._under_way: Drawn | None = None
        self.update = 0
        self.stop_requested = False
        self._left_out: list[Played] = []
        self.counters = {"tokens_generated": 0, "env_steps": 0}
        self.shared = SharedRollouts(setup.rollouts, backend)
        self.rows = RowAssembler(setup, objective, backend)
        self._shared_memory = SharedMemory(self.method.recipe.memory, setup, resumed=resumed)
        self.memory = self._shared_memory.memory
        self.metrics = {path: load_object(path, "metric") for path in self.config.metrics}
        self._told: Record = {}
        self._began = time.monotonic()

    # An update ---------------------------------------------------------------------------------------------------

    def draw(self, update: int) -> tuple[list[str], list[int]]:
        """The tasks of an update, and how many members of each one's group see the skill."""
        config, split = self.config, self.setup.split
        # What is played ahead is drawn while the update before it is still being counted. Where a validation is due
        # then, a cut that ranks the types waits for their latest gaps.
        step = max(self.schedule_step, update - 1)
        due = self.update < update - 1 and (update - 1) % config.validate_every == 0
        if not (due and self.method.curriculum.capacity_at(step)):
            self.method.advance(step)
        if self._under_way is not None and self._under_way.update == update:
            return list(self._under_way.tasks), list(self._under_way.n_plus)
        tasks = sample_tasks(split, config.tasks_per_step, config.task_sampling, seed=config.seed, step=update)
        return tasks, [self.method.n_plus(split.type_of[task], config.group_size) for task in tasks]

    def play(self, tasks: Sequence[str], n_plus: Sequence[int], update: int) -> RolloutBatch:
        """Plays this process's groups; returns all processes' trajectories, group by group.

        With ``redraw_groups``, groups that teach nothing are left out, and others played in their place.
        """
        config, names = self.config, self.method.recipe.advantage.inputs
        played, left_out = self._played(tasks, n_plus, update), list[Played]()
        for again in range(1, config.redraw_groups + 1):
            teaching, alike = split_by_difference(played, config.returns)
            others = other_tasks(self.setup.split, config, tasks, groups_of(alike), update + again * config.steps)
            if not others:
                break
            counts = [self.method.n_plus(self.setup.split.type_of[task], config.group_size) for task in others]
            tasks, left_out = [*tasks, *others], [*left_out, *alike]
            played = [*teaching, *self._played(others, counts, update, again)]
        if config.redraw_groups:
            teaching, alike = split_by_difference(played, config.returns)
            # An update of which nothing would be left keeps what it has: its step is one of nothing.
            played, left_out = (teaching, [*left_out, *alike]) if teaching else (played, left_out)
        self._left_out = left_out
        trajectories = [trajectory for trajectory, _ in played]
        if config.transcripts_every and update % config.transcripts_every == 0 and self.is_main:
            written = [*trajectories, *(trajectory for trajectory, _ in left_out)]
            self.setup.folder.write_transcripts(f"train-{update:06d}", [each.episode for each in written])
        batch = RolloutBatch.from_trajectories(trajectories, config.returns)
        return replace(batch, scores={name: [scores[name] for _, scores in played] for name in names})

    def _played(self, tasks: Sequence[str], n_plus: Sequence[int], update: int, again: int = 0) -> list[Played]:
        """All processes' trajectories of some groups, with the scores that the scheme asks for."""
        config, setup, names = self.config, self.setup, self.method.recipe.advantage.inputs
        setup.rollouts.on_progress = lambda done, total: setup.progress.phase("episodes", done, total)
        if self.ahead is not None and self._under_way is not None:
            own, self._under_way = self.ahead.collect(), None
        else:
            own = self.shared.collect_own(tasks, n_plus, **self._play_options(n_plus, update, again))
        scores = self.rows.scores(own, names) if names else [{} for _ in own]
        # Groups go round the processes by their numbers, of which each drawing has as many as the first.
        first = again * config.tasks_per_step
        numbered = [replace(trajectory, group=trajectory.group + first) for trajectory in own]
        scored = list(zip(numbered, scores, strict=True))
        return sorted(self.backend.gather(scored), key=lambda entry: entry[0].group)

    def _play_options(self, n_plus: Sequence[int], update: int, again: int = 0) -> dict[str, Any]:
        """How an update's groups are played, beside tasks and counts: see :meth:`GroupRollouts.collect`."""
        config = self.config
        return {
            "group_size": config.group_size,
            "seed": derive_seed(config.seed, Purpose.PLAY, update, *([again] if again else [])),
            "sampling": config.sampling,
            "skills": skill_selectors(self.memory, n_plus, config.group_size, training=True),
            # Where nothing is shown, rollouts of both conditions with shared draws would be copies of each other.
            "shared_draws": self.memory.shared_draws and config.skill_grade != "none",
        }

    def play_ahead(self, update: int) -> None:
        """With ``rollouts_ahead``, begins to play an update's groups, for :meth:`play` to take when its turn comes."""
        if self.ahead is not None and update <= self.config.steps:
            tasks, n_plus = self.draw(update)
            self._under_way = Drawn(update, tuple(tasks), tuple(n_plus))
            self.ahead.begin(self._under_way, **self._play_options(n_plus, update))

    def credit(self, batch: RolloutBatch) -> tuple[RolloutBatch, Advantages, Record]:
        """Asks memory, curriculum and scheme what each rollout is worth; counts what was played, for the log."""
        batch = replace(batch, returns=self.memory.returns(batch))
        batch, advantages, figures = self.method.credit(batch)
        figures |= self._shared_memory.observe(self.backend, batch)
        # Metrics describe what was played, in vain or not; all others what is learned from.
        played = [*batch.trajectories, *(trajectory for trajectory, _ in self._left_out)]
        figures |= rollout_metrics(played)
        self._told = {}
        for path, metric in self.metrics.items():
            self._told |= _figures_of(path, metric(played))
        if self.config.redraw_groups:
            figures["groups_left_out"] = groups_of(self._left_out)
        for count in self.counters:
            self.counters[count] += figures[count]
        self.counters["tokens_generated"] += figures.get("tokens_written", 0)
        return batch, advantages, figures

    def extra_rows(self, batch: RolloutBatch, advantages: Advantages, update: int) -> tuple[list[TrainingRow], Record]:
        """What this process trains on beside its rollouts, and for the log how much all processes do."""
        config, own = self.config, own_rollouts(batch, self.backend)
        weighing = config.num_minibatches, config.loss_aggregation, config.longest_trajectory
        view = UpdateView(batch, advantages, own, self.setup.prompts, update, config.seed, *weighing)
        made = [row for maker in self.method.recipe.rows for row in maker(view)]
        if not self.method.recipe.rows:
            return made, {}
        count = self.backend.all_reduce_sum(torch.tensor([len(made)], device=self.backend.device))
        return made, {"extra_rows": int(count)}

    def part_norms(self, batch: RolloutBatch, advantages: Advantages) -> dict[str, float] | None:
        """The gradient's norm if one part of the advantages were alone; None with several processes or a teacher."""
        loss = self.objective.policy_loss
        if self.backend.num_processes > 1 or loss is None or loss.teacher is not None:
            return None
        return {
            name: self._norm(replace(loss, kl_coef=0.0), batch, Advantages(values)) if any(map(np.any, values)) else 0.0
            for name, values in advantages.parts.items()
        }

    def loss(self, batch: MicroBatch, update: int) -> torch.Tensor:
        """A forward pass over a micro-batch and its part of the objective, a sum over its tokens."""
        figures = self.backend.forward(batch.tokens, self.objective.wants)
        value = self.objective(self.backend, batch, figures, update)
        passes = self.config.micro_batches * self.config.num_minibatches
        self.setup.progress.phase("update", self.objective.passes, passes)
        return value

    def finish(self, figures: Record) -> None:
        """Counts an update as done and writes its line of metrics."""
        self.update += 1
        log = self.objective.take_log(self.backend, self.config.num_minibatches)
        total = self.counters["tokens_generated"]
        record = {"step": self.update, "event": "train", **figures, **log, "tokens_total": total}
        if taken := sorted(self._told.keys() & record.keys()):
            names, metrics = ", ".join(taken), ", ".join(self.metrics)
            raise ConfigError(f"metrics={metrics}: the names {names} are the run's own; give these figures others")
        self._write({**record, **self._told})

    def validate(self) -> None:
        """Plays the panel with and without skills, tells the curriculum, writes what both say, and keeps the best."""
        began, setup = time.perf_counter(), self.setup
        setup.rollouts.on_progress = lambda done, total: setup.progress.phase("validation", done, total)
        report = paired_evaluation(
            self.shared,
            setup.split.panel,
            seed=derive_seed(self.config.seed, Purpose.VALIDATE),
            sampling=self.config.eval_sampling,
        )
        retired = self.method.curriculum.update(
            report.sr_with, report.sr_without, self.update, standard_error=report.gap_standard_error
        )
        record = validation_record(report, self.method, self.update, retired)
        if self.is_main:
            setup.folder.write_transcripts(f"validation-{self.update:06d}", report.episodes)
            if warning := cut_warning(report, self.config.max_context):
                setup.progress.note(warning)
        self._write({**record, "seconds_validation": time.perf_counter() - began})
        if self.config.load_best_at_end:
            self._keep_best()

    def _keep_best(self) -> None:
        """Writes the policy down if the last validation is the best so far."""
        folder = self.setup.folder
        # The lines of metrics outlive an interruption, and those of a later step are gone when a run is resumed.
        best = self.is_main and (folder.best_validation()["step"] == self.update or not folder.best_path.is_dir())
        if any(self.backend.gather([best])):
            with folder.new_policy(best=True, commit=self.is_main) as path:
                self.write_policy(path)

    # When to stop ------------------------------------------------------------------------------------------------

    @property
    def schedule_step(self) -> int:
        """Updates done, or as many as the used share of the budget of tokens comes to, if that is more."""
        budget = self.config.budget_tokens
        used = self.counters["tokens_generated"] * self.config.steps // budget if budget else 0
        return max(self.update, used)

    @property
    def finished(self) -> bool:
        """Whether all updates are done, or the budget of tokens is used up, the update in progress included."""
        return self.schedule_step >= self.config.steps

    def agree_to_stop(self, *, timed: bool = True) -> bool:
        """Whether any process has been asked to stop, or its time, if that counts, is up."""
        minutes = self.config.max_minutes
        late = timed and minutes is not None and time.monotonic() - self._began > 60 * minutes
        return any(self.backend.gather([self.stop_requested or late]))

    # State -------------------------------------------------------------------------------------------------------

    @property
    def is_main(self) -> bool:
        """Whether this process writes files."""
        return self.backend.process_index == 0

    def save(self) -> None:
        """Writes a checkpoint, whole or not at all; all processes together."""
        folder, config = self.setup.folder, self.config
        partial = folder.saved.partial(self.update, make=self.is_main)
        # The folder is there before another process writes into it, and complete before it gets its name.
        self.backend.gather([None])
        with storing_weights(partial):
            self.backend.save(partial)
            if self.ahead is not None and self._under_way is not None:
                self.ahead.save(partial)
        self.backend.gather([None])
        if self.is_main:
            self.describe_policy(partial)
            folder.saved.commit(partial, self.update, self.state_dict(), config.keep_checkpoints)
        self.backend.gather([None])

    def write_policy(self, path: Path) -> None:
        """Writes the policy as a folder that can be taken for a model; all processes together."""
        self.backend.save_policy(path)
        if self.is_main:
            self.describe_policy(path)

    def describe_policy(self, path: Path) -> None:
        """Writes beside weights what commands read there: what the policy plays with, and what its memory shows."""
        save_policy_settings(path, self.config)
        if not self.method.recipe.memory.shows_library:
            save_policy_memory(path, self.config, self.memory.state_dict())

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint holds beside weights and optimiser, as JSON-able values."""
        return {
            "step": self.update,
            "config": self.config.to_json(),
            "task_digest": self.setup.split.digest,
            **self.setup.read,
            "method": self.method.state_dict(),
            "counters": self.counters,
            "memory": self.memory.state_dict(),
            **({} if self._under_way is None else {"under_way": asdict(self._under_way)}),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where :meth:`state_dict` was taken; a CheckpointError if it is of another method."""
        self.method.load_state_dict(state["method"])
        self.memory.load_state_dict(state.get("memory", {}))
        self.counters = {name: int(count) for name, count in state["counters"].items()}
        self.update = int(state["step"])
        if "under_way" in state:
            drawn = state["under_way"]
            self._under_way = Drawn(int(drawn["update"]), tuple(drawn["tasks"]), tuple(drawn["n_plus"]))

    def resume_ahead(self, checkpoint: Path) -> None:
        """Plays what was under way when a checkpoint was written, with the weights of then."""
        if self.ahead is not None and self._under_way is not None:
            drawn = self._under_way
            self.ahead.resume(checkpoint, drawn, **self._play_options(drawn.n_plus, drawn.update))

    def _norm(self, loss: ClippedPolicyGradient, batch: RolloutBatch, advantages: Advantages) -> float:
        everyone = range(len(batch.trajectories))
        rows = self.rows.rows(batch, everyone, advantages, everyone)
        exact = self.objective.exact_sampling
        return self.backend.gradient_norm(
            policy_value(loss, micro, self.backend.score(micro.tokens, {"logprobs"}), exact_sampling=exact)
            for micro in self.rows.stack(rows)
        )

    def _write(self, record: Record) -> None:
        if self.is_main:
            self.setup.folder.append(record)
            self.setup.progress.record(record)
            written = parse_object(json_line(record))  # metrics of one's own may be of NumPy or torch
            for logger in self.setup.loggers:
                logger.log(written)

"""The trainer: TRL's GRPOTrainer with our rollouts, advantages and objective.

TRL keeps the optimiser, mixed precision, LoRA, gradient checkpointing, data parallelism, vLLM and the checkpoint's
format. Replaced are the four seams that ``tests/trainers/test_trl_contract.py`` pins: ``_prepare_inputs`` (an update's
rollouts become its micro-batches), ``_compute_loss`` (weights per trajectory, any number of rows), ``log`` and
``_save_checkpoint``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import PrinterCallback, Trainer, TrainerCallback
from trl import GRPOTrainer

from skillc_gym.errors import ConfigError
from trainers.advantages import AdvantageBatch
from trainers.backends.trl.arguments import grpo_arguments
from trainers.backends.trl.logprobs import own_logprobs
from trainers.config import TrainConfig
from trainers.engines.registry import engine_spec
from trainers.engines.types import Sampling
from trainers.evaluation.paired import paired_evaluation
from trainers.evaluation.validation import validation_record
from trainers.losses.policy_gradient import Objective, objective
from trainers.recipes.state import MethodState
from trainers.rollout.collate import WeightedRow, collate, micro_batches, minibatches, weigh
from trainers.rollout.collect import GroupRollouts, Rollout, stream_seed
from trainers.rollout.distributed import SharedRollouts, gather_objects
from trainers.rollout.task_sampling import TaskSplit, draw_tasks
from trainers.tracking.metrics import EpisodeSummary, summarise, train_record
from trainers.tracking.progress import Progress
from trainers.tracking.run_folder import RunFolder

__all__ = ["SkillTrainer"]

_CORRECTION_CAP = 2.0
Tensors = dict[str, torch.Tensor]


class SkillTrainer(GRPOTrainer):  # type: ignore[misc]
    """Trains a policy on groups of episodes whose advantages a method computes.

    One update is: draw tasks, play a group for each, compute advantages over all processes, then one or more optimiser
    steps. After every update a line of metrics is written, every few a validation and a checkpoint. All that is random
    depends on the seed and the update's number alone.

    Args:
        config: The run's settings.
        folder: Where the run is written.
        split: Training tasks and the curriculum's panel.
        method: Allocation, advantages and curriculum, with their state.
        rollouts: Environments; its engine is set to the trainer's.
        progress: Shown to a person.
        **options: ``model``, ``processing_class``, ``peft_config`` for TRL.
    """

    def __init__(
        self,
        config: TrainConfig,
        *,
        folder: RunFolder,
        split: TaskSplit,
        method: MethodState,
        rollouts: GroupRollouts,
        progress: Progress,
        **options: Any,
    ) -> None:
        from datasets import Dataset

        self.config = config
        self.folder = folder
        self.split = split
        self.method = method
        self.progress = progress
        self.stop_requested = False
        self.counters = {"tokens_generated": 0, "env_steps": 0}
        args = grpo_arguments(config, folder)
        rows = args.max_steps * config.micro_batches * args.world_size
        super().__init__(
            args=args,
            reward_funcs=_no_reward,
            train_dataset=Dataset.from_dict({"prompt": [""] * rows}),
            callbacks=[_Flow(self)],
            **options,
        )
        self.remove_callback(PrinterCallback)
        if config.tasks_per_step % self.accelerator.num_processes:
            raise ConfigError(
                f"tasks_per_step ({config.tasks_per_step}) must be a multiple of the {self.accelerator.num_processes} "
                "training processes."
            )
        self._own = rollouts
        self.shared = SharedRollouts(rollouts, self.accelerator)
        self._updates: list[Tensors] = []
        self._update_began = 0.0
        self._sent_step = -1
        self._pending: dict[str, Any] = {}
        self._sums: list[torch.Tensor] = []

    @property
    def update(self) -> int:
        """Updates done."""
        return int(self.state.global_step) // self.config.minibatches

    # One update --------------------------------------------------------------------------------------------------

    def _prepare_inputs(self, generation_batch: Any) -> Tensors:
        """Gives out an update's micro-batches one by one; plays the rollouts when they are used up."""
        per_update = self.config.micro_batches * self.config.minibatches
        place = self._step % per_update
        if place == 0:
            self._updates = self._new_update()
        elif not self._updates:
            raise ConfigError("The trainer was started in the middle of an update; resume from a checkpoint.")
        batch: Tensors = self._updates[place]
        return batch

    def _new_update(self) -> list[Tensors]:
        config, update = self.config, self.update + 1
        began = time.perf_counter()
        own, episodes = self._play(update)
        played = time.perf_counter()
        streams = bool(config.stream_norms_every) and update % config.stream_norms_every == 0
        advantages, diagnostics = self.method.advantages(AdvantageBatch.from_episodes(episodes), streams=streams)
        mine = [i for i, episode in enumerate(episodes) if episode.group % self._processes == self._process]
        batches = self._tensors(own, advantages[mine].tolist(), update)
        self._pending = train_record(episodes, diagnostics)
        if streams:
            named = {name: [values[i] for i in mine] for name, values in diagnostics["streams"].items()}
            self._pending["stream_grad_norm"] = self._stream_norms(own, named, update)
        self.counters["tokens_generated"] += self._pending["tokens_generated"]
        self.counters["env_steps"] += self._pending["env_steps"]
        self._pending["seconds_generate"] = played - began
        self._pending["seconds_prepare"] = time.perf_counter() - played
        self._update_began = time.perf_counter()
        return batches

    def _play(self, update: int) -> tuple[list[Rollout], list[EpisodeSummary]]:
        """Plays this process's groups; returns them and the figures of all processes' episodes, group by group."""
        config = self.config
        tasks = draw_tasks(self.split, config.tasks_per_step, config.draw, seed=config.seed, step=update)
        n_plus = [self.method.n_plus(self.split.type_of[task], config.group_size) for task in tasks]
        self._own.on_progress = lambda done, total: self.progress.phase("episodes", done, total)
        own = self.shared.collect_own(
            tasks,
            n_plus,
            config.group_size,
            seed=stream_seed(config.seed, 1, update),
            sampling=Sampling(config.temperature),
        )
        if config.transcripts_every and update % config.transcripts_every == 0:
            everything = sorted(gather_objects(self.accelerator, own), key=lambda rollout: rollout.group)
            if self.is_world_process_zero():
                self.folder.write_transcripts(f"train-{update:06d}", [rollout.episode for rollout in everything])
        figures = gather_objects(self.accelerator, [summarise(rollout) for rollout in own])
        return own, sorted(figures, key=lambda episode: episode.group)

    def _tensors(self, rollouts: Sequence[Rollout], advantages: Sequence[float], update: int) -> list[Tensors]:
        """The micro-batches of every optimiser step, with the log-probabilities that the objective compares with."""
        config = self.config
        batches = [
            collate(rows, self._tokenizer.pad_token_id, self.accelerator.device)
            for part in minibatches(len(rollouts), config.minibatches, stream_seed(config.seed, 2, update))
            for rows in self._micro_batches(rollouts, advantages, part)
        ]
        for tensors in batches:
            with torch.no_grad():
                if config.minibatches > 1:
                    tensors["old_logprobs"] = self._logprobs(self.model, tensors)[0]
                if config.beta:
                    tensors["ref_logprobs"] = self._reference(tensors)
        return batches

    def _micro_batches(
        self, rollouts: Sequence[Rollout], advantages: Sequence[float], part: Sequence[int]
    ) -> list[list[WeightedRow]]:
        tokens = sum(rollouts[i].model_tokens for i in part)
        counts = torch.tensor([len(part), tokens], device=self.accelerator.device)
        trajectories, tokens = (int(n) for n in self.accelerator.reduce(counts, reduction="sum"))
        weighted = weigh(
            [rollout.rows for rollout in rollouts],
            advantages,
            part,
            self.config.loss_aggregation,
            trajectories=trajectories,
            tokens=tokens,
        )
        if not self.config.beta:
            # Without a penalty such rows have no gradient at all.
            weighted = [row for row in weighted if row.advantage != 0.0]
        return micro_batches(weighted, self.config.micro_batches)

    def _reference(self, tensors: Tensors) -> torch.Tensor:
        if self.ref_model is not None:
            return self._logprobs(self.ref_model, tensors)[0]
        with self.accelerator.unwrap_model(self.model).disable_adapter():
            return self._logprobs(self.model, tensors)[0]

    def _logprobs(self, model: Any, tensors: Tensors) -> tuple[torch.Tensor, torch.Tensor | None]:
        head = self.accelerator.unwrap_model(model).get_output_embeddings()
        with self.accelerator.autocast():
            return own_logprobs(model, head, tensors["input_ids"], tensors["mask"], temperature=self.config.temperature)

    def _compute_loss(self, model: Any, inputs: Tensors) -> torch.Tensor:
        """The micro-batch's part of the objective; the parts of all micro-batches and processes add up."""
        logprobs, entropies = self._logprobs(model, inputs)
        result = self._objective(logprobs, inputs, inputs["advantages"], self.config.beta)
        weighted = inputs["mask"] * (inputs["row_weights"] > 0)[:, None]
        assert entropies is not None
        entropy = (entropies.detach() * weighted).sum()
        self._sums.append(torch.stack([result.loss.detach(), result.kl_sum, result.clipped, entropy, result.tokens]))
        self.progress.phase("update", len(self._sums), self.config.micro_batches * self.config.minibatches)
        # Data parallelism averages gradients over the processes; ours are parts of one sum.
        return result.loss * self._processes

    def _objective(self, logprobs: torch.Tensor, inputs: Tensors, advantages: torch.Tensor, beta: float) -> Objective:
        correction = None
        if not engine_spec(self.config.engine).exact_logprobs:
            old = inputs.get("old_logprobs", logprobs.detach())
            correction = torch.exp(old - inputs["sampling_logprobs"]).clamp(max=_CORRECTION_CAP)
        return objective(
            logprobs,
            advantages,
            inputs["mask"],
            inputs["row_weights"],
            old_logprobs=inputs.get("old_logprobs"),
            ref_logprobs=inputs.get("ref_logprobs"),
            correction=correction,
            clip=self.config.clip,
            beta=beta,
        )

    def _stream_norms(
        self, rollouts: Sequence[Rollout], streams: dict[str, list[float]], update: int
    ) -> dict[str, float] | None:
        """The gradient's norm if one stream of the advantages were alone; None with several processes."""
        if self._processes > 1:
            return None
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        norms = {}
        for name, advantages in streams.items():
            total = [torch.zeros_like(p) for p in parameters]
            for rows in self._micro_batches(rollouts, advantages, range(len(rollouts))):
                tensors = collate(rows, self._tokenizer.pad_token_id, self.accelerator.device)
                logprobs, _ = self._logprobs(self.model, tensors)
                loss = self._objective(logprobs, tensors, tensors["advantages"], 0.0).loss
                gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
                total = [t if g is None else t + g for t, g in zip(total, gradients, strict=True)]
            norms[name] = float(torch.stack([gradient.norm() for gradient in total]).norm())
        return norms

    def sync_vllm(self) -> None:
        """Sends the weights to vLLM if they have changed since the last time."""
        if self.state.global_step != self._sent_step:
            self.vllm_generation.sync_weights()
            self._sent_step = int(self.state.global_step)

    # After an update ---------------------------------------------------------------------------------------------

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Writes the update's line of metrics, and validates when it is due."""
        Trainer.log(self, logs, start_time)
        if "loss" not in logs or not self._pending or self.state.global_step % self.config.minibatches:
            return
        sums = self.accelerator.reduce(torch.stack(self._sums).sum(0), reduction="sum")
        loss, kl, clipped, entropy, tokens = sums.tolist()
        record = {
            "step": self.update,
            "event": "train",
            **self._pending,
            "loss": loss / self.config.minibatches,
            "grad_norm": logs.get("grad_norm"),
            "learning_rate": logs.get("learning_rate"),
            "kl": kl / max(tokens, 1),
            "clip_fraction": clipped / max(tokens, 1),
            "entropy": entropy / max(tokens, 1),
            "tokens_total": self.counters["tokens_generated"],
            "seconds_update": time.perf_counter() - self._update_began,
        }
        self._pending, self._sums = {}, []
        self._write(record)
        if self.update % self.config.validate_every == 0:
            self.validate()

    def validate(self) -> None:
        """Plays the panel with and without skills, and tells the curriculum."""
        began = time.perf_counter()
        self._own.on_progress = lambda done, total: self.progress.phase("validation", done, total)
        report = paired_evaluation(
            self.shared,
            self.split.panel,
            seed=stream_seed(self.config.seed, 3),
            sampling=Sampling(self.config.eval_temperature, self.config.eval_greedy),
        )
        record = validation_record(report, self.method, self.update)
        record["seconds_validation"] = time.perf_counter() - began
        if self.is_world_process_zero():
            self.folder.write_transcripts(f"validation-{self.update:06d}", report.episodes)
        self._write(record)

    def _write(self, record: dict[str, Any]) -> None:
        if self.is_world_process_zero():
            self.folder.append(record)
            self.progress.record(record)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Saves model, optimiser, schedule, random states and the method's state; whole or not at all."""
        step = self.update
        if self.is_world_process_zero():
            self.folder.partial(step)
        self.accelerator.wait_for_everyone()
        self.args.output_dir = str(self.folder.checkpoints_path / f".partial-{step:06d}")
        partial = Path(self.args.output_dir)
        try:
            Trainer._save_checkpoint(self, model, trial)
        finally:
            self.args.output_dir = str(self.folder.path)
        self.accelerator.wait_for_everyone()
        if self.is_world_process_zero():
            _lift(partial / f"checkpoint-{self.state.global_step}")
            self.folder.commit(partial, step, self._meta(step), self.config.keep_checkpoints)
        self.accelerator.wait_for_everyone()

    def agree_to_stop(self) -> bool:
        """Whether any process has been asked to stop."""
        return any(gather_objects(self.accelerator, [self.stop_requested]))

    def _meta(self, step: int) -> dict[str, Any]:
        return {
            "step": step,
            "config": self.config.to_json(),
            "task_digest": self.split.digest,
            "method": self.method.state_dict(),
            "counters": self.counters,
        }

    @property
    def _processes(self) -> int:
        return int(self.accelerator.num_processes)

    @property
    def _process(self) -> int:
        return int(self.accelerator.process_index)


class _Flow(TrainerCallback):  # type: ignore[misc]
    """Decides after each optimiser step whether to save and whether to stop."""

    def __init__(self, trainer: SkillTrainer) -> None:
        self.trainer = trainer

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        config = self.trainer.config
        if state.global_step % config.minibatches:
            return
        update = state.global_step // config.minibatches
        stop = self.trainer.agree_to_stop()
        control.should_save = stop or update % config.save_every == 0 or update == config.steps
        control.should_training_stop = control.should_training_stop or stop


def _lift(folder: Path) -> None:
    """Moves a folder's contents up into its parent."""
    for entry in folder.iterdir():
        entry.rename(folder.parent / entry.name)
    folder.rmdir()


def _no_reward(**_: Any) -> list[float]:
    raise ConfigError("Rewards come from the environments; TRL's reward functions are never called.")

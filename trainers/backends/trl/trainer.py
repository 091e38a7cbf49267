"""TRL's GRPOTrainer as an optimisation loop: what is optimised comes from the learner.

TRL keeps the optimiser, mixed precision, LoRA, gradient checkpointing, data parallelism, vLLM and the checkpoint's
format. Replaced are the four seams that ``tests/trainers/backends/test_trl_contract.py`` pins: ``_prepare_inputs`` (an
update's micro-batches come from the learner), ``_compute_loss`` (so does their loss), ``log`` and ``_save_checkpoint``
(which report back to it).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import torch
from transformers import PrinterCallback, Trainer, TrainerCallback
from trl import GRPOTrainer

from skillc_gym.errors import ConfigError
from trainers.backends.trl.arguments import grpo_arguments
from trainers.backends.trl.colocated import in_words, rest, started_with, wake
from trainers.backends.trl.extras import Extras
from trainers.backends.trl.figures import own_figures
from trainers.backends.trl.sharding import check_sharding
from trainers.engines.registry import engine_spec
from trainers.engines.transformers import sliding_window
from trainers.learner import Learner
from trainers.rollout.collate import MicroBatch, Tokens
from trainers.rollout.collect import derive_seed
from trainers.tracking.integrity import storing_weights

__all__ = ["SkillTrainer", "StoppedEarlyError"]


_DROPOUT = 4
"""What a seed is derived for, beside the learner's."""


class StoppedEarlyError(Exception):
    """Somebody asked to stop before the first update."""


class SkillTrainer(GRPOTrainer):  # type: ignore[misc]
    """Drives a learner: one of its updates is ``minibatches`` of TRL's optimiser steps.

    Args:
        learner: Gives micro-batches and losses, and is told how each update went.
        **options: ``model``, ``processing_class``, ``peft_config`` for TRL.
    """

    def __init__(self, learner: Learner, **options: Any) -> None:
        from datasets import Dataset

        self.learner = learner
        self.folder = learner.setup.folder
        args = grpo_arguments(learner)
        rows = args.max_steps * learner.config.micro_batches * args.world_size
        serving = engine_spec(learner.config.engine).server_options(learner.config)
        with started_with(serving) as effective, warnings.catch_warnings():
            # TRL announces that another way to name Liger's kernels will follow.
            warnings.filterwarnings("ignore", ".*use_liger_kernel", FutureWarning)
            super().__init__(
                args=args,
                reward_funcs=_no_reward,
                train_dataset=Dataset.from_dict({"prompt": [""] * rows}),
                callbacks=[_UpdateCallback(self)],
                **options,
            )
        if effective:
            learner.setup.progress.note(in_words(effective))
        self.remove_callback(PrinterCallback)
        config = learner.config
        check_sharding(self.accelerator, learner.objective, moving_reference=config.reference_sync_every > 0)
        policy = self.accelerator.unwrap_model(self.model)
        if config.share_prefixes and sliding_window(policy) is not None:
            raise ConfigError("share_prefixes needs a model whose layers all attend to everything; leave it out.")
        self.extras = Extras(
            learner.objective,
            policy,
            config.temperature,
            reference=self._moving_reference(),
            every=config.reference_sync_every,
            weight=config.reference_sync_weight,
        )
        if self.extras.average is not None:
            # What will be sharded is not on the device yet, and the average stays whole.
            self.extras.average.to(self.accelerator.device)
        self._batches: list[MicroBatch] = []
        self._sent_steps: dict[str, int] = {}

    def _moving_reference(self) -> Any:
        if not self.learner.config.reference_sync_every:
            return None
        if self.ref_model is None:
            raise ConfigError(
                "reference_sync_every moves a reference, and with beta=0 this run has none; leave one out."
            )
        return self.ref_model

    def _prepare_inputs(self, generation_batch: Any) -> MicroBatch:
        """Gives out an update's micro-batches one by one; asks for the next update's when they are used up."""
        place = self._step % self.learner.passes_per_update
        if place == 0:
            self._batches = self.learner.prepare()
            self._seed_dropout()
            self._rest()
        elif not self._batches:
            raise ConfigError("The trainer was started in the middle of an update; resume from a checkpoint.")
        batch: MicroBatch = self._batches[place]
        return batch

    def _seed_dropout(self) -> None:
        """Makes what layers draw in an update depend on its number alone; a resumed run then draws the same."""
        learner = self.learner
        seed = derive_seed(learner.config.seed, _DROPOUT, learner.update + 1)
        torch.manual_seed((seed + int(self.accelerator.process_index)) % 2**63)

    def _compute_loss(self, model: Any, inputs: MicroBatch) -> torch.Tensor:
        """The micro-batch's part of the objective; the parts of all micro-batches and processes add up."""
        figures = self.figures(model, inputs.tokens, self.learner.objective.wants)
        # Data parallelism averages gradients over the processes; ours are parts of one sum.
        return self.learner.loss(inputs, figures) * int(self.accelerator.num_processes)

    def figures(self, model: Any, tokens: Tokens, wants: Collection[str]) -> dict[str, torch.Tensor]:
        """A forward pass of one of the models; see :func:`own_figures`."""
        output_layer = self.accelerator.unwrap_model(model).get_output_embeddings()
        with self.accelerator.autocast():
            return own_figures(
                model,
                output_layer,
                tokens,
                wants,
                temperature=self.learner.config.temperature,
                heads=self.extras.heads,
                share=self.learner.config.share_prefixes,
            )

    def reference_figures(self, tokens: Tokens, wants: Collection[str]) -> dict[str, torch.Tensor]:
        """A forward pass of the weights that training began with."""
        if self.ref_model is not None:
            return self.figures(self.ref_model, tokens, wants)
        with self.accelerator.unwrap_model(self.model).disable_adapter():
            return self.figures(self.model, tokens, wants)

    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        """TRL's, which trains the losses' own heads too."""
        optimizer: torch.optim.Optimizer = super().create_optimizer(model)
        self.extras.add_to(optimizer)
        return optimizer

    def if_changed(self, name: str, send: Callable[[], object]) -> None:
        """Sends the weights somewhere if they have changed since the last time; all processes do it together."""
        if self.state.global_step != self._sent_steps.get(name, -1):
            send()
            self._sent_steps[name] = int(self.state.global_step)

    def sync_vllm(self) -> None:
        """Sends the weights to vLLM if they have changed since the last time, or if it slept."""
        self.if_changed("vllm", lambda: wake(self.vllm_generation))

    def _rest(self) -> None:
        """Gives vLLM's memory to the update, if it may sleep."""
        if self.args.use_vllm and rest(self.vllm_generation):
            self._sent_steps.pop("vllm", None)

    def begin(self) -> None:
        """Starts the run, once the model is where it will be trained: sharded, and loaded from a checkpoint.

        Raises:
            StoppedEarlyError: Somebody asked to stop.
        """
        self._sent_steps.clear()
        self.learner.begin()
        if self.learner.agree_to_stop():
            raise StoppedEarlyError

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Tells the learner that an update is over."""
        Trainer.log(self, logs, start_time)
        if "loss" in logs and self.state.global_step % self.learner.config.minibatches == 0:
            self.learner.finish({name: logs.get(name) for name in ("grad_norm", "learning_rate")})

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Saves model, optimiser, schedule, random states and the learner's state; whole or not at all."""
        step = self.learner.update
        if self.is_world_process_zero():
            self.folder.partial(step)
        self.accelerator.wait_for_everyone()
        self.args.output_dir = str(self.folder.checkpoints_path / f".partial-{step:06d}")
        partial = Path(self.args.output_dir)
        try:
            with storing_weights(partial):
                Trainer._save_checkpoint(self, model, trial)
        finally:
            self.args.output_dir = str(self.folder.path)
        self.accelerator.wait_for_everyone()
        if self.is_world_process_zero():
            _lift(partial / f"checkpoint-{self.state.global_step}")
            with storing_weights(partial):
                self.extras.save(partial)
            self.folder.commit(partial, step, self.learner.state_dict(), self.learner.config.keep_checkpoints)
        self.accelerator.wait_for_everyone()


# transformers is taken as untyped (pyproject.toml), so its base class is Any to mypy; it has to be the base, for the
# trainer calls every event on every callback.
class _UpdateCallback(TrainerCallback):  # type: ignore[misc]
    """Tends to what is trained beside the model; decides after each update whether to save and whether to stop."""

    def __init__(self, trainer: SkillTrainer) -> None:
        self.trainer = trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.trainer.begin()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.trainer.extras.share_gradients(self.trainer.accelerator)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.trainer.extras.after_step()
        learner = self.trainer.learner
        if state.global_step % learner.config.minibatches:
            return
        self.trainer.extras.after_update(state.global_step // learner.config.minibatches)
        stop = learner.agree_to_stop()
        control.should_save = stop or learner.due_to_save(state.global_step // learner.config.minibatches)
        control.should_training_stop = control.should_training_stop or stop or learner.over_budget


def _lift(folder: Path) -> None:
    """Moves a folder's contents up into its parent."""
    for entry in folder.iterdir():
        entry.rename(folder.parent / entry.name)
    folder.rmdir()


def _no_reward(**_: Any) -> list[float]:
    raise ConfigError("Rewards come from the environments; TRL's reward functions are never called.")

"""TRL's GRPOTrainer without its loop: it makes model, optimiser, schedule and vLLM, and wraps and saves them.

TRL and transformers keep the optimiser, mixed precision, LoRA, gradient checkpointing, data parallelism, vLLM and the
checkpoint's format. Replaced are two seams: ``_inner_training_loop`` ends where its loop would begin, for the loop is
:func:`trainers.learner.train`, and ``create_optimizer`` adds the losses' own heads.
``tests/trainers/backends/test_trl_contract.py`` pins what this stands on.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import AutocastKwargs
from transformers import Trainer
from transformers.trainer import TRAINER_STATE_NAME
from trl import GRPOTrainer
from trl.trainer import grpo_trainer

from skillc_gym.errors import ConfigError
from trainers.backends.trl.arguments import (
    check_sharding,
    grpo_arguments,
    lora_config,
    sharded_by_layers,
    started_with,
)
from trainers.backends.trl.weights import Extras, merged_weights
from trainers.config import TrainConfig
from trainers.engines.registry import engine_spec
from trainers.learner import Objective, check_reference
from trainers.models import limit_of
from trainers.models.loading import exchanged


class SkillTrainer(GRPOTrainer):  # type: ignore[misc]
    """Holds what is trained, and in ``extras`` what is trained or kept beside; ``effective`` is what vLLM was given."""

    def __init__(self, config: TrainConfig, objective: Objective, model: Any, tokenizer: Any) -> None:
        from datasets import Dataset

        serving, arguments = engine_spec(config.engine).llm_options(config), grpo_arguments(config, objective)
        # All weights take part in every pass, padding included, but what a model sees pictures with.
        arguments.ddp_find_unused_parameters = model.config.get_text_config() is not model.config
        # TRL loads its reference from where the policy's configuration says that the policy is from.
        named, quiet = exchanged(model.config, "_name_or_path", config.reference_path), _quiet()
        with started_with(serving) as self.effective, named, quiet, sharded_by_layers(), warnings.catch_warnings():
            # TRL announces that another way to name Liger's kernels will follow.
            warnings.filterwarnings("ignore", ".*use_liger_kernel", FutureWarning)
            super().__init__(
                args=arguments,
                model=model,
                processing_class=tokenizer,
                peft_config=lora_config(config, model),
                reward_funcs=_no_reward,
                train_dataset=Dataset.from_dict({"prompt": [""]}),  # it must have one; nobody reads it
            )
        policy = self.accelerator.unwrap_model(self.model)
        if config.lora_rank and self.args.use_vllm:
            self.vllm_generation._iter_named_params = partial(merged_weights, policy, self.accelerator)
        check_reference(config, needed=objective.needs_reference)
        _check_fit(policy, self.ref_model and self.accelerator.unwrap_model(self.ref_model), config)
        moving = config.reference_sync_every > 0
        check_sharding(self.accelerator, objective, moving_reference=moving)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.args.seed)  # TRL has seeded each process otherwise, and heads begin alike on all
            self.extras = Extras(objective, policy, config, self.ref_model if moving else None)
        if self.extras.average is not None:
            # What will be sharded is not on the device yet, and the average stays whole.
            self.extras.average.to(self.accelerator.device)

    def create_accelerator_and_postprocess(self) -> None:
        """Lets autocast alone round under FSDP2, as it does in one process."""
        super().create_accelerator_and_postprocess()
        if self.is_fsdp_enabled:
            # Accelerate gathers, sums up and gives out everything in bfloat16, log-probabilities and gradients too.
            self.accelerator.state.fsdp_plugin.mixed_precision_policy = None
            # Gathered weights go after each layer; their copies would stay until the pass is over.
            self.accelerator.autocast_handler = AutocastKwargs(cache_enabled=False)

    def prepare(self, checkpoint: Path | None) -> None:
        """Makes optimiser and schedule, wraps the model, and loads a checkpoint into all of them."""
        if checkpoint is not None:
            self.extras.load(checkpoint)
        self.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        # Engines turn it to evaluation while they generate, and back.
        self.model_wrapped.train()

    def _inner_training_loop(
        self, batch_size: int | None = None, args: Any = None, resume_from_checkpoint: str | None = None, **_: Any
    ) -> None:
        """What transformers does before its loop."""
        self.accelerator.free_memory()
        steps = self.args.max_steps
        # As if the loop had one epoch of all steps, without hyperparameter search; a checkpoint's state is loaded.
        self._init_training_state(steps, steps, 1, resume_from_checkpoint, None)
        model, _loader = self._prepare_for_training(steps, None, resume_from_checkpoint)
        self._load_rng_state(resume_from_checkpoint)
        model.zero_grad()

    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        """TRL's, which trains the losses' own heads too."""
        optimizer: torch.optim.Optimizer = super().create_optimizer(model)
        self.extras.add_to(optimizer)
        return optimizer

    def step(self) -> dict[str, float | None]:
        """Clips, and takes a step of optimiser and schedule, as transformers' loop does."""
        model = self.model_wrapped
        self.extras.share_gradients(self.accelerator)
        trained = self.extras.beside(model)
        norm = self._get_grad_norm(trained, grad_norm=self._clip_grad_norm(trained))
        self.optimizer.step()
        rate = self._get_learning_rate()
        if not self.accelerator.optimizer_step_was_skipped:
            self.lr_scheduler.step()
        model.zero_grad()
        self.extras.modules.zero_grad()
        self.state.global_step += 1
        return {"grad_norm": norm.item() if isinstance(norm, torch.Tensor) else norm, "learning_rate": rate}

    def save(self, folder: Path) -> None:
        """Saves model, optimiser, schedule, random states and what is kept beside them."""
        self.save_model(str(folder))
        self._save_optimizer_and_scheduler(str(folder))
        self._save_scaler(str(folder))
        self._save_rng_state(str(folder))
        if self.args.should_save:
            self.state.save_to_json(str(folder / TRAINER_STATE_NAME))
            self.extras.save(folder)

    def restore(self, checkpoint: Path) -> None:
        """Loads a checkpoint's weights alone."""
        self._load_from_checkpoint(str(checkpoint))

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        """Not transformers' own, which passes over weights that checkpoints call otherwise than the model in memory."""
        if self.is_fsdp_enabled or self.is_deepspeed_enabled or hasattr(self.model, "peft_config"):
            Trainer._load_from_checkpoint(self, resume_from_checkpoint, model)
            return
        kind = type(self.accelerator.unwrap_model(self.model))
        saved = kind.from_pretrained(resume_from_checkpoint, dtype=self.model.dtype, local_files_only=True)
        self.model.load_state_dict(saved.state_dict())


def _check_fit(policy: Any, reference: Any, config: TrainConfig) -> None:
    if reference is None:
        return
    theirs, own = (model.config.get_text_config().vocab_size for model in (reference, policy))
    if theirs != own:
        raise ConfigError(
            f"The reference {config.reference_path} has {theirs} tokens and the policy {own}; a reference must have "
            "the policy's own."
        )
    limit = limit_of(reference.config)
    if limit is not None and config.max_context > limit:
        raise ConfigError(
            f"The reference {config.reference_path} was made for rows of {limit} tokens, and max_context is "
            f"{config.max_context}; give max_context={limit}."
        )
    shapes = [[each.shape for each in model.parameters()] for model in (reference, policy)]
    if config.reference_sync_every and shapes[0] != shapes[1]:
        raise ConfigError(
            f"reference_sync_every mixes the policy's weights into the reference, and {config.reference_path} is built "
            "otherwise than the policy; leave one of the two out."
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps TRL from saying that something is ignored which its reference model is made with."""
    logger = logging.getLogger(grpo_trainer.__name__)

    def others(record: logging.LogRecord) -> bool:
        return "model_init_kwargs" not in str(record.msg)

    logger.addFilter(others)
    try:
        yield
    finally:
        logger.removeFilter(others)


def _no_reward(**_: Any) -> list[float]:
    raise ConfigError("Rewards come from the environments; TRL's reward functions are never called.")

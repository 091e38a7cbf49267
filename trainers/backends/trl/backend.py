"""TRL as a backend: the learner's view of a trainer, and a run's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import torch

from trainers.backends.trl.adapters import lora_config, save_merged
from trainers.backends.trl.sharding import WholeCopy, zero_stage
from trainers.backends.trl.trainer import SkillTrainer, StoppedEarlyError
from trainers.engines.registry import TrainerModel, engine_spec
from trainers.engines.types import Engine
from trainers.learner import Learner, Weights
from trainers.models import load_model
from trainers.rollout.chat_tokens import ChatTokens
from trainers.rollout.collate import Tokens
from trainers.tracking.run_folder import make_folder

__all__ = ["TrlBackend"]

T = TypeVar("T")


class TrlBackend:
    """Owns a :class:`SkillTrainer` and attaches itself to its learner.

    Args:
        learner: The algorithm.
        tokenizer: Saved with the policy.

    Raises:
        MissingDataError: There is no model where the configuration says.
        ConfigError: The run's folder cannot be made.
    """

    def __init__(self, learner: Learner, tokenizer: Any) -> None:
        self.learner = learner
        model = load_model(learner.config)
        make_folder(learner.setup.folder.path)
        self.trainer = SkillTrainer(
            learner, model=model, processing_class=tokenizer, peft_config=lora_config(learner.config)
        )
        learner.attach(self)

    @property
    def device(self) -> torch.device:
        """The accelerator's."""
        device: torch.device = self.trainer.accelerator.device
        return device

    @property
    def process_index(self) -> int:
        """The accelerator's."""
        return int(self.trainer.accelerator.process_index)

    @property
    def num_processes(self) -> int:
        """The accelerator's."""
        return int(self.trainer.accelerator.num_processes)

    @property
    def is_main(self) -> bool:
        """Whether this process writes files."""
        return bool(self.trainer.is_world_process_zero())

    def gather(self, objects: list[T]) -> list[T]:
        """All processes' objects, process by process, on every process."""
        if self.num_processes == 1:
            return objects
        from accelerate.utils import gather_object

        gathered: list[T] = gather_object(objects)
        return gathered

    def add_up(self, tensor: torch.Tensor) -> torch.Tensor:
        """The sum over processes, on every process."""
        total: torch.Tensor = self.trainer.accelerator.reduce(tensor, reduction="sum")
        return total

    def score(self, tokens: Tokens, wants: Collection[str], weights: Weights = "policy") -> dict[str, torch.Tensor]:
        """One forward pass with the given weights."""
        if weights == "reference":
            return self.trainer.reference_figures(tokens, wants)
        model = self.trainer.extras.average if weights == "average" else self.trainer.model
        return self.trainer.figures(model, tokens, wants)

    def gradient_norm(self, losses: Iterable[torch.Tensor]) -> float:
        """Norm of the gradient of the losses' sum with respect to the trained weights."""
        parameters = [p for p in self.trainer.model.parameters() if p.requires_grad]
        total = [torch.zeros_like(p) for p in parameters]
        for loss in losses:
            gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
            total = [t if g is None else t + g for t, g in zip(total, gradients, strict=True)]
        return float(torch.stack([gradient.norm() for gradient in total]).norm())

    def engine(self, chat: ChatTokens) -> Engine:
        """The configured engine over the trained weights."""
        trainer, config = self.trainer, self.learner.config
        return engine_spec(config.engine).for_trainer(
            TrainerModel(
                trainer.accelerator.unwrap_model(trainer.model),
                chat.eos_ids,
                config,
                autocast=torch.bfloat16 if trainer.args.bf16 else None,
                share_prefixes=config.share_prefixes,
                sharded=trainer.is_fsdp_enabled or zero_stage(trainer.accelerator) == 3,
                whole=self._whole if trainer.is_fsdp_enabled else None,
                processes=self.num_processes,
                server=getattr(trainer, "vllm_generation", None),
                sync=trainer.sync_vllm,
            )
        )

    def _whole(self) -> tuple[Any, Callable[[], object]]:
        """A whole copy of the sharded weights on this process, and what brings it up to date."""
        trainer = self.trainer
        made = WholeCopy(trainer.accelerator.unwrap_model(trainer.model), self.device)
        return made.model, lambda: trainer.if_changed("copy", made.refresh)

    def fit(self, checkpoint: Path | None) -> None:
        """Trains to the end, or until the learner is asked to stop."""
        if checkpoint is not None:
            self.trainer.extras.load(checkpoint)
        with suppress(StoppedEarlyError):
            self.trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)

    def restore(self, checkpoint: Path) -> None:
        """Loads a checkpoint's weights alone."""
        self.trainer._load_from_checkpoint(str(checkpoint))

    def save_policy(self, path: Path) -> None:
        """Writes the trained policy with its tokenizer, adapters merged into it; all processes must do it together."""
        trainer, config = self.trainer, self.learner.config
        if not config.lora_rank:
            trainer.save_model(str(path))
            return
        state = trainer.accelerator.get_state_dict(trainer.model_wrapped)
        if self.is_main:
            save_merged(config, state, path)
            trainer.processing_class.save_pretrained(path)

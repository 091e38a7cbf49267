"""TRL as a backend: what a learner asks of a trainer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import torch

from skillc_gym.errors import ConfigError
from trainers.backends.trl.arguments import has_first_weights, sleep, wake_up, zero_stage
from trainers.backends.trl.figures import own_figures
from trainers.backends.trl.trainer import SkillTrainer
from trainers.backends.trl.weights import WholeCopy, merged_weights
from trainers.config import TrainConfig
from trainers.engines.random import Purpose, derive_seed
from trainers.engines.registry import TrainerModel, engine_spec
from trainers.engines.transformers import evaluating
from trainers.engines.types import Engine
from trainers.learner import Objective, Weights, WeightsCopy
from trainers.models import load_model, train_upper
from trainers.rollout.batches import Tokens
from trainers.rollout.chat_tokens import ChatTokens
from trainers.tracking import Progress, make_folder

T = TypeVar("T")


class TrlBackend:
    """Owns a :class:`SkillTrainer`; ``progress`` is told what vLLM was started with."""

    def __init__(self, config: TrainConfig, objective: Objective, tokenizer: Any, progress: Progress) -> None:
        self.config = config
        model = load_model(config)
        if config.upper_layers is not None:
            train_upper(model, config.upper_layers)
        make_folder(Path(config.run_folder))
        self.trainer = SkillTrainer(config, objective, model, tokenizer)
        accelerator = self.trainer.accelerator
        self.device: torch.device = accelerator.device
        self.process_index, self.num_processes = int(accelerator.process_index), int(accelerator.num_processes)
        self._sent_steps: dict[str, int] = {}
        self._copies = config.precision == "bfloat16_copy"
        if self._copies and (self.trainer.is_fsdp_enabled or self._deepspeed):
            raise ConfigError(
                "precision=bfloat16_copy needs whole weights in every process; take bfloat16 with sharding."
            )
        if config.precision == "pure_bfloat16" and self._deepspeed:
            raise ConfigError(
                "DeepSpeed trains weights in float32 whatever they are loaded in; take precision=bfloat16."
            )
        if effective := sorted(self.trainer.effective.items()):
            progress.note("vLLM was started with " + ", ".join(f"{name}={value}" for name, value in effective))

    def gather(self, objects: list[T]) -> list[T]:
        """All processes' objects, process by process, on every process."""
        if self.num_processes == 1:
            return objects
        from accelerate.utils import gather_object

        gathered: list[T] = gather_object(objects)
        return gathered

    def all_reduce_sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """The sum over processes, on every process."""
        total: torch.Tensor = self.trainer.accelerator.reduce(tensor, reduction="sum")
        return total

    def engine(self, chat: ChatTokens) -> Engine:
        """The configured engine over the trained weights."""
        trainer, config = self.trainer, self.config
        return engine_spec(config.engine).for_trainer(
            TrainerModel(
                trainer.accelerator.unwrap_model(trainer.model),
                chat.eos_ids,
                config,
                autocast=torch.bfloat16 if trainer.args.bf16 else None,
                sharded=trainer.is_fsdp_enabled or zero_stage(trainer.accelerator) == 3,
                whole=self._whole if trainer.is_fsdp_enabled or self._copies else None,
                processes=self.num_processes,
                server=getattr(trainer, "vllm_generation", None),
                sync=lambda: self._if_changed("vllm", lambda: wake_up(trainer.vllm_generation)),
            )
        )

    def copy(self) -> WeightsCopy:
        """A whole copy of the trained weights, in the type in which they play."""
        trainer = self.trainer
        policy = trainer.accelerator.unwrap_model(trainer.model)
        made = WholeCopy(policy, self.device, torch.bfloat16 if self._copies else None)
        return WeightsCopy(made.model, made.refresh, torch.bfloat16 if trainer.args.bf16 else None)

    # Training ----------------------------------------------------------------------------------------------------

    def prepare(self, checkpoint: Path | None) -> None:
        """Makes optimiser and schedule, wraps the model, and loads a checkpoint into all of them."""
        self.trainer.prepare(checkpoint)
        self._sent_steps.clear()
        if self.trainer.args.use_vllm and checkpoint is None and has_first_weights(self.trainer.vllm_generation):
            self._sent_steps["vllm"] = int(self.trainer.state.global_step)

    def start_update(self, update: int) -> None:
        """Seeds what layers draw, the same in a resumed run; lets vLLM sleep, if it may."""
        seed = derive_seed(self.config.seed, Purpose.DROPOUT, update)
        torch.manual_seed((seed + self.process_index) % 2**63)
        if self.trainer.args.use_vllm and sleep(self.trainer.vllm_generation):
            self._sent_steps.pop("vllm", None)

    def accumulate(self, *, last: bool) -> AbstractContextManager[object]:
        """Leaves gradients to each process, but for the last pass; sharded ones are summed up after every pass."""
        accelerator = self.trainer.accelerator
        # While this is false accelerate takes no step of optimiser and schedule, and does not clip.
        accelerator.gradient_state._set_sync_gradients(last)
        if last or self._deepspeed or self.trainer.is_fsdp_enabled:
            return nullcontext()
        unsummed: AbstractContextManager[object] = accelerator.no_sync(model=self.trainer.model_wrapped)
        return unsummed

    def forward(self, tokens: Tokens, wants: Collection[str]) -> dict[str, torch.Tensor]:
        """A forward pass through what data parallelism has wrapped."""
        return self._figures(self.trainer.model_wrapped, tokens, wants)

    def backward(self, loss: torch.Tensor) -> None:
        """Data parallelism averages gradients over the processes; ours are parts of one sum."""
        scaled = {"scale_wrt_gas": False} if self._deepspeed else {}
        self.trainer.accelerator.backward(loss * self.num_processes, **scaled)

    def step(self) -> Mapping[str, float | None]:
        """Takes an optimiser step; after the last one of an update, average and reference follow the policy."""
        figures = self.trainer.step()
        update, open_steps = divmod(self.trainer.state.global_step, self.config.num_minibatches)
        if not open_steps:
            self.trainer.extras.after_update(update)
        return figures

    # Looking -----------------------------------------------------------------------------------------------------

    def score(self, tokens: Tokens, wants: Collection[str], weights: Weights = "policy") -> dict[str, torch.Tensor]:
        """One forward pass with the given weights; without gradient nothing is dropped out in it."""
        trainer = self.trainer
        kept = {"policy": trainer.model, "average": trainer.extras.average, "reference": trainer.ref_model}
        model = kept[weights]
        adapters: AbstractContextManager[object] = nullcontext()
        if weights == "reference" and model is None:
            model, adapters = trainer.model, trainer.accelerator.unwrap_model(trainer.model).disable_adapter()
        with adapters, nullcontext() if torch.is_grad_enabled() else evaluating(model):
            return self._figures(model, tokens, wants)

    def gradient_norm(self, losses: Iterable[torch.Tensor]) -> float:
        """Norm of the gradient of the losses' sum with respect to the trained weights."""
        parameters = [p for p in self.trainer.model.parameters() if p.requires_grad]
        total = [torch.zeros_like(p) for p in parameters]
        for loss in losses:
            gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
            total = [t if g is None else t + g for t, g in zip(total, gradients, strict=True)]
        return float(torch.stack([gradient.norm() for gradient in total]).norm())

    # Keeping -----------------------------------------------------------------------------------------------------

    def save(self, folder: Path) -> None:
        """Writes a checkpoint in transformers' format."""
        self.trainer.save(folder)

    def restore(self, checkpoint: Path) -> None:
        """Loads a checkpoint's weights alone, as far as that can be."""
        # DeepSpeed's are loaded by its engine, which preparing makes.
        (self.trainer.prepare if self._deepspeed else self.trainer.restore)(checkpoint)

    def save_policy(self, path: Path) -> None:
        """Writes the trained policy with its tokenizer, adapters merged into it; all processes must do it together."""
        trainer, writes = self.trainer, self.process_index == 0
        if not self.config.lora_rank:
            trainer.save_model(str(path))
            return
        policy = trainer.accelerator.unwrap_model(trainer.model)
        merged = merged_weights(policy, trainer.accelerator)
        weights = {name: value.cpu() for name, value in merged if writes}
        if writes:
            base = policy.get_base_model()
            kept = base.state_dict()
            # Of some models buffers are part of the checkpoint, such as the router's biases of mixtures of experts.
            buffers = ((name, buffer) for name, buffer in base.named_buffers() if name in kept)
            weights |= {name.replace(".base_layer", ""): buffer.cpu() for name, buffer in buffers}
            base.save_pretrained(path, state_dict=weights)
            trainer.processing_class.save_pretrained(path)

    @property
    def _deepspeed(self) -> bool:
        return bool(self.trainer.is_deepspeed_enabled)

    def _figures(self, model: Any, tokens: Tokens, wants: Collection[str]) -> dict[str, torch.Tensor]:
        accelerator, config = self.trainer.accelerator, self.config
        # The float32 average of a policy in bfloat16 is scored as the policy is.
        averaged = config.precision == "pure_bfloat16" and model is self.trainer.extras.average
        with accelerator.autocast():
            return own_figures(
                model,
                accelerator.unwrap_model(model).get_output_embeddings(),
                tokens,
                wants,
                temperature=config.temperature,
                heads=self.trainer.extras.heads,
                share=config.share_prefixes,
                dtype=torch.bfloat16 if self._copies or averaged else None,
            )

    def _if_changed(self, name: str, send: Callable[[], object]) -> None:
        """Sends the weights somewhere if they have changed since the last time; all processes do it together."""
        steps = int(self.trainer.state.global_step)
        if steps != self._sent_steps.get(name, -1):
            send()
            self._sent_steps[name] = steps

    def _whole(self) -> tuple[Any, Callable[[], object]]:
        """A whole copy of the weights on this process, and what brings it up to date."""
        made = self.copy()
        return made.model, lambda: self._if_changed("copy", made.refresh)

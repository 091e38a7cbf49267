"""TRL's, PEFT's and vLLM's own arguments for a run; vLLM's waking and sleep; what sharding must not be asked for."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from typing import Any

import torch
from trl import GRPOConfig
from trl.generation import vllm_generation
from trl.import_utils import is_vllm_available
from trl.trainer import grpo_trainer

from skillc_gym.errors import ConfigError, missing_extra
from trainers.base import check_sharded
from trainers.config import TrainConfig
from trainers.engines.registry import engine_spec
from trainers.engines.vllm import check_vllm, replaceable_weights
from trainers.learner import Objective
from trainers.models.loading import exchanged


def grpo_arguments(config: TrainConfig, objective: Objective) -> GRPOConfig:
    """TRL's own arguments for a run; its batches of prompts are never read, so their sizes are the smallest allowed."""
    if config.liger and find_spec("liger_kernel") is None:
        raise ConfigError(
            "liger=true needs liger-kernel, which is not installed: pip install liger-kernel, or take liger=false."
        )
    if config.optimiser.endswith("8bit") and find_spec("bitsandbytes") is None:
        raise ConfigError(
            f"optimiser={config.optimiser} needs bitsandbytes, which is not installed: pip install bitsandbytes, or "
            "take optimiser=adamw."
        )
    # A launcher's, which is the user's default for all runs, would win over precision=.
    os.environ.pop("ACCELERATE_MIXED_PRECISION", None)
    cuda = torch.cuda.is_available()
    serving = engine_spec(config.engine).backend_arguments(config)
    # TRL's default for gradient_checkpointing is an alias that newer transformers warn of.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        args = _arguments(config, cuda=cuda, reference=objective.needs_reference, **serving)
    if args.use_vllm:
        if not is_vllm_available():
            raise missing_extra("vllm", "vllm")
        check_vllm(config, int(args.world_size))
    return args


def lora_config(config: TrainConfig, model: Any) -> Any:
    """PEFT's settings; None where all weights are trained. A ConfigError where the model has none of the targets."""
    if not config.lora_rank:
        return None
    from peft import LoraConfig

    _refuse_tied(config.lora_targets, model)
    everywhere = config.lora_targets == ("all-linear",)
    if not everywhere:
        _require_targets(config.lora_targets, model)
    return LoraConfig(
        r=config.lora_rank,
        lora_alpha=config.lora_alpha,
        lora_dropout=config.lora_dropout,
        target_modules="all-linear" if everywhere else list(config.lora_targets),
        task_type="CAUSAL_LM",
    )


def _refuse_tied(targets: Sequence[str], model: Any) -> None:
    ends = model.get_input_embeddings(), model.get_output_embeddings()
    names = [f".{name}" for name, module in model.named_modules() if any(module is end for end in ends)]
    tied = ends[1] is not None and ends[0].weight is ends[1].weight
    if tied and any(name.endswith(f".{each}") for name in names for each in targets):
        raise ConfigError(
            f"lora_targets={','.join(targets)}: this model's output layer is its embeddings, and merged adapters on "
            "either would be lost or change both; leave the embeddings and the output layer out."
        )


def _require_targets(targets: Sequence[str], model: Any) -> None:
    names = [f".{name}" for name, _ in model.named_modules()]
    absent = [target for target in targets if not any(name.endswith(f".{target}") for name in names)]
    if not absent:
        return
    if "all-linear" in absent:
        raise ConfigError(f"lora_targets={','.join(targets)}: all-linear stands alone, without names of modules.")
    from transformers.pytorch_utils import Conv1D

    kinds = (torch.nn.Linear, Conv1D)
    there = {name.rpartition(".")[2] for name, module in model.named_modules() if isinstance(module, kinds)}
    raise ConfigError(
        f"lora_targets={','.join(absent)} names no module of the model; it has {', '.join(sorted(there))}. Name some "
        "of them, or all-linear."
    )


def _arguments(config: TrainConfig, *, cuda: bool, reference: bool, **serving: Any) -> GRPOConfig:
    # AdamW is transformers' own choice, which is the fused one where there is one.
    optimiser = {} if config.optimiser == "adamw" else {"optim": config.optimiser}
    revision = {"revision": config.revision} if config.revision and not config.reference_model else {}
    return GRPOConfig(
        output_dir=config.run_folder,
        use_cpu=not cuda,
        seed=config.seed % 2**32,  # numpy takes no larger one; what draws in an update has seeds of its own
        per_device_train_batch_size=2,
        num_generations=2,
        gradient_accumulation_steps=config.micro_batches,
        steps_per_generation=config.micro_batches * config.num_minibatches,
        max_steps=config.steps * config.num_minibatches,
        max_completion_length=config.max_reply_tokens,
        temperature=config.temperature,
        learning_rate=config.learning_rate,
        lr_scheduler_type=f"{config.schedule}_with_warmup" if config.schedule == "constant" else config.schedule,
        warmup_steps=config.warmup_steps,
        **optimiser,
        weight_decay=config.weight_decay,
        adam_beta1=config.adam_beta1,
        adam_beta2=config.adam_beta2,
        adam_epsilon=config.adam_epsilon,
        max_grad_norm=config.max_grad_norm,
        # The policy is loaded already; this is for the reference, which goes where its process is: by itself TRL would
        # spread it over all GPUs in some ways to start several processes, FSDP among them.
        model_init_kwargs={"device_map": None, **revision},
        # The penalty is the learner's; here it only decides whether there is a reference model.
        beta=(config.kl_coef or 1.0) if reference else 0.0,
        epsilon=config.clip,
        loss_type="grpo",
        bf16=config.precision == "bfloat16" or (cuda and config.precision == "auto"),
        gradient_checkpointing=config.gradient_checkpointing,
        use_liger_kernel=config.liger,
        shuffle_dataset=False,
        remove_unused_columns=False,
        ignore_data_skip=True,
        dataloader_pin_memory=False,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        ddp_timeout=config.ddp_timeout,
        disable_tqdm=True,
        **serving,
    )


# vLLM -----------------------------------------------------------------------------------------------------------------


@contextmanager
def started_with(options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Gives a ``vllm.LLM`` that TRL starts within further arguments; yields all that it was started with."""
    effective: dict[str, Any] = {}
    plain = getattr(vllm_generation, "LLM", None)
    if plain is None or not options:
        yield effective
        return

    def start(**given: Any) -> Any:
        effective.update({**given, **options})
        with replaceable_weights():
            return plain(**effective)

    with exchanged(vllm_generation, "LLM", start):
        yield effective


def has_first_weights(generation: Any) -> bool:
    """Whether vLLM has loaded the weights that training begins with: a server may hold others, a sleeping one none."""
    return generation.mode == "colocate" and not generation._llm_weights_sleeping


def wake_up(generation: Any) -> None:
    """Sends the weights to TRL's ``VLLMGeneration``, whose vLLM is awake from then on."""
    # This wakes what holds the weights.
    generation.sync_weights()
    if _sleeps(generation):
        generation.llm.wake_up(tags=["kv_cache"])


def sleep(generation: Any) -> bool:
    """Lets a vLLM that may sleep give its memory back; tells whether it has lost its weights by that."""
    if not _sleeps(generation) or generation._llm_weights_sleeping:
        return False
    generation.llm.sleep(level=2)
    generation._llm_weights_sleeping = True
    return True


def _sleeps(generation: Any) -> bool:
    return generation.mode == "colocate" and bool(generation.enable_sleep_mode)


# Sharding -------------------------------------------------------------------------------------------------------------


def check_sharding(accelerator: Any, objective: Objective, *, moving_reference: bool) -> None:
    """Refuses (ConfigError) what would fail in the middle of a sharded run; the message names the setting to change."""
    plugin = getattr(accelerator.state, "fsdp_plugin", None)
    if plugin is not None:
        _check_fsdp(plugin)
    if plugin is None and zero_stage(accelerator) != 3:
        return
    if plugin is None and objective.average_decay is not None:
        raise ConfigError(
            "A teacher that averages the weights needs them whole, and DeepSpeed has sharded them; shard with FSDP2."
        )
    check_sharded(objective.heads, moving_reference)


def _check_fsdp(plugin: Any) -> None:
    if plugin.fsdp_version != 2:
        raise ConfigError(
            f"Sharding needs FSDP2, and the launcher was asked for FSDP{plugin.fsdp_version}; pass --fsdp_version 2."
        )
    if "FULL" not in str(plugin.state_dict_type):
        raise ConfigError(
            "Checkpoints and the trained policy are whole files, and the launcher was asked for sharded ones; pass "
            "--fsdp_state_dict_type FULL_STATE_DICT."
        )
    if plugin.cpu_ram_efficient_loading:
        raise ConfigError(
            "Every process loads the weights before they are sharded, and the launcher was asked to load them on one "
            "alone; pass --fsdp_cpu_ram_efficient_loading false."
        )


def sharded_by_layers() -> AbstractContextManager[None]:
    """TRL shards its reference as one unit, all of which every pass would gather at once."""
    plain = grpo_trainer.prepare_fsdp

    def prepare(model: Any, accelerator: Any) -> Any:
        for layer in getattr(model.get_decoder(), "layers", ()):
            plain(layer, accelerator)
        return plain(model, accelerator)

    return exchanged(grpo_trainer, "prepare_fsdp", prepare)


def zero_stage(accelerator: Any) -> int:
    """DeepSpeed's ZeRO stage; 0 without DeepSpeed."""
    plugin = getattr(accelerator.state, "deepspeed_plugin", None)
    return int(plugin.zero_stage) if plugin is not None else 0

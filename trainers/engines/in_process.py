"""Generates in this process with transformers: the default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from skillc_gym.errors import ConfigError
from trainers.base import Natural, check_values
from trainers.engines.registry import CheckpointModel, EngineSpec, TrainerModel, read_options
from trainers.engines.sharing import SharingEngine
from trainers.engines.transformers import TransformersEngine
from trainers.models import cast


@dataclass(frozen=True)
class InProcessOptions:
    """What ``engine.NAME=`` sets for ``engine=transformers``; a ConfigError where it cannot be."""

    draft_tokens: Natural = 0
    """Tokens drafted from what was said before, which one pass confirms or refuses; 0 for none."""

    def __post_init__(self) -> None:
        check_values(self, prefix="engine.")


_read = partial(read_options, InProcessOptions, "transformers")


def engine_for_trainer(trainer: TrainerModel, draft_tokens: int = 0) -> TransformersEngine:
    """Generates with the trained weights in place, or with a whole copy where the backend makes one."""
    model: Any = trainer.model
    refresh: Callable[[], object] | None = None
    if trainer.whole is not None:
        model, refresh = trainer.whole()
    elif trainer.sharded:
        raise ConfigError(
            "The transformers engine cannot generate with weights that DeepSpeed has sharded; use engine=vllm, or "
            "shard with FSDP2."
        )
    return _engine(trainer, model, autocast=trainer.autocast, refresh=refresh, draft_tokens=draft_tokens)


def engine_for_checkpoint(checkpoint: CheckpointModel, draft_tokens: int = 0) -> TransformersEngine:
    """Plays a checkpoint."""
    model, autocast = checkpoint_model(checkpoint)
    return _engine(checkpoint, model, autocast=autocast, draft_tokens=draft_tokens)


def _engine(asked: TrainerModel | CheckpointModel, model: Any, **options: Any) -> TransformersEngine:
    kind = SharingEngine if asked.settings.share_prefixes else TransformersEngine
    # Models may declare more ends than their template has, where other engines stop as well.
    declared = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    ends = {*asked.eos_ids, *(declared if isinstance(declared, list) else [declared])} - {None}
    rows = asked.settings.max_parallel
    if isinstance(asked, TrainerModel):  # whose groups are played together, however few at once are asked for
        rows = max(rows, asked.settings.group_size)
    return kind(model, sorted(ends), max_rows=rows, **options)


def checkpoint_model(checkpoint: CheckpointModel) -> tuple[torch.nn.Module, torch.dtype | None]:
    """The checkpoint's model where it computes, and its autocast's type.

    On a GPU it is in bfloat16 unless float32 is asked for; on a processor bfloat16 is autocast, where it is asked for.
    """
    cuda, precision = torch.cuda.is_available(), checkpoint.settings.precision
    model: torch.nn.Module = checkpoint.load()
    if (cuda and precision != "float32") or precision == "bfloat16_copy":
        cast(model.parameters(), torch.bfloat16)
    return model.to("cuda" if cuda else "cpu"), torch.bfloat16 if not cuda and precision == "bfloat16" else None


ENGINE = EngineSpec(
    lambda trainer: engine_for_trainer(trainer, _read(trainer.settings.engine_options).draft_tokens),
    lambda checkpoint: engine_for_checkpoint(checkpoint, _read(checkpoint.settings.engine_options).draft_tokens),
    read_options=_read,
)
"""Generates in this process, with the trained weights in place."""

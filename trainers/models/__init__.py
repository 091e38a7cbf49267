"""Where models come from: names of folders and hubs, checkpoints of transformers, pretrained weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillc_gym.lazy import lazy_exports

if TYPE_CHECKING:
    from trainers.models.loading import (
        BACKENDS,
        attend_without_plans,
        bfloat16_warning,
        cast,
        check_model,
        context_limit,
        hub_access,
        limit_of,
        load_model,
        load_plain_config,
        load_plain_tokenizer,
        load_tokenizer,
        train_upper,
        within_model,
        without_bars,
    )
    from trainers.models.pretrained import get_model
else:
    __getattr__, __dir__ = lazy_exports(__name__)

__all__ = ["BACKENDS", "check_model", "context_limit", "hub_access", "load_model", "load_plain_config"]
__all__ += ["load_plain_tokenizer", "load_tokenizer", "train_upper", "within_model", "without_bars"]
__all__ += ["attend_without_plans", "bfloat16_warning", "cast", "get_model", "limit_of"]

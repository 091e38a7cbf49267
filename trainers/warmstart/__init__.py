"""The tiny policy: a small Qwen3-shaped model with a word tokenizer, warm-started by behaviour cloning.

It is a real Hugging Face checkpoint folder, so everything that trains it trains a large model too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainers.base.lazy import lazy_exports

if TYPE_CHECKING:
    from trainers.warmstart.cloning import CloningConfig
    from trainers.warmstart.demonstrations import DemonstrationConfig
    from trainers.warmstart.make import CARD, PolicyRecipe, make_policy, sha256_of_file, write_card
    from trainers.warmstart.measurement import measure_start
    from trainers.warmstart.model import SMALL, TINY, PolicySize
    from trainers.warmstart.recipes import data_recipe, generated_mixture, set_error_rate, shipped_recipe
    from trainers.warmstart.settings import small_policy_settings
    from trainers.warmstart.shipped import (
        HARD,
        REAL,
        SHIPPED,
        hardest_start,
        is_shipped,
        shipped_names,
        shipped_policy,
        shipped_trained_policy,
    )
    from trainers.warmstart.tokenizer import build_tokenizer, vocabulary
else:
    __getattr__, __dir__ = lazy_exports(__name__)

__all__ = [
    "CARD",
    "HARD",
    "REAL",
    "SHIPPED",
    "SMALL",
    "TINY",
    "CloningConfig",
    "DemonstrationConfig",
    "PolicyRecipe",
    "PolicySize",
    "build_tokenizer",
    "data_recipe",
    "generated_mixture",
    "hardest_start",
    "is_shipped",
    "make_policy",
    "measure_start",
    "set_error_rate",
    "sha256_of_file",
    "shipped_names",
    "shipped_policy",
    "shipped_recipe",
    "shipped_trained_policy",
    "small_policy_settings",
    "vocabulary",
    "write_card",
]

"""The small policy: a Qwen3-shaped model with a word tokenizer, warm-started by behaviour cloning.

It is a real Hugging Face checkpoint folder, so everything that trains it trains a large model too.
"""

from typing import TYPE_CHECKING

from skillc_gym.lazy import lazy_exports

if TYPE_CHECKING:
    from trainers.warmstart.cloning import CLONING_FILE, CloningConfig
    from trainers.warmstart.demonstration import DemonstrationConfig
    from trainers.warmstart.make import CARD, make_policy, write_card
    from trainers.warmstart.policy import SMALL, TINY, PolicySize
    from trainers.warmstart.recipes import (
        PolicyRecipe,
        data_recipe,
        generated_mixture,
        measure_start,
        set_error_rate,
        shipped_recipe,
        small_policy_settings,
    )
else:
    __getattr__, __dir__ = lazy_exports(__name__)

__all__ = ["CARD", "CLONING_FILE", "SMALL", "TINY", "CloningConfig", "DemonstrationConfig", "PolicyRecipe"]
__all__ += ["PolicySize", "data_recipe", "generated_mixture", "make_policy", "measure_start"]
__all__ += ["set_error_rate", "shipped_recipe", "small_policy_settings", "write_card"]

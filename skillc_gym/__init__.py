"""Gymnasium environments for language agents whose skills can be switched on and off per episode.

Importing the package registers its environments with Gymnasium (``skillc/ALFWorld-v0``, ``skillc/WebShop-v0``).
"""

from __future__ import annotations

import gymnasium

from skillc_gym.version import __version__

__all__ = ["ALFWORLD_ID", "WEBSHOP_ID", "__version__", "register_environments"]

ALFWORLD_ID = "skillc/ALFWorld-v0"
WEBSHOP_ID = "skillc/WebShop-v0"


def register_environments() -> None:
    """Registers the suite's environments once; later calls change nothing."""
    if ALFWORLD_ID not in gymnasium.registry:
        gymnasium.register(
            id=ALFWORLD_ID,
            entry_point="skillc_gym.envs.alfworld.env:ALFWorldEnv",
            vector_entry_point="skillc_gym.envs.alfworld.vector:ALFWorldVectorEnv",
            max_episode_steps=50,
        )
    if WEBSHOP_ID not in gymnasium.registry:
        gymnasium.register(id=WEBSHOP_ID, entry_point="skillc_gym.envs.webshop.env:WebShopEnv", max_episode_steps=15)


register_environments()

"""Gymnasium environments for language agents whose skills can be switched on and off per episode.

Importing the package registers its environments with Gymnasium (``skillc/ALFWorld-v0``, ``skillc/WebShop-v0``).
"""

from __future__ import annotations

from skillc_gym.envs.registry import register_built_in
from skillc_gym.version import __version__

__all__ = ["ALFWORLD_ID", "WEBSHOP_ID", "__version__"]

ALFWORLD_ID = "skillc/ALFWorld-v0"
WEBSHOP_ID = "skillc/WebShop-v0"

register_built_in()

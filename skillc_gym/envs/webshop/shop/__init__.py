"""The shop's pages, and which page an action leads to."""

from skillc_gym.envs.webshop.shop.compat import FIXED, FIXES, UPSTREAM, Fixes
from skillc_gym.envs.webshop.shop.nodes import SEPARATOR

__all__ = ["FIXED", "FIXES", "SEPARATOR", "UPSTREAM", "Fixes"]

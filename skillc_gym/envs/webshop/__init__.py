"""WebShop, natively: shopping by text, in a browser, or on a site; its environment is imported when it is asked for."""

from typing import TYPE_CHECKING

from skillc_gym.lazy import lazy_exports

if TYPE_CHECKING:
    from skillc_gym.envs.webshop.env import OBSERVATION_MODES, WebShopEnv
else:
    __getattr__, __dir__ = lazy_exports(__name__)

__all__ = ["OBSERVATION_MODES", "WebShopEnv"]

"""WebShop, natively: shopping by text, in a browser, or on a site; its environment is imported when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillc_gym.envs.webshop.env import OBSERVATION_MODES, ShopState, WebShopEnv
    from skillc_gym.envs.webshop.spec import TASK_TYPE

__all__ = ["OBSERVATION_MODES", "TASK_TYPE", "ShopState", "WebShopEnv"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from skillc_gym.envs.webshop import env

    return getattr(env, name)

"""The game itself: state, rules, goals and wording."""

from typing import TYPE_CHECKING

from skillc_gym.lazy import lazy_exports

if TYPE_CHECKING:
    from skillc_gym.envs.alfworld.engine.game import Game
    from skillc_gym.envs.alfworld.engine.textworld import UpstreamProcess, UpstreamWorld
    from skillc_gym.envs.alfworld.engine.world import NOTHING_HAPPENS, World
else:
    __getattr__, __dir__ = lazy_exports(__name__)

__all__ = ["NOTHING_HAPPENS", "Game", "UpstreamProcess", "UpstreamWorld", "World"]

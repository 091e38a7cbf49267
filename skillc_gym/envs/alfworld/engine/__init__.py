"""The game itself: state, rules, goals and wording."""

from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.engine.textworld import UpstreamProcess, UpstreamWorld
from skillc_gym.envs.alfworld.engine.world import NOTHING_HAPPENS, World

__all__ = ["NOTHING_HAPPENS", "Game", "UpstreamProcess", "UpstreamWorld", "World"]

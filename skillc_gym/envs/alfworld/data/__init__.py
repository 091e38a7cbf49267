"""Where games come from: folders, archives, splits and their manifests."""

from skillc_gym.envs.alfworld.data.game_set import GameSet, manifest_of
from skillc_gym.envs.alfworld.data.games import GENERATED, data_path, open_games
from skillc_gym.envs.alfworld.data.sources import GAME_FILE, ArchiveSource, decode

__all__ = ["GAME_FILE", "GENERATED", "ArchiveSource", "GameSet", "data_path", "decode", "manifest_of", "open_games"]

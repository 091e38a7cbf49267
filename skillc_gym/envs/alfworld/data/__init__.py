"""Where games come from: folders, archives, splits and their manifests."""

from typing import TYPE_CHECKING

from skillc_gym.lazy import lazy_exports

if TYPE_CHECKING:
    from skillc_gym.envs.alfworld.data.game_set import GameSet, manifest_of
    from skillc_gym.envs.alfworld.data.games import GENERATED, data_path, open_games
    from skillc_gym.envs.alfworld.data.sources import GAME_FILE, ArchiveSource, decode
else:
    __getattr__, __dir__ = lazy_exports(__name__)

__all__ = ["GAME_FILE", "GENERATED", "ArchiveSource", "GameSet", "data_path", "decode", "manifest_of", "open_games"]

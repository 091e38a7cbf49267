"""Every setting of a training run: groups by concept, all of them flat fields of :class:`TrainConfig`."""

from trainers.config.groups import RECOMMENDED, PolicySettings
from trainers.config.train_config import Settings, TrainConfig, current_settings

__all__ = ["RECOMMENDED", "PolicySettings"]
__all__ += ["Settings", "TrainConfig", "current_settings"]

"""Every setting of a training run: groups by concept, all of them flat fields of :class:`TrainConfig`."""

from trainers.config.train_config import HINTS, TrainConfig, current_settings

__all__ = ["HINTS", "TrainConfig", "current_settings"]

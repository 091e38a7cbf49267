"""Every setting of a training run: groups by concept, all of them flat fields of :class:`TrainConfig`."""

from trainers.config.train_config import TrainConfig, current_settings

__all__ = ["TrainConfig", "current_settings"]

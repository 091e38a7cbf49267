"""The algorithm: from tasks to losses and back to the curriculum, whoever owns the weights."""

from __future__ import annotations

from trainers.learner.backend import Backend, TrainingBackend, Weights
from trainers.learner.learner import Learner
from trainers.learner.setup import Setup

__all__ = ["Backend", "Learner", "Setup", "TrainingBackend", "Weights"]

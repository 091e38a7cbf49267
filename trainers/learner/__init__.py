"""The algorithm: from tasks to losses and back to the curriculum, whoever owns the weights."""

from __future__ import annotations

from trainers.learner.ahead import WeightsCopy
from trainers.learner.learner import Learner, check_run
from trainers.learner.loop import train
from trainers.learner.objective import Objective, check_reference, make_objective
from trainers.learner.setup import Backend, Setup
from trainers.losses.base import Weights

__all__ = ["Backend", "Learner", "Objective", "Setup", "Weights", "WeightsCopy", "check_reference", "check_run"]
__all__ += ["make_objective", "train"]

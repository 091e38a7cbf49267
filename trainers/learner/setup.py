"""What a learner works with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainers.config import TrainConfig
from trainers.recipes.method import Method
from trainers.rollout.collect import GroupRollouts
from trainers.rollout.prompts import Prompts
from trainers.rollout.task_sampling import TaskSplit
from trainers.tracking.loggers import Logger
from trainers.tracking.progress import Progress
from trainers.tracking.run_folder import RunFolder

__all__ = ["Setup"]


@dataclass(frozen=True)
class Setup:
    """All that a learner needs but a backend.

    Attributes:
        config: The run's settings.
        folder: Where the run is written.
        split: Training tasks and the curriculum's panel.
        method: Allocation, advantages and curriculum, with their state.
        rollouts: Environments and engine.
        prompts: Renders rows behind other prompts.
        pad_id: Token that fills up.
        progress: Shown to a person.
        loggers: Told every record, in the process that writes files.
    """

    config: TrainConfig
    folder: RunFolder
    split: TaskSplit
    method: Method
    rollouts: GroupRollouts
    prompts: Prompts
    pad_id: int
    progress: Progress
    loggers: Sequence[Logger] = ()

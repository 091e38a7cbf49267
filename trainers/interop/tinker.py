"""tinker-cookbook: advantages and data of groups of trajectories that differ in condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skillc_gym.errors import ConfigError, needs_extra
from trainers.interop.credit import GroupCredit

if TYPE_CHECKING:
    import torch

with needs_extra("tinker-cookbook", "tinker"):
    from tinker_cookbook.rl.data_processing import assemble_training_data


def compute_advantages(credit: GroupCredit, groups: Sequence[Any]) -> list[torch.Tensor]:
    """What ``tinker_cookbook.rl.data_processing.compute_advantages`` returns, by a method that knows conditions.

    One update: groups played by :class:`~skillc_gym.adapters.tinker.PairedGroupBuilder`, else a ConfigError; gives one
    tensor per group, float32[G].
    """
    import torch

    records = [[_record(trajectory) for trajectory in group.trajectories_G] for group in groups]
    values = iter(credit.advantages([record for group in records for record in group]).tolist())
    return [torch.tensor([next(values) for _ in group], dtype=torch.float32) for group in records]


def training_data(credit: GroupCredit, groups: Sequence[Any]) -> tuple[list[Any], list[dict[str, int]]]:
    """The update's data for ``forward_backward``, and of which group and trajectory each is; arguments as above."""
    data, places = assemble_training_data(list(groups), compute_advantages(credit, groups))
    return data, places


def _record(trajectory: Any) -> Mapping[str, Any]:
    logs: Mapping[str, Any] = trajectory.transitions[-1].logs if trajectory.transitions else {}
    if "task_id" not in logs:
        raise ConfigError(
            "A trajectory lacks the record of its episode in the logs of its last transition; play groups of "
            "skillc_gym.adapters.tinker.PairedGroupBuilder"
        )
    return logs

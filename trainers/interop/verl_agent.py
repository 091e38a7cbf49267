"""verl-agent: the records of its episodes in its batches, and a method's advantages from them.

Nothing of verl-agent is imported: its classes and functions are given to what stands here, in any of its forks.
"""

from __future__ import annotations

from typing import Any

from skillc_gym.errors import ConfigError
from trainers.interop.credit import GroupCredit

__all__ = ["PairedAdvantage", "RecordEpisodes"]


class RecordEpisodes:
    """Goes before verl-agent's collector: ``class Mine(RecordEpisodes, TrajectoryCollector)``.

    Every row gets its episode's record as ``non_tensor_batch["episode"]``. The environments behind the manager must be
    those of :mod:`skillc_gym.adapters.verl_agent`.
    """

    def vanilla_multi_turn_loop(self, *args: Any, envs: Any, **kwargs: Any) -> Any:
        """The collector's, with records."""
        theirs: Any = super()
        played = theirs.vanilla_multi_turn_loop(*args, envs=envs, **kwargs)
        for rows, record in zip(played[0], envs.envs.records(), strict=True):
            for row in rows:
                row["episode"] = record
        return played


class PairedAdvantage:
    """Stands in for ``compute_advantage`` of verl-agent's ``ray_trainer``; every call is one update of the method."""

    def __init__(self, credit: GroupCredit) -> None:
        self.credit = credit

    def __call__(self, data: Any, *_: Any, **__: Any) -> Any:
        """Gives every token of an episode's rows, which must have its record (ConfigError), the episode's advantage."""
        if "episode" not in data.non_tensor_batch:
            raise ConfigError("Rows have no 'episode': put RecordEpisodes before TrajectoryCollector")
        rows = list(data.non_tensor_batch["traj_uid"])
        records = dict(zip(rows, data.non_tensor_batch["episode"], strict=True))
        values = dict(zip(records, self.credit.advantages(list(records.values())).tolist(), strict=True))
        per_row = data.batch["token_level_rewards"].new_tensor([values[row] for row in rows])
        data.batch["advantages"] = data.batch["returns"] = per_row[:, None] * data.batch["response_mask"]
        return data

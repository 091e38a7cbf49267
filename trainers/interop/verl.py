"""verl: an advantage estimator that knows which episodes saw the skill."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillc_gym.errors import CheckpointError, ConfigError, needs_extra
from skillc_gym.files import replace_file
from trainers.interop.credit import GroupCredit

if TYPE_CHECKING:
    import torch

with needs_extra("verl", "verl"):
    from verl.trainer.ppo.core_algos import register_adv_est

_STATE = "skillc_credit.json"


class GroupAdvantage:
    """An estimator for ``algorithm.adv_estimator``, once it is registered.

    verl hands estimators rewards, masks and prompts' ids, and no condition. So whoever computes advantages says first
    whose they are::

        estimator = GroupAdvantage(GroupCredit("alfworld"))
        estimator.register("skillc")
        with estimator.over(data.non_tensor_batch["episode"]):
            data = compute_advantage(data, adv_estimator="skillc", config=config.algorithm)
    """

    def __init__(self, credit: GroupCredit) -> None:
        self.credit = credit
        self._records: Sequence[Mapping[str, Any] | None] | None = None

    def register(self, name: str) -> None:
        """Makes it known to verl under a name; verl's ValueError if it has another estimator of that name."""
        register_adv_est(name)(self)

    @contextmanager
    def over(self, records: Sequence[Mapping[str, Any] | None]) -> Iterator[None]:
        """Within, advantages are of these episodes: a row's ``extra_fields["episode"]``, from SkillAgentLoop.

        None stands for a row that is no episode: it has no part, and gets 0.
        """
        self._records = records
        try:
            yield
        finally:
            self._records = None

    def __call__(
        self, token_level_rewards: torch.Tensor, response_mask: torch.Tensor, **_: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Spreads every episode's advantage over its own tokens; this is one update of the method.

        Rewards and masks are [N, T]; of rewards, shape and type alone count: the outcome stands in the records. Gives
        advantages, float[N, T], and the same as returns. A ConfigError where records are missing: see :meth:`over`.
        """
        rows = len(response_mask)
        if self._records is None or len(self._records) != rows:
            given = "none" if self._records is None else len(self._records)
            raise ConfigError(
                f"Expected the records of {rows} episodes, got {given}: compute advantages within "
                "`with estimator.over(records):`, one record per row"
            )
        values = token_level_rewards.new_zeros(rows)
        played = {row: record for row, record in enumerate(self._records) if record is not None}
        values[list(played)] = values.new_tensor(self.credit.advantages(list(played.values())))
        advantages = values[:, None] * response_mask
        return advantages, advantages


class PairedAdvantages:
    """Goes before one of verl's trainers, tells its estimator of the episodes, and keeps its state in checkpoints.

    ``class Trainer(PairedAdvantages, PPOTrainerSync)`` with an ``estimator`` of its own, which bears the name that
    ``algorithm.adv_estimator`` gives. A class for the trainers of verl 0.9.1, which keep rollouts in a TransferQueue.

    Raises:
        ConfigError: An update lacks rows of its batch. verl drops those whose episodes failed, which may be all that
            saw the skill. Or verl was told to replace single rows.
        CheckpointError: A checkpoint that verl goes on from lacks the method's state.
    """

    estimator: GroupAdvantage
    config: Any
    parameter_sync_step: int
    global_steps: int

    def _balance_batch(self, batch: Any, *args: Any, **kwargs: Any) -> Any:
        sampler = self.config.trainer.get("v1", {}).get("sampler", {})
        if self.config.algorithm.get("filter_groups", {}).get("enable") or sampler.get("sync_refill_failed_groups"):
            raise ConfigError(
                "algorithm.filter_groups.enable and trainer.v1.sampler.sync_refill_failed_groups replace single rows, "
                "which parts pairs; switch both off"
            )
        asked = self.config.data.train_batch_size // self.parameter_sync_step
        played = len({key.rsplit("_", 2)[0] for key in batch.keys})  # row_sample_part
        if played < asked:
            raise ConfigError(
                f"Expected episodes of {asked} rows in this update, got those of {played}: the others failed, and "
                "pairs would lose members. Fix what the log tells under 'Error in _run_prompt'"
            )
        trainer: Any = super()
        return trainer._balance_batch(batch, *args, **kwargs)

    def _compute_advantage(self, batch: Any, metrics: dict[str, Any]) -> Any:
        import transfer_queue

        trainer: Any = super()
        data = transfer_queue.kv_batch_get(
            keys=batch.keys, partition_id=batch.partition_id, select_fields=["extra_fields"]
        )
        rows = zip(list(data["extra_fields"]), batch.tags, strict=True)
        # verl fills a batch up with copies of its first row.
        with self.estimator.over([None if tag.get("is_padding") else fields["episode"] for fields, tag in rows]):
            batch = trainer._compute_advantage(batch, metrics)
        gaps = self.estimator.credit.log.get("contrast", {})
        metrics.update({f"skillc/contrast/{kind}": value for kind, value in gaps.items()})
        return batch

    def _save_checkpoint(self) -> None:
        # Before verl names its checkpoint the latest: one that is found has the state.
        text = json.dumps(self.estimator.credit.state_dict())
        folder = f"{self.config.trainer.default_local_dir}/global_step_{self.global_steps}"
        replace_file(Path(folder, _STATE), [text.encode()])
        trainer: Any = super()
        trainer._save_checkpoint()

    def _load_checkpoint(self) -> None:
        trainer: Any = super()
        trainer._load_checkpoint()
        if not self.global_steps:  # from scratch
            return
        asked = self.config.trainer
        latest = f"{asked.default_local_dir}/global_step_{self.global_steps}"
        path = Path(asked.resume_from_path if asked.resume_mode == "resume_path" else latest, _STATE)
        if not path.is_file():
            raise CheckpointError(
                f"{path}, the method's state, is not there: the checkpoint is not of this trainer. Begin anew with "
                "trainer.resume_mode=disable"
            )
        self.estimator.credit.load_state_dict(json.loads(path.read_text(encoding="utf-8")))

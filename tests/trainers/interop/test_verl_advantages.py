"""verl: its own computation of advantages, with the method's estimator, and its own trainer around it."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("verl", reason="needs the verl extra, in an environment of its own: make test-adapters")

import torch
import transfer_queue
from omegaconf import OmegaConf
from tensordict import TensorDict
from transfer_queue import KVBatchMeta
from transfer_queue.storage.managers.simple_storage_manager import AsyncSimpleStorageManager
from verl import DataProto
from verl.trainer.ppo.core_algos import ADV_ESTIMATOR_REGISTRY
from verl.trainer.ppo.ray_trainer import compute_advantage
from verl.trainer.ppo.v1 import PPOTrainerSync

from skillc_gym.errors import CheckpointError, ConfigError
from trainers.interop.credit import GroupCredit
from trainers.interop.verl import GroupAdvantage, PairedAdvantages

RECORDS = [
    {"task_id": task, "task_type": "easy", "condition": shown, "won": float(won)}
    for task, shown, won in [("a", 1, 1), ("a", 0, 0), ("b", 1, 1), ("b", 0, 1)]
]
MASK = torch.tensor([[1, 1, 0, 1], [1, 0, 0, 0], [1, 1, 1, 1], [1, 1, 0, 0]])


@pytest.fixture
def estimator():
    made = GroupAdvantage(GroupCredit("coins"))
    made.register("tried")
    yield made
    del ADV_ESTIMATOR_REGISTRY["tried"]


def expected() -> torch.Tensor:
    return torch.tensor(GroupCredit("coins").advantages(RECORDS), dtype=torch.float32)


def update(mask: torch.Tensor = MASK) -> DataProto:
    tensors = {"token_level_rewards": torch.zeros(mask.shape), "response_mask": mask}
    uids = np.array([f"u{row}" for row in range(len(mask))], dtype=object)
    return DataProto.from_dict(tensors=tensors, non_tensors={"uid": uids})


def test_verls_computation_gives_the_methods_advantages(estimator):
    with estimator.over(RECORDS):
        data = compute_advantage(update(), adv_estimator="tried", config={})
    assert torch.equal(data.batch["advantages"], expected()[:, None] * MASK)
    assert torch.equal(data.batch["returns"], data.batch["advantages"])


def test_nobody_saying_whose_they_are_is_an_error(estimator):
    with pytest.raises(ConfigError, match="got none"):
        compute_advantage(update(), adv_estimator="tried", config={})
    with estimator.over(RECORDS[:3]), pytest.raises(ConfigError, match="4 episodes, got 3"):
        compute_advantage(update(), adv_estimator="tried", config={})


class Paired(PairedAdvantages, PPOTrainerSync):
    """verl's trainer with nothing started; ``written`` is what it puts into the queue."""

    def __init__(self, rows, estimator):
        self.estimator, self.parameter_sync_step = estimator, 1
        algorithm = {"use_kl_in_reward": False, "adv_estimator": "tried", "gamma": 1.0, "lam": 1.0}
        self.config = OmegaConf.create(
            {
                "algorithm": {**algorithm, "filter_groups": {"enable": False}},
                "data": {"train_batch_size": rows},
                "actor_rollout_ref": {"rollout": {"n": 1}},
                "trainer": {"v1": {"sampler": {"sync_refill_failed_groups": False}}},
            }
        )


class Queue:
    """TransferQueue's columns, packed as its storage packs them."""

    def __init__(self, monkeypatch):
        self.columns, self.written = {}, {}
        monkeypatch.setattr(transfer_queue, "kv_batch_get", self.get)
        monkeypatch.setattr(transfer_queue, "kv_batch_put", self.put)

    def get(self, *, keys, partition_id, select_fields):
        assert partition_id == "train"
        pack = AsyncSimpleStorageManager._pack_field_values
        known = [name for name in select_fields if name in self.columns]
        return TensorDict({name: pack([self.columns[name][key] for key in keys]) for name in known}, len(keys))

    def put(self, *, keys, partition_id, fields):
        self.written = {key: fields["advantages"][row] for row, key in enumerate(keys)}
        return KVBatchMeta(partition_id=partition_id, keys=keys, tags=[{} for _ in keys])


def test_a_trainers_estimator_is_told_of_the_episodes_and_not_of_padding(estimator, monkeypatch):
    queue, keys = Queue(monkeypatch), ["pad_0_0", "pad_1_0", *(f"u{row}_0_0" for row in range(4))]
    records = dict(zip(keys, [RECORDS[0], RECORDS[0], *RECORDS], strict=True))
    masks = dict(zip(keys, [torch.zeros(1, dtype=torch.long)] * 2 + list(MASK), strict=True))
    queue.columns = {
        "extra_fields": {key: {"episode": record, "turn_scores": []} for key, record in records.items()},
        "uid": {key: key.split("_")[0] for key in keys},
        "response_mask": masks,
        "rm_scores": {key: torch.zeros(len(mask)) for key, mask in masks.items()},
    }
    metrics: dict[str, float] = {}
    tags = [{"is_padding": True}] * 2 + [{}] * 4
    Paired(4, estimator)._compute_advantage(KVBatchMeta(partition_id="train", keys=keys, tags=tags), metrics)
    for key, value in zip(keys, [0.0, 0.0, *expected().tolist()], strict=True):
        assert torch.allclose(queue.written[key], value * masks[key])
    assert metrics == {"skillc/contrast/easy": 0.5}


def test_a_run_goes_on_with_the_methods_state(estimator, monkeypatch, tmp_path):
    monkeypatch.setattr(PPOTrainerSync, "_save_checkpoint", lambda trainer: None)
    monkeypatch.setattr(PPOTrainerSync, "_load_checkpoint", lambda trainer: None)

    def trainer(step, **asked):
        made = Paired(4, GroupAdvantage(GroupCredit("coins")))
        made.global_steps = step
        made.config.trainer.update({"default_local_dir": str(tmp_path), "resume_mode": "auto", **asked})
        return made

    first, fresh = trainer(3), GroupCredit("coins").state_dict()
    first.estimator.credit.advantages(RECORDS)
    first._save_checkpoint()
    named = {"resume_mode": "resume_path", "resume_from_path": str(tmp_path / "global_step_3")}
    for later in (trainer(3), trainer(3, **named)):
        later._load_checkpoint()
        assert later.estimator.credit.state_dict() == first.estimator.credit.state_dict() != fresh
    scratch = trainer(0)
    scratch._load_checkpoint()
    assert scratch.estimator.credit.state_dict() == fresh
    with pytest.raises(CheckpointError, match="the method's state"):
        trainer(4)._load_checkpoint()


def test_an_update_that_lacks_rows_is_refused(estimator, monkeypatch):
    monkeypatch.setattr(PPOTrainerSync, "_balance_batch", lambda _, batch, metrics: batch)
    batch = SimpleNamespace(keys=["a_0_0", "a_1_0", "b_0_0"])
    assert Paired(2, estimator)._balance_batch(batch, metrics={}) is batch
    with pytest.raises(ConfigError, match="3 rows in this update, got those of 2"):
        Paired(3, estimator)._balance_batch(batch, metrics={})


@pytest.mark.parametrize("switch", ["algorithm.filter_groups.enable", "trainer.v1.sampler.sync_refill_failed_groups"])
def test_what_replaces_single_rows_is_refused(estimator, switch):
    trainer = Paired(2, estimator)
    OmegaConf.update(trainer.config, switch, True)
    with pytest.raises(ConfigError, match=switch):
        trainer._balance_batch(SimpleNamespace(keys=["a_0_0", "b_0_0"]), metrics={})

"""verl: its own computation of advantages, with the method's estimator."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("verl", reason="needs the verl extra, in an environment of its own: make test-adapters")

import torch
from verl import DataProto
from verl.trainer.ppo.core_algos import ADV_ESTIMATOR_REGISTRY
from verl.trainer.ppo.ray_trainer import compute_advantage

from skillc_gym.errors import ConfigError
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


def test_a_trainers_estimator_is_told_of_the_episodes_and_not_of_padding(estimator, monkeypatch):
    def kv_batch_get(*, keys, partition_id, select_fields):
        assert (partition_id, select_fields) == ("train", ["extra_fields"])
        episodes = [{"episode": RECORDS[int(key)], "turn_scores": []} for key in keys]
        return {"extra_fields": np.array(episodes, dtype=object)}

    class Trainer:
        def _compute_advantage(self, batch, metrics):
            batch.data = compute_advantage(update(padded), adv_estimator="tried", config={})
            return batch

    class Paired(PairedAdvantages, Trainer):
        pass

    Paired.estimator = estimator
    monkeypatch.setitem(sys.modules, "transfer_queue", SimpleNamespace(kv_batch_get=kv_batch_get))
    metrics: dict[str, float] = {}
    padded = torch.cat([torch.zeros(2, 4, dtype=torch.long), MASK])
    tags = [{"is_padding": True}] * 2 + [{}] * 4
    rows = SimpleNamespace(keys=list("000123"), tags=tags, partition_id="train")
    batch = Paired()._compute_advantage(rows, metrics)
    assert torch.equal(batch.data.batch["advantages"], torch.cat([torch.zeros(2), expected()])[:, None] * padded)
    assert metrics == {"skillc/contrast/easy": 0.5}

"""Sharded weights: what a launcher must not be asked for, and whole copies that generate."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

pytest.importorskip("trl", reason="needs the extra 'train'")

from trl.trainer import grpo_trainer

from skillc_gym.errors import ConfigError
from tests.trainers.conftest import make_model
from tests.trainers.toys import toy_config
from trainers.backends.trl.arguments import check_sharding, sharded_by_layers
from trainers.backends.trl.weights import WholeCopy
from trainers.engines.registry import TrainerModel, engine_spec


def accelerator(**changes: Any) -> Any:
    asked = {"fsdp_version": 2, "state_dict_type": "StateDictType.FULL_STATE_DICT", "cpu_ram_efficient_loading": False}
    return SimpleNamespace(state=SimpleNamespace(fsdp_plugin=SimpleNamespace(**{**asked, **changes})))


ZERO3 = SimpleNamespace(state=SimpleNamespace(deepspeed_plugin=SimpleNamespace(zero_stage=3)))
ALONE = SimpleNamespace(state=SimpleNamespace())


@pytest.mark.parametrize(
    ("asked", "given", "moves", "says"),
    [
        (accelerator(fsdp_version=1), {}, False, "--fsdp_version 2"),
        (accelerator(state_dict_type="SHARDED_STATE_DICT"), {}, False, "--fsdp_state_dict_type FULL_STATE_DICT"),
        (accelerator(cpu_ram_efficient_loading=True), {}, False, "--fsdp_cpu_ram_efficient_loading false"),
        (accelerator(), {"heads": ["values"]}, False, r"heads of its own \(values\)"),
        (ZERO3, {"heads": ["values"]}, False, "heads of its own"),
        (accelerator(), {}, True, "reference_sync_every"),
        (ZERO3, {}, True, "reference_sync_every"),
        # A teacher that averages needs whole weights.
        (ZERO3, {"average_decay": 0.99}, False, "shard with FSDP2"),
        (accelerator(), {"average_decay": 0.99}, False, ""),
        (ALONE, {"heads": ["values"], "average_decay": 0.99}, True, ""),
    ],
)
def test_what_would_fail_later_is_refused_at_once(asked: Any, given: dict[str, Any], moves: bool, says: str) -> None:
    objective: Any = SimpleNamespace(**{"heads": (), "average_decay": None, **given})
    with pytest.raises(ConfigError, match=says) if says else nullcontext():
        check_sharding(asked, objective, moving_reference=moves)


def test_a_reference_is_sharded_layer_by_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[Any] = []
    monkeypatch.setattr(grpo_trainer, "prepare_fsdp", lambda part, accelerator: (parts.append(part), part)[1])
    reference = make_model(40)
    with sharded_by_layers():
        assert grpo_trainer.prepare_fsdp(reference, None) is reference
    assert parts == [*reference.model.layers, reference]


def test_a_copy_follows_the_trained_weights_alone() -> None:
    policy = make_model(40)
    copy = WholeCopy(policy, torch.device("cpu"))
    policy.lm_head.requires_grad_(False)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(1.0)
    copy.refresh()
    assert all(torch.equal(a, b) for a, b in zip(copy.model.parameters(), policy.parameters(), strict=True))
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(1.0)
    copy.refresh()
    assert torch.equal(copy.model.model.norm.weight, policy.model.norm.weight)
    assert not torch.equal(copy.model.lm_head.weight, policy.lm_head.weight)


def test_an_engine_over_sharded_weights_generates_from_the_copy() -> None:
    policy, other, refreshed = make_model(40), make_model(40, seed=1), []
    config, spec = toy_config(Path("x")), engine_spec("transformers")
    sharded = TrainerModel(policy, [1], config, sharded=True, whole=lambda: (other, lambda: refreshed.append(1)))
    engine: Any = spec.for_trainer(sharded)
    assert engine.model is other
    engine.reset()
    assert refreshed == [1]
    with pytest.raises(ConfigError, match="DeepSpeed"):
        spec.for_trainer(TrainerModel(policy, [1], config, sharded=True))

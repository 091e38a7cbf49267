"""What a vLLM within the trainer's process is started with, and how far it is from the trainer; no vLLM is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("trl", reason="needs the extra 'train'")

from trl.generation import vllm_generation

from skillc_gym.errors import ConfigError
from trainers.backends.trl.arguments import check_vllm, in_words, sleep, started_with, wake_up
from trainers.config import TrainConfig
from trainers.engines.registry import engine_spec
from trainers.learner.objective import SAMPLING_RATIO_CAP, engine_mismatch
from trainers.rollout.batches import MicroBatch, Tokens


def test_vllm_takes_as_many_sequences_as_episodes_are_played(monkeypatch: pytest.MonkeyPatch) -> None:
    config = TrainConfig(model="m", engine="vllm", max_parallel=64, vllm_dtype="bfloat16", vllm_prefix_caching=False)
    monkeypatch.setattr(vllm_generation, "LLM", lambda **given: given, raising=False)
    plain = vllm_generation.LLM
    with started_with(engine_spec("vllm").server_options(config)) as effective:
        made: Any = vllm_generation.LLM(model="m", max_num_seqs=8)
    assert made == {"model": "m", "max_num_seqs": 64, "dtype": "bfloat16", "enable_prefix_caching": False}
    assert effective == made
    assert vllm_generation.LLM is plain
    assert "max_num_seqs=64" in in_words(effective)


def test_an_engines_own_options_have_the_last_word() -> None:
    config = TrainConfig(model="m", engine="vllm", engine_options={"max_num_seqs": 7, "seed": 1})
    options = engine_spec("vllm").server_options(config)
    assert (options["max_num_seqs"], options["seed"]) == (7, 1)
    assert engine_spec("transformers").server_options(config) == {}
    revised = engine_spec("vllm").server_options(TrainConfig(model="some/model", engine="vllm", revision="v1"))
    assert (revised["revision"], revised["tokenizer_revision"]) == ("v1", "v1")


def test_processes_that_share_a_vllm_bring_as_many_episodes_each() -> None:
    config = TrainConfig(model="m", engine="vllm", max_parallel=64, vllm_tensor_parallel=2, vllm_sleep=True)
    spec = engine_spec("vllm")
    assert spec.server_options(config)["max_num_seqs"] == 128
    asked = spec.backend_arguments(config)
    assert (asked["vllm_tensor_parallel_size"], asked["vllm_enable_sleep_mode"]) == (2, True)


class FakeGeneration:
    """TRL's ``VLLMGeneration`` as far as it wakes and sleeps."""

    def __init__(self, mode: str, *, sleeps: bool) -> None:
        self.mode, self.enable_sleep_mode, self._llm_weights_sleeping = mode, sleeps, sleeps
        self.calls: list[Any] = []
        self.llm = self

    def wake_up(self, tags: list[str]) -> None:
        self.calls.append(tags)

    def sleep(self, level: int) -> None:
        self.calls.append(level)

    def sync_weights(self) -> None:
        self.calls.append("weights sent")
        self._llm_weights_sleeping = False


def test_vllm_sleeps_during_updates_and_wakes_with_the_new_weights() -> None:
    generation = FakeGeneration("colocate", sleeps=True)
    assert not sleep(generation)
    wake_up(generation)
    assert sleep(generation)
    assert not sleep(generation)
    assert generation.calls == ["weights sent", ["kv_cache"], 2]


@pytest.mark.parametrize(("mode", "sleeps"), [("colocate", False), ("server", True)])
def test_a_vllm_that_shall_not_sleep_never_does(mode: str, sleeps: bool) -> None:
    generation = FakeGeneration(mode, sleeps=sleeps)
    wake_up(generation)
    assert not sleep(generation)
    assert generation.calls == ["weights sent"]


@pytest.mark.parametrize(
    ("settings", "processes", "says"),
    [
        ({"vllm_mode": "server", "vllm_sleep": True}, 1, "within the training processes"),
        ({"vllm_mode": "server", "vllm_tensor_parallel": 2}, 2, "--tensor_parallel_size"),
        ({"vllm_tensor_parallel": 2}, 3, "take a divisor"),
    ],
)
def test_what_vllm_cannot_do_is_refused(settings: Any, processes: int, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        check_vllm(TrainConfig(model="m", engine="vllm", **settings), processes)


def test_without_vllm_nothing_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(vllm_generation, "LLM", raising=False)
    with started_with({"max_num_seqs": 3}) as effective:
        assert not hasattr(vllm_generation, "LLM")
    assert effective == {}


def test_the_mismatch_is_the_mean_log_ratio_and_the_share_that_is_capped() -> None:
    logprobs = torch.tensor([[-1.0, -0.2, -2.0]])
    sampled = torch.tensor([[-1.1, -0.2 - float(np.log(SAMPLING_RATIO_CAP)) - 0.1, -9.0]])
    tokens = Tokens(torch.ones(1, 4, dtype=torch.int64), torch.ones(1, 3))
    batch = MicroBatch(tokens, torch.ones(1, 3), {}, {"sampling_logprobs": sampled})
    found = engine_mismatch(batch, logprobs, torch.tensor([[1.0, 1.0, 0.0]]))
    assert float(found["engine.tokens"]) == 2
    assert float(found["engine.engine_capped"]) == 1
    assert float(found["engine.engine_kl"]) == pytest.approx(-(0.1 + float(np.log(SAMPLING_RATIO_CAP)) + 0.1), abs=1e-5)

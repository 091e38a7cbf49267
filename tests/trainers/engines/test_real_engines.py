"""What every engine over trained weights must do, asked of the engines themselves: vLLM too, where one starts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("trl", reason="needs the extra 'train'")

from tests.trainers.conftest import make_tokenizer
from tests.trainers.engines.test_transformers import uncached_logprobs
from tests.trainers.toys import WORDS, next_batches, toy_config, write_library
from trainers.backends.trl.backend import TrlBackend
from trainers.engines import Engine, Request, Sampling
from trainers.engines.transformers import TransformersEngine
from trainers.engines.vllm import VllmEngine
from trainers.learner import Learner
from trainers.tracking.progress import SilentProgress
from trainers.training import prepare

REQUESTS = [Request(i, [5, 7 + i, 9, 6][: 2 + i], i, 6) for i in range(3)]
each_engine = pytest.mark.parametrize("name", ["transformers", "vllm"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toys' folder with a model whose heads are wide enough for vLLM's kernels."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    made = tmp_path_factory.mktemp("wide")
    tokenizer = make_tokenizer(WORDS)
    config = Qwen2Config(
        vocab_size=len(tokenizer), hidden_size=128, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=256, initializer_range=0.1, tie_word_embeddings=False,
        pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id, bos_token_id=None,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        Qwen2ForCausalLM(config).save_pretrained(made / "model")
    tokenizer.save_pretrained(made / "model")
    write_library(made / "skills")
    return made


def started(name: str, start: Callable[[], Any]) -> Any:
    """What starts, or a skip with the reason: vLLM is not wherever it can be imported."""
    try:
        return start()
    except Exception as error:
        if name != "vllm":
            raise
        pytest.skip(f"vllm does not start here: {error!r}")


@pytest.fixture
def plain(folder: Path) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder / "model", dtype=torch.float32).eval()


@pytest.fixture
def engine(name: str, folder: Path, plain: Any) -> Engine:
    options: dict[str, Any] = {"max_model_len": 64, "gpu_memory_utilization": 0.2, "dtype": "float32"}
    made: Engine = started(
        name,
        lambda: (
            TransformersEngine(plain, [1])
            if name == "transformers"
            else VllmEngine.load(str(folder / "model"), [1], **options)
        ),
    )
    return made


@each_engine
def test_an_engine_says_what_the_model_says(engine: Engine, plain: Any) -> None:
    for request, reply in zip(REQUESTS, engine.generate(REQUESTS, Sampling(greedy=True)), strict=True):
        with torch.no_grad():
            logits = plain(torch.tensor([[*request.prompt_ids, *reply.token_ids]])).logits[0]
        assert logits[len(request.prompt_ids) - 1 : -1].argmax(-1).tolist() == reply.token_ids
    for request, reply in zip(REQUESTS, engine.generate(REQUESTS, Sampling()), strict=True):
        expected = uncached_logprobs(plain, list(request.prompt_ids), reply, 1.0)
        assert reply.logprobs == pytest.approx(expected.tolist(), abs=1e-4)
    # The same seeds draw the same tokens, and others draw others.
    again, other = (
        engine.generate([Request(i, [5, 6, 7], seed + i, 12) for i in range(4)], Sampling()) for seed in (0, 50)
    )
    repeated = engine.generate([Request(i, [5, 6, 7], i, 12) for i in range(4)], Sampling())
    assert [reply.token_ids for reply in again] == [reply.token_ids for reply in repeated]
    assert [reply.token_ids for reply in again] != [reply.token_ids for reply in other]


@each_engine
def test_an_engine_follows_the_weights(name: str, folder: Path, tmp_path: Path) -> None:
    vllm: dict[str, Any] = {"engine": "vllm", "vllm_memory": 0.2, "vllm_dtype": "float32"}
    config = toy_config(folder, run=str(tmp_path), precision="float32", **(vllm if name == "vllm" else {}))
    with ExitStack() as stack:
        learner, _ = started(name, lambda: prepare(config, SilentProgress(), stack))
        assert isinstance(learner.backend, TrlBackend)
        trainer = learner.backend.trainer
        before = sampled(learner)
        with torch.no_grad():
            for parameter in trainer.model.parameters():
                parameter.mul_(1.5)
        trainer.state.global_step += 1
        assert sampled(learner) != pytest.approx(before, abs=1e-2)
        learner.setup.rollouts.close()


def sampled(learner: Learner) -> list[float]:
    """The update's log-probabilities by the engine, which the trainer's own forward pass finds too."""
    found: list[float] = []
    for batch in next_batches(learner):
        with torch.no_grad():
            logprobs = learner.backend.score(batch.tokens, {"logprobs"})["logprobs"] * batch.tokens.mask
        by_engine = batch.figures["sampling_logprobs"].cpu().numpy()
        assert logprobs.cpu().numpy() == pytest.approx(by_engine, abs=1e-3)
        found += by_engine.ravel().tolist()[:8]
    return found[:8]

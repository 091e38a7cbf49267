"""What every engine over trained weights must do, asked of the engines themselves: vLLM too, where one starts.

``make test-vllm`` runs this file in an environment with a vLLM for processors.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("trl", reason="needs the extra 'train'")

from transformers import AutoModelForCausalLM

from tests.trainers.conftest import make_model, make_tokenizer
from tests.trainers.engines.test_transformers import uncached_logprobs
from tests.trainers.toys import GRADED, WORDS, next_batches, start_learner, toy_config, write_library
from trainers.backends.trl.backend import TrlBackend
from trainers.engines import Engine, Request, Sampling, engine_spec
from trainers.engines.registry import CheckpointModel
from trainers.evaluation.policy import evaluate_policy
from trainers.learner import Learner
from trainers.learner.loop import optimise

VLLM: dict[str, Any] = {
    "engine": "vllm",
    "vllm_memory": 0.2,
    "vllm_dtype": "float32",
    "engine_options": {"enforce_eager": True},
}
EACH: dict[str, dict[str, Any]] = {"transformers": {}, "vllm": VLLM}
each_engine = pytest.mark.parametrize("name", EACH)


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The toys' folder, the model's heads wide enough for vLLM's kernels; the output layer tied where that is asked."""
    tokenizer = make_tokenizer(WORDS)
    wide = {"hidden_size": 128, "intermediate_size": 64, "num_attention_heads": 2, "initializer_range": 0.1}
    tied = getattr(request, "param", "own") == "tied"
    sizes = {"max_position_embeddings": 512, "tie_word_embeddings": tied, **wide}
    make_model(len(tokenizer), layers=1, kv_heads=1, **sizes).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    write_library(tmp_path / "skills")
    return tmp_path


def started(name: str, start: Callable[[], Any]) -> Any:
    """What starts; a skip with the reason where vLLM does not, unless ``make test-vllm`` wants it."""
    try:
        return start()
    except Exception as error:
        if name != "vllm" or os.environ.get("TEST_VLLM"):
            raise
        pytest.skip(f"vllm does not start here: {error!r}")


@each_engine
def test_an_engine_says_what_the_model_says(name: str, folder: Path) -> None:
    config = toy_config(folder, **EACH[name])
    plain = AutoModelForCausalLM.from_pretrained(folder / "model", dtype=torch.float32).eval()
    checkpoint = CheckpointModel([1], config, lambda: plain)
    engine: Engine = started(name, lambda: engine_spec(config.engine).for_checkpoint(checkpoint))
    requests = [Request(i, [5, 7 + i, 9, *range(6, 18)][: 2 + i], i, 6) for i in range(12)]
    for request, reply in zip(requests, engine.generate(requests, Sampling(greedy=True)), strict=True):
        with torch.no_grad():
            logits = plain(torch.tensor([[*request.prompt_ids, *reply.token_ids]])).logits[0]
        assert logits[len(request.prompt_ids) - 1 : -1].argmax(-1).tolist() == reply.token_ids
    for request, reply in zip(requests, engine.generate(requests, Sampling()), strict=True):
        expected = uncached_logprobs(plain, list(request.prompt_ids), reply, 1.0)
        assert reply.logprobs == pytest.approx(expected.tolist(), abs=1e-4)
    # The same seeds draw the same tokens, and others draw others.
    seeded = [[Request(i, [5, 6, 7], seed + i, 12) for i in range(4)] for seed in (0, 0, 50)]
    again, repeated, other = ([reply.token_ids for reply in engine.generate(each, Sampling())] for each in seeded)
    assert again == repeated != other


@each_engine
def test_an_engine_evaluates(name: str, folder: Path) -> None:
    config = toy_config(folder, eval_greedy=True, **EACH[name])
    report = started(name, lambda: evaluate_policy(config, per_type=2)).paired
    said = [[turn.reply for turn in episode.turns] for episode in report.episodes]
    expected = evaluate_policy(toy_config(folder, eval_greedy=True), per_type=2).paired
    assert said == [[turn.reply for turn in episode.turns] for episode in expected.episodes]


@pytest.fixture
def learner(name: str, lora_rank: int, folder: Path) -> Iterator[Learner]:
    settings = {"precision": "float32", "learning_rate": 1e-2, "kl_coef": 0.0, "max_context": 512}
    config = toy_config(folder, lora_rank=lora_rank, **settings, **GRADED, **EACH[name])
    learner = started(name, lambda: start_learner(config))
    yield learner
    learner.setup.rollouts.close()


@each_engine
@pytest.mark.parametrize(("folder", "lora_rank"), [("own", 0), ("tied", 0), ("own", 4)], indirect=["folder"])
def test_an_engine_follows_the_weights(name: str, learner: Learner) -> None:
    assert isinstance(learner.backend, TrlBackend)
    engine, sent = learner.setup.rollouts.policy.engine, list[int]()
    if name == "vllm":
        generation = learner.backend.trainer.vllm_generation
        send = generation.sync_weights
        generation.sync_weights = lambda: (sent.append(learner.update), send())
    prompt = [5, *range(6, 18)] * 24
    before = probability(engine, prompt)
    for update in (1, 2):
        step = next_batches(learner)
        for each in step:
            # The engine draws from the very policy that is updated.
            with torch.no_grad():
                logprobs = learner.backend.score(each.tokens, {"logprobs"})["logprobs"] * each.tokens.mask
            sampled = each.figures["sampling_logprobs"]
            assert logprobs.cpu().numpy() == pytest.approx(sampled.cpu().numpy(), abs=1e-4)
        figures = optimise(learner, step, update)
        assert figures["grad_norm"] > 0
        learner.update = update
    if name == "vllm":
        # It has loaded the first weights itself; what was computed with older ones is dropped.
        assert sent == [1]
        assert [cached_tokens(engine, prompt) > 0 for _ in range(2)] == [False, True]
        engine.reset()
        assert sent == [1, 2]
        assert cached_tokens(engine, prompt) == 0
    after = probability(engine, prompt)
    assert after != pytest.approx(before, abs=1e-2)
    tokens = torch.tensor([[*prompt, 6]])
    model = learner.backend.trainer.accelerator.unwrap_model(learner.backend.trainer.model).eval()
    with torch.no_grad():
        expected = model(tokens).logits[0, -2].log_softmax(-1)
    assert after == pytest.approx(float(expected.max()), abs=1e-4)


def probability(engine: Engine, prompt: list[int]) -> float:
    """Log-probability of the most probable token behind a prompt."""
    (reply,) = engine.generate([Request("same", prompt, 0, 1)], Sampling(greedy=True))
    return reply.logprobs[0]


def cached_tokens(engine: Any, prompt: list[int]) -> int:
    """How many of a prompt's tokens vLLM need not compute again."""
    from vllm import SamplingParams

    params = SamplingParams(max_tokens=1, detokenize=False)
    (output,) = engine.llm.generate([{"prompt_token_ids": prompt}], params, use_tqdm=False)
    return int(output.num_cached_tokens)

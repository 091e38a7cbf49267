"""Do engines say what the model says: greedy tokens, and the log-probabilities that they report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from trainers.base import Sampling
from trainers.engines.transformers import TransformersEngine
from trainers.engines.types import Engine, Generation, Request

__all__ = ["engine_agreement"]

_PROMPTS, _LENGTH, _REPLY = 8, 24, 16


def engine_agreement(policy: Path, *, vllm_memory: float = 0.2) -> dict[str, Any]:
    """Generates from a few random prompts with each engine that there is.

    Args:
        policy: Folder of a checkpoint.
        vllm_memory: Share of the GPU that vLLM may take.

    Returns:
        By engine: ``same_tokens``, the share of greedy tokens that the model's own forward pass chooses too, and
        ``logprob_error``, the largest difference of a log-probability from that pass, in nats; or ``skipped`` with the
        reason.
    """
    from transformers import AutoModelForCausalLM

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AutoModelForCausalLM.from_pretrained(policy, dtype=torch.float32, attn_implementation="sdpa")
    model = model.to(device).eval()
    requests = _requests(int(model.config.vocab_size))
    found = {
        "transformers float32": _compared(model, TransformersEngine(model, []), requests),
        "transformers bfloat16": _compared(model, TransformersEngine(model, [], autocast=torch.bfloat16), requests),
    }
    return {**found, "vllm": _vllm(policy, model, requests, vllm_memory)}


def _requests(vocabulary: int) -> list[Request]:
    generator = torch.Generator().manual_seed(0)
    prompts = torch.randint(0, vocabulary, (_PROMPTS, _LENGTH), generator=generator).tolist()
    # Prompts of several lengths.
    return [Request(i, prompt[: _LENGTH - i], i, _REPLY) for i, prompt in enumerate(prompts)]


def _compared(model: Any, engine: Engine, requests: Sequence[Request]) -> dict[str, float]:
    replies = engine.generate(requests, Sampling(greedy=True))
    pairs = [_against(model, request, reply) for request, reply in zip(requests, replies, strict=True)]
    same, total = sum(same for same, _ in pairs), sum(len(reply.token_ids) for reply in replies)
    return {"same_tokens": same / max(total, 1), "logprob_error": max(error for _, error in pairs)}


@torch.no_grad()
def _against(model: Any, request: Request, reply: Generation) -> tuple[int, float]:
    """Greedy tokens that one plain pass chooses too, and the largest difference of a log-probability."""
    ids = torch.tensor([[*request.prompt_ids, *reply.token_ids]], device=model.device)
    start = len(request.prompt_ids) - 1
    logprobs = torch.log_softmax(model(input_ids=ids, use_cache=False).logits[0, start:-1].float(), dim=-1).cpu()
    said = torch.tensor(reply.token_ids)
    mine = logprobs.gather(-1, said[:, None])[:, 0]
    return int((logprobs.argmax(-1) == said).sum()), float((mine - torch.tensor(reply.logprobs)).abs().max())


def _vllm(policy: Path, model: Any, requests: Sequence[Request], memory: float) -> dict[str, Any]:
    try:
        from trainers.engines.vllm import VllmEngine

        engine = VllmEngine.load(str(policy), [], max_model_len=128, gpu_memory_utilization=memory, dtype="float32")
    except Exception as error:  # noqa: BLE001 - an engine that does not start is what is looked for
        return {"skipped": (str(error).strip() or type(error).__name__).splitlines()[0]}
    return _compared(model, engine, requests)

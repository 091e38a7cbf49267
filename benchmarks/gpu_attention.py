"""What cuDNN's attention costs where every pass has another shape, as rollouts have: with it and without, in one run.

    python -m benchmarks.gpu_attention --out benchmarks/records/gpu_attention.json

Random Llamas in bfloat16 (autocast), one for each side, decode 64 tokens behind 32 prompts of as many lengths, twice:
the first time all shapes are new. Then six forward and backward passes over 16 rows, the last two of known shapes. A
reply and a pass that do not count start the device before each side. The larger model is as wide and deep as
SmolLM2-135M, with fewer words.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from benchmarks.measuring import measurement, options_parser, versions_of
from skillc_gym.errors import ConfigError
from trainers.engines import Request, Sampling, TransformersEngine

SIZES: Mapping[str, tuple[int, int, int, int]] = {"28M": (512, 8, 8, 1408), "122M": (576, 30, 9, 1536)}
"""Width, layers, heads and feed-forward width."""
LENGTHS = (301, 333, 365, 397, 301, 333)
_WARM_UP = 150
"""Tokens of the prompt and of the row that do not count: of no shape that does."""


def measured(model: Any, *, cudnn: bool) -> dict[str, list[float]]:
    """Seconds of two decodings and of the passes of an update."""
    torch.backends.cuda.enable_cudnn_sdp(cudnn)
    engine = TransformersEngine(model, [], autocast=torch.bfloat16)
    draws = torch.Generator().manual_seed(1)
    prompts = [torch.randint(0, 2000, (200 + 3 * i,), generator=draws).tolist() for i in range(32)]
    requests = [Request(i, prompt, i, 64) for i, prompt in enumerate(prompts)]

    def decode(requests: Sequence[Request]) -> None:
        engine.reset()
        engine.generate(requests, Sampling())

    def learn(length: int) -> None:
        ids = torch.randint(0, 2000, (16, length), generator=draws).to(model.device)
        mask = torch.ones_like(ids)
        mask[0, :40] = 0
        with torch.autocast(model.device.type, torch.bfloat16):
            loss = model(input_ids=ids, attention_mask=mask, labels=ids).loss
        loss.backward()

    decode([Request("warm-up", list(range(_WARM_UP)), 0, 8)])
    learn(_WARM_UP)
    decoded = [_seconds(partial(decode, requests)) for _ in range(2)]
    return {"decoding": decoded, "passes": [_seconds(partial(learn, length)) for length in LENGTHS]}


def _seconds(work: Callable[[], object]) -> float:
    torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - began


def measure(_options: object) -> dict[str, Any]:
    """Each size without cuDNN's attention, then with it."""
    if not torch.cuda.is_available():
        raise ConfigError("No CUDA device; this compares two of its attention kernels.")
    found: dict[str, Any] = {}
    for name, (width, layers, heads, feed_forward) in SIZES.items():
        sizes = {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads}
        config = LlamaConfig(vocab_size=2000, intermediate_size=feed_forward, max_position_embeddings=4096, **sizes)
        found[name] = {
            side: measured(LlamaForCausalLM(config).to("cuda").eval(), cudnn=side == "cudnn")
            for side in ("without", "cudnn")
        }
    return {"device": torch.cuda.get_device_name(), "sizes": found, "versions": versions_of("torch", "transformers")}


if __name__ == "__main__":
    sys.exit(measurement(options_parser(__doc__), measure))

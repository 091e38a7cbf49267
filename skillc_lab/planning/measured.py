"""What this machine does: how fast it multiplies, what engines say beside the model, training in another process."""

from __future__ import annotations

import importlib.util
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillc_lab.planning.setups import launcher_file, typed_words
from trainers.config import TrainConfig
from trainers.engines import Engine, Generation, Request, Sampling
from trainers.tracking import RunFolder, settings_beside

if TYPE_CHECKING:
    import torch

_PATIENCE = 240.0
_PROMPTS, _LENGTH, _REPLY = 8, 24, 16


def matmul_tflops() -> float:
    """What a product of large matrices reaches, in 10^12 operations a second: bfloat16 on a GPU, else float32."""
    import torch

    cuda = torch.cuda.is_available()
    size = 4096 if cuda else 1024
    kind: dict[str, Any] = {"device": "cuda" if cuda else "cpu", "dtype": torch.bfloat16 if cuda else torch.float32}
    left, right = torch.ones(2, size, size, **kind)

    def multiply() -> None:
        _ = left @ right
        if cuda:
            torch.cuda.synchronize()

    multiply()
    began, products = time.perf_counter(), 0
    while (spent := time.perf_counter() - began) < 0.5 or not products:
        multiply()
        products += 1
    return 2 * size**3 * products / spent / 1e12


# Training in a process of its own ------------------------------------------------------------------------------------


def sharded_training(config: TrainConfig, gpus: int) -> dict[str, Any]:
    """Trains under FSDP2 on all GPUs, groups a multiple of them; see :func:`trained_apart`, or why it was skipped."""
    if not gpus:
        return {"skipped": "no GPU"}
    groups = -(-config.tasks_per_step // gpus) * gpus
    launcher = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(launcher_file("fsdp2"))]
    launcher += ["--num_processes", str(gpus), "--module", "skillc_lab"]
    return {"gpus": gpus, **trained_apart(launcher, replace(config, tasks_per_step=groups))}


def sleeping_training(config: TrainConfig) -> dict[str, Any]:
    """Trains with a vLLM that sleeps during updates; as :func:`trained_apart`, or why it was ``skipped``."""
    if importlib.util.find_spec("vllm") is None:
        return {"skipped": "vllm is not installed"}
    return trained_apart([sys.executable, "-m", "skillc_lab"], replace(config, engine="vllm", vllm_sleep=True))


def trained_apart(program: Sequence[str], config: TrainConfig, *, patience: float = _PATIENCE) -> dict[str, Any]:
    """Runs ``train`` as another program, so many seconds at most.

    Returns:
        ``seconds``, ``updates``, ``loss_finite`` and, where the engine reports it, ``engine_kl`` of the last update; or
        ``failed`` with what it said last, all of which is then beside the run's folder.
    """
    began, plain = time.perf_counter(), TrainConfig(model="").to_json()
    beside = settings_beside(config.model, config.env)  # the policy's would stand in the place of a default
    chosen = {name: value for name, value in config.to_json().items() if value != plain[name] or name in beside}
    command = [*program, "train", *typed_words(chosen)]
    # In a group of its own: the processes that a launcher starts would stay on the GPU otherwise.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True
    ) as process:
        try:
            said = process.communicate(timeout=patience)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                return {"failed": f"took longer than {patience:g} s"}
            raise
    if process.returncode:
        words = said[1].strip() or said[0].strip() or f"status {process.returncode}"
        return {"failed": _last_words(words.splitlines(), Path(f"{config.run}.log"))}
    records = [record for record in RunFolder(Path(config.run)).metrics() if record["event"] == "train"]
    return {
        "seconds": time.perf_counter() - began,
        "updates": len(records),
        "loss_finite": all(record["loss"] is not None and math.isfinite(record["loss"]) for record in records),
        **{name: record[name] for record in records[-1:] for name in ("engine_kl",) if record.get(name) is not None},
    }


def _last_words(said: Sequence[str], log: Path) -> str:
    log.write_text("\n".join(said) + "\n", encoding="utf-8")
    # A launcher's own complaint comes behind that of the process that failed.
    errors = [line for line in said if "rror:" in line and "ChildFailedError" not in line]
    return f"{(errors or said)[-1].strip()} (all of it: {log.name})"


# Engines -------------------------------------------------------------------------------------------------------------


def engine_agreement(policy: Path) -> dict[str, Any]:
    """Generates from a few random prompts with each engine that there is, by a checkpoint.

    Returns:
        By engine: ``same_tokens``, the share of greedy tokens that the model's own forward pass chooses too, and
        ``logprob_error``, the largest difference of a log-probability from that pass, in nats; or ``skipped`` with the
        reason.
    """
    import torch
    from transformers import AutoModelForCausalLM

    from trainers.engines import TransformersEngine

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AutoModelForCausalLM.from_pretrained(policy, dtype=torch.float32, attn_implementation="sdpa")
    model = model.to(device).eval()
    requests = _requests(int(model.config.vocab_size))
    found: dict[str, Any] = {
        "transformers float32": _compared(model, TransformersEngine(model, []), requests),
        "transformers bfloat16": _compared(model, TransformersEngine(model, [], autocast=torch.bfloat16), requests),
    }
    try:
        from trainers.engines import VllmEngine

        options = {"max_model_len": 128, "gpu_memory_utilization": 0.2, "dtype": "float32"}
        found["vllm"] = _compared(model, VllmEngine.load(str(policy), [], **options), requests)
    except Exception as error:  # noqa: BLE001 - an engine that does not start is what is looked for
        found["vllm"] = {"skipped": (str(error).strip() or type(error).__name__).splitlines()[0]}
    return found


def _requests(vocabulary: int) -> list[Request]:
    import torch

    generator = torch.Generator().manual_seed(0)
    prompts = torch.randint(0, vocabulary, (_PROMPTS, _LENGTH), generator=generator).tolist()
    # Prompts of several lengths.
    return [Request(i, prompt[: _LENGTH - i], i, _REPLY) for i, prompt in enumerate(prompts)]


def _compared(model: Any, engine: Engine, requests: Sequence[Request]) -> dict[str, float]:
    replies = engine.generate(requests, Sampling(greedy=True))
    pairs = [_reply_agreement(model, request, reply) for request, reply in zip(requests, replies, strict=True)]
    same, total = sum(same for same, _ in pairs), sum(len(reply.token_ids) for reply in replies)
    return {"same_tokens": same / max(total, 1), "logprob_error": max(error for _, error in pairs)}


def _reply_agreement(model: Any, request: Request, reply: Generation) -> tuple[int, float]:
    """Greedy tokens that one plain pass chooses too, and the largest difference of a log-probability."""
    import torch

    ids = torch.tensor([[*request.prompt_ids, *reply.token_ids]], device=model.device)
    start = len(request.prompt_ids) - 1
    with torch.no_grad():
        logits = model(input_ids=ids, use_cache=False).logits[0, start:-1]
    logprobs: torch.Tensor = torch.log_softmax(logits.float(), dim=-1).cpu()
    said = torch.tensor(reply.token_ids)
    mine = logprobs.gather(-1, said[:, None])[:, 0]
    return int((logprobs.argmax(-1) == said).sum()), float((mine - torch.tensor(reply.logprobs)).abs().max())

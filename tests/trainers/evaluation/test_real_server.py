"""Evaluation through a real server, transformers' own, with a tiny random model behind it."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skillc_gym.errors import ServerError
from trainers.config import TrainConfig
from trainers.evaluation.policy import evaluate_policy

pytest.importorskip("torch", reason="needs the train extra")
pytest.importorskip("httpx", reason="needs the openai extra")
for package in ("fastapi", "openai", "uvicorn"):
    pytest.importorskip(package, reason="needs the serve extra, which brings transformers' server")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from tests.trainers.conftest import make_tokenizer

    folder = tmp_path_factory.mktemp("model")
    tokenizer = make_tokenizer(["go", "east", "west", "north", "south", "take", "coin", "look", "room", "Commands:"])
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4}
    config = LlamaConfig(vocab_size=len(tokenizer), pad_token_id=0, eos_token_id=1, initializer_range=0.3, **shape)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def address(model: Path) -> Iterator[str]:
    """Where the server is, as soon as it answers."""
    import httpx
    from transformers.cli.serve import Serve

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = Serve(str(model), device="cpu", dtype="float32", host="127.0.0.1", port=port, non_blocking=True)
    for _ in range(300):
        try:
            if httpx.get(f"http://127.0.0.1:{port}/health").is_success:
                break
        except httpx.TransportError:
            time.sleep(0.1)
    yield f"http://127.0.0.1:{port}/v1"
    server.kill_server()


def evaluate(model: Path, address: str, folder: Path, **options: Any) -> tuple[bytes, ...]:
    folder.mkdir(exist_ok=True)
    config = TrainConfig(
        model=str(model),
        engine="openai",
        engine_options={"base_url": address, "input_price": 1.0, "output_price": 2.0, **options},
        env="coins",
        data="generated",
        split="test",
        max_episode_steps=3,
        max_reply_tokens=6,
        eval_greedy=True,
        max_parallel=2,
    )
    evaluate_policy(config, per_type=1, folder=folder).save_all(folder)
    return tuple((folder / name).read_bytes() for name in ("report.json", "transcripts.jsonl", "usage.json"))


def test_what_was_stopped_goes_on_to_the_undisturbed_result(model: Path, address: str, tmp_path: Path) -> None:
    undisturbed = evaluate(model, address, tmp_path / "undisturbed")
    used = json.loads(undisturbed[2])["all"]
    assert used["episodes"] == 6
    assert used["prompt_tokens"] > used["completion_tokens"] > 0
    assert used["cost"] > 0
    with pytest.raises(ServerError, match="budget"):
        evaluate(model, address, tmp_path / "stopped", token_budget=used["prompt_tokens"] // 2)
    kept = (tmp_path / "stopped" / "journal.jsonl").read_text().splitlines()
    assert 1 < len(kept) < 7
    assert evaluate(model, address, tmp_path / "stopped") == undisturbed


def test_it_is_the_same_in_pieces(model: Path, address: str, tmp_path: Path) -> None:
    assert evaluate(model, address, tmp_path / "pieces", stream=True) == evaluate(model, address, tmp_path / "whole")

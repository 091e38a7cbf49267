"""Training on a GPU: as on the processor up to rounding, the same every time, with each setting that is for GPUs.

``make test-gpu`` runs this file, and fails where there is none; from all other tests GPUs are hidden.
"""

import importlib.util
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("trl", reason="needs the extra 'train'")

from tests.trainers.test_train import LEARNING, Dies, Make, same_weights, weights
from tests.trainers.toys import timeless
from trainers.training import run

pytestmark = pytest.mark.skipif(not os.environ.get("TEST_GPU"), reason="needs a GPU; make test-gpu shows it")

SETTINGS: dict[str, dict[str, Any]] = {
    "autocast": {},
    "pure_bfloat16": {"precision": "pure_bfloat16"},
    "bfloat16_copy": {"precision": "bfloat16_copy"},
    "shared prefixes": {"share_prefixes": True},
    "drafts": {"engine_options": {"draft_tokens": 3}},
    "ahead": {"rollouts_ahead": True},
    "adapters": {"lora_rank": 2},
    "upper layers": {"trained_layers": "upper:1"},
    "checkpointing": {"gradient_checkpointing": True},
    "liger": {"liger": True},
    "a teacher": {"method": "sdar"},
    "imitation": {"method": "guarded_imitation"},
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_trains(toy: Make, setting: str) -> None:
    if setting == "liger" and importlib.util.find_spec("liger_kernel") is None:
        pytest.skip("needs liger-kernel")
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    config = toy(**{**LEARNING, **SETTINGS[setting]})
    result = run(config)
    updates = [record for record in result.metrics if record["event"] == "train"]
    assert torch.cuda.max_memory_allocated() > before
    assert all(math.isfinite(record["loss"]) and record["grad_norm"] > 0 for record in updates)
    assert not same_weights(weights(Path(config.model)), weights(result.policy))


def test_a_killed_run_goes_on_to_the_same_weights(toy: Make) -> None:
    settings = {**LEARNING, "steps": 4, "save_every": 2}
    undisturbed, config = (toy(**settings) for _ in range(2))
    whole = run(undisturbed)
    with pytest.raises(RuntimeError, match="killed"):
        run(config, progress=Dies(5, midway=True))
    resumed = run(config)
    assert timeless(resumed.metrics) == timeless(whole.metrics)
    assert same_weights(weights(resumed.policy), weights(whole.policy))


@pytest.mark.slow
def test_in_float32_it_is_the_processors_run_up_to_rounding(tmp_path: Path) -> None:
    here, there = _trained(tmp_path / "gpu"), _trained(tmp_path / "processor", CUDA_VISIBLE_DEVICES="")
    assert here != there, "both ran on the processor: a GPU adds in another order"
    for one, other in zip(here, there, strict=True):
        assert one == pytest.approx(other, rel=1e-3)


def _trained(folder: Path, **environment: str) -> list[dict[str, float]]:
    """Two updates of the shipped policy in a process of their own, and what came of them."""
    words = "model=shipped method=skillc steps=2 tasks_per_step=6 group_size=4 panel_per_type=1 precision=float32"
    command = [sys.executable, "-m", "skillc_lab", "train", *words.split(), f"run={folder}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    figures = ("loss", "grad_norm", "success", "tokens_generated")
    return [{name: record[name] for name in figures} for record in records if record["event"] == "train"]

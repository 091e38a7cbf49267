"""What rollouts and updates of a pretrained model cost, setting by setting, side by side in one run.

    skillc get-model smollm2-household     # or another policy that was cloned here
    python -m benchmarks.language_model_costs --model smollm2-household --out RECORD.json

Rollouts: every side plays the same groups from the same seeds, half of each group with the skill. Updates: every side
learns from the rollouts that one of them has played, with advantages that leave no row out. Figures are seconds of
processor time of this process on one thread: on a machine with other work they say less than on an idle one, but a side
that waits is not charged for it.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import Any
from unittest import mock

import torch

from benchmarks.measuring import measurement, options_parser, versions_of
from benchmarks.trl_throughput import RECIPE as ALTERNATING
from trainers.advantages import RolloutBatch
from trainers.config import TrainConfig
from trainers.learner import Learner
from trainers.models import load_plain_config
from trainers.recipes import Half
from trainers.tracking import SilentProgress, complete_settings
from trainers.training import prepare

RECIPE = replace(ALTERNATING, name="alternating_half", allocation=Half())
"""Rollouts of both conditions; advantages that leave no row out."""

_SHARED = {"share_prefixes": True}
_COPIES = {"precision": "bfloat16_copy"}
_FLOAT32 = {"precision": "float32"}
_EXACT = "row by row, float32"
_CHOOSING = {"engine": "choosing", "engine_options": {"never": ["help", "inventory"]}}
_WRITING = {"engine": "transformers", "engine_options": {}}
_DRAFTS = {"engine_options": {"draft_tokens": 12}}
_AT_FIRST = "generation, passes as at first"
PLAYING: Mapping[str, Mapping[str, Any]] = {
    _AT_FIRST: _WRITING,
    "generation": _WRITING,
    "shared, 12 drafts": {**_WRITING, **_SHARED, **_DRAFTS},
    "copies": {**_WRITING, **_COPIES},
    "shared, 12 drafts, copies": {**_WRITING, **_SHARED, **_COPIES, **_DRAFTS},
    "choosing": _CHOOSING,
    "choosing, shared, copies": {**_CHOOSING, **_SHARED, **_COPIES},
    "choosing, shared, float32": {**_CHOOSING, **_SHARED, **_FLOAT32},
}
"""Settings of each side that plays; the first one is what the others are compared with."""


def learning_sides(config: TrainConfig) -> dict[str, Mapping[str, Any]]:
    """The same of each side that learns; the two in float32 show that they learn the same."""
    upper = {"trained_layers": f"upper:{max(1, load_plain_config(config).num_hidden_layers // 2)}"}
    return {
        "row by row": {},
        "shared": _SHARED,
        "shared, copies": {**_SHARED, **_COPIES},
        "shared, copies, half of the layers": {**_SHARED, **_COPIES, **upper},
        _EXACT: _FLOAT32,
        "shared, float32": {**_SHARED, **_FLOAT32},
        "shared, float32, half of the layers": {**_SHARED, **_FLOAT32, **upper},
    }


@contextmanager
def _started(config: TrainConfig, **settings: Any) -> Any:
    """A learner of its own; its environments and weights are gone afterwards."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        learner, _ = prepare(config.with_(run=folder, **settings), SilentProgress(), stack)
        yield learner
        learner.setup.rollouts.close()
        del learner
    gc.collect()


@contextmanager
def _passes_as_at_first() -> Any:
    """Keys copied for every head that shares them, and padding up to 1,024 tokens a pass."""
    with (
        mock.patch("trainers.models.segments._foldable", return_value=False),
        mock.patch("trainers.engines.batching._WASTE_ON_CPU", 1024),
    ):
        yield


def _play(learner: Learner) -> tuple[RolloutBatch, dict[str, Any]]:
    """Plays an update's groups; the figures of what that took."""
    began = time.process_time()
    batch = learner.play(*learner.draw(1), 1)
    seconds = time.process_time() - began
    episodes = [trajectory.episode for trajectory in batch.trajectories]
    turns = sum(len(episode.turns) for episode in episodes)
    return batch, {
        "seconds": seconds,
        "episodes": len(episodes),
        "turns": turns,
        "seconds_per_turn": seconds / turns,
        "own_tokens": sum(trajectory.model_tokens for trajectory in batch.trajectories),
        "admissible": sum(turn.action_valid for episode in episodes for turn in episode.turns) / turns,
    }


def _learn(learner: Learner, batch: RolloutBatch) -> tuple[list[torch.Tensor], dict[str, Any]]:
    """Learns from an update's rollouts; log-probabilities of the own tokens before, and what that took."""
    backend = learner.backend
    backend.prepare(None)
    batch, advantages, _ = learner.credit(batch)
    (step,) = learner.optimiser_steps(batch, advantages, [], 1)
    with torch.no_grad():
        before = [part.tokens.take(backend.score(part.tokens, {"logprobs"})["logprobs"]) for part in step]
    backend.start_update(1)
    began = time.process_time()
    for number, part in enumerate(step, 1):
        with backend.accumulate(last=number == len(step)):
            backend.backward(learner.loss(part, 1))
    passes = time.process_time() - began
    backend.step()
    seconds_of_step = time.process_time() - began - passes
    loss = float(learner.objective.take_log(learner.backend)["loss"])
    return _in_order(step, before), {"seconds": passes, "seconds_of_step": seconds_of_step, "loss": loss}


def _in_order(step: Sequence[Any], figures: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Figures by rollout, in whatever order the passes hold the rows."""
    found = {}
    for part, values in zip(step, figures, strict=True):
        lengths = [row.row.model_tokens for row in part.rows]
        found.update({row.trajectory: each for row, each in zip(part.rows, torch.split(values, lengths), strict=True)})
    return [found[number] for number in sorted(found)]


def _ratios(sides: dict[str, dict[str, Any]], figure: str) -> None:
    base = next(iter(sides.values()))[figure]
    for side in sides.values():
        side["ratio"] = base / side[figure]


def measure(config: TrainConfig) -> dict[str, Any]:
    """Plays and learns with every side: figures by side, and by how much each is cheaper than the first one."""
    config = config.with_(method=f"{__name__}:RECIPE")
    playing: dict[str, dict[str, Any]] = {}
    learning: dict[str, dict[str, Any]] = {}
    logprobs: dict[str, list[torch.Tensor]] = {}
    for name, settings in PLAYING.items():
        passes = _passes_as_at_first() if name == _AT_FIRST else nullcontext()
        with passes, _started(config, **settings) as learner:
            batch, playing[name] = _play(learner)
    # All learn from what the last side has played.
    for name, settings in learning_sides(config).items():
        with _started(config, **settings) as learner:
            logprobs[name], learning[name] = _learn(learner, batch)
    reference = torch.cat(logprobs[_EXACT])
    for name, found in learning.items():
        difference = (torch.cat(logprobs[name]) - reference).abs()
        found["logprob_differences"] = {"mean": float(difference.mean()), "worst": float(difference.max())}
    _ratios(playing, "seconds_per_turn")
    _ratios(learning, "seconds")
    rows = [row for trajectory in batch.trajectories for row in trajectory.rows]
    tokens = {"rows": len(rows), "tokens": sum(row.length for row in rows), "unique_tokens": _unique(rows)}
    return {
        "model": config.model,
        "rows": tokens,
        "playing": playing,
        "learning": learning,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "threads": torch.get_num_threads(),
        "versions": versions_of("torch", "transformers", "trl"),
    }


def _unique(rows: Sequence[Any]) -> int:
    return len({(*row.prompt_ids, *row.completion_ids)[:n] for row in rows for n in range(1, row.length + 1)})


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    torch.set_num_threads(1)
    given, _ = complete_settings({"model": options.model}, learning=True)
    common = {
        **{"precision": "bfloat16", "resume": "never", "transcripts_every": 0},
        **{"tasks_per_step": options.tasks, "group_size": options.group, "max_episode_steps": options.turns},
        **{"micro_batches": options.passes, "panel_per_type": 1},
    }
    return measure(TrainConfig(**{**given, **common}))


def main(words: Sequence[str] | None = None) -> int:
    """Runs the measurement; returns 2 where it was refused."""
    parser = options_parser(__doc__)
    parser.add_argument("--model", required=True, help="a policy that was cloned here, with its settings")
    parser.add_argument("--tasks", type=int, default=2, help="groups that are played")
    parser.add_argument("--group", type=int, default=8, help="rollouts of a group")
    parser.add_argument("--turns", type=int, default=8, help="most turns of an episode")
    parser.add_argument("--passes", type=int, default=4, help="forward passes of an update")
    return measurement(parser, _measure, words)


if __name__ == "__main__":
    sys.exit(main())

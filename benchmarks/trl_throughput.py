"""Throughput of updates beside TRL's own GRPOTrainer, on the same rows, in one run.

    python -m benchmarks.trl_throughput --out benchmarks/records/trl_throughput.json
    python -m benchmarks.trl_throughput --model smollm2-135m --tasks 2 --group 4 --updates 3 --max-context 1024

A short GRPO run of ours plays episodes and updates on them; its rows are kept and given to a plain GRPOTrainer with as
many forward passes per step, the same model, optimiser and loss. Every rollout has an advantage that is not zero, so
that neither side may leave a row out. Learning is everything between the end of the rollouts and the end of the
optimiser's step: credit, padding, forward and backward passes, the step. A whole update has the playing, too; TRL's
is given the rollouts of our first side. In plain GRPO groups without differences teach nothing: a second table counts
the tokens of the other groups alone, with such groups learned from and left out. The first update of each side is left
out. Times are by the clock: on an idle machine, since ``rollouts_ahead`` plays in a second process.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, ClassVar

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from benchmarks.measuring import measurement, options_parser
from trainers.advantages import Advantages, RolloutBatch, Scheme
from trainers.base import TokenRow, Trajectory
from trainers.config import TrainConfig
from trainers.learner import train
from trainers.models import load_model, load_tokenizer
from trainers.recipes import get_recipe
from trainers.tracking import SilentProgress
from trainers.training import prepare
from trainers.warmstart import small_policy_settings


@dataclass(frozen=True)
class Alternating(Scheme):
    """1 and -1 in turn: rollouts weigh the same, and none weighs nothing."""

    name: ClassVar[str] = "alternating"

    def __call__(self, batch: RolloutBatch) -> Advantages:
        """The advantages."""
        count = len(batch.trajectories)
        return Advantages(np.where(np.arange(count) % 2, -1.0, 1.0))


RECIPE = replace(get_recipe("grpo"), name="alternating", advantage=Alternating())
"""GRPO's rollouts and loss with advantages that leave no row out."""

OURS: Mapping[str, Mapping[str, Any]] = {
    "skillc": {},
    "skillc, packed": {"share_prefixes": True},
    "skillc, one step ahead": {"rollouts_ahead": True},
}
"""Settings of each side of ours; TRL updates on the rows of the first one."""

GROUPS: Mapping[str, Mapping[str, Any]] = {
    "skillc, all groups": {"method": "grpo"},
    "skillc, groups without differences left out": {"method": "grpo", "redraw_groups": 2},
}
"""The same of plain GRPO; TRL updates on the rows of the first one, too."""

Rows = list[TokenRow]


@dataclass(frozen=True)
class Timed:
    """Seconds of every update of a side, those of learning and of the whole, and what it learned from."""

    learning: Sequence[float]
    whole: Sequence[float]
    rows: Sequence[Rows]
    teaching: Sequence[int]
    """Tokens of the rows of groups whose members ended differently."""

    def figures(self, *, teaching: bool = False) -> dict[str, Any]:
        """Seconds without those of the first update, and tokens of rows per second: medians over the updates."""
        tokens = list(self.teaching) if teaching else [sum(row.length for row in update) for update in self.rows]
        found: dict[str, Any] = {"tokens": tokens[1:]}
        for name, seconds in (("learning", self.learning), ("whole", self.whole)):
            pairs = list(zip(tokens, seconds, strict=True))[1:]
            speed = median(count / spent for count, spent in pairs)
            found[name] = {"seconds": [round(spent, 3) for _, spent in pairs], "tokens_per_second": speed}
        return found


def our_updates(config: TrainConfig) -> Timed:
    """Runs our trainer."""
    rows, teaching = list[Rows](), list[int]()

    def keep(trajectories: Sequence[Trajectory]) -> dict[str, Any]:
        rows.append([row for trajectory in trajectories for row in trajectory.rows])
        teaching.append(_teaching_tokens(trajectories))
        return {}

    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        learner, _ = prepare(config.with_(run=folder, resume="never"), SilentProgress(), stack)
        learner.metrics["rows"] = keep
        train(learner)
        records = [record for record in learner.setup.folder.metrics() if record["event"] == "train"]
        learner.setup.rollouts.close()
    learning = [record["seconds_prepare"] + record["seconds_update"] for record in records]
    playing = [record["seconds_generate"] for record in records]
    return Timed(learning, [sum(parts) for parts in zip(playing, learning, strict=True)], rows, teaching)


def _teaching_tokens(trajectories: Sequence[Trajectory]) -> int:
    ends: dict[int, set[bool]] = {}
    for each in trajectories:
        ends.setdefault(each.group, set()).add(each.episode.won)
    return sum(row.length for each in trajectories if len(ends[each.group]) > 1 for row in each.rows)


def trl_updates(config: TrainConfig, ours: Timed) -> Timed:
    """Runs a plain GRPOTrainer on the rows of our updates, which were played in as long as we took to play them."""
    learning = _trl_seconds(config, ours.rows)
    played = [whole - learned for whole, learned in zip(ours.whole, ours.learning, strict=True)]
    return Timed(learning, [sum(parts) for parts in zip(played, learning, strict=True)], ours.rows, ours.teaching)


def _trl_seconds(config: TrainConfig, updates: Sequence[Rows]) -> list[float]:
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import GRPOTrainer

    def no_reward(**_: Any) -> list[float]:
        raise RuntimeError("Nothing is generated, and nothing scored.")

    left = list(updates)
    pad = load_tokenizer(config).pad_token_id
    began, ended = list[float](), list[float]()
    clock = TrainerCallback()
    clock.on_step_begin = lambda *_, **__: began.append(time.perf_counter())
    clock.on_step_end = lambda *_, **__: ended.append(time.perf_counter())
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=load_model(config),
            processing_class=load_tokenizer(config),
            args=_arguments(config, folder, len(updates), len(updates[0])),
            reward_funcs=no_reward,
            train_dataset=Dataset.from_dict({"prompt": [""] * (len(updates) * len(updates[0]))}),
            callbacks=[clock],
        )
        trainer._generate_and_score_completions = lambda inputs: padded(left.pop(0), pad, trainer.accelerator.device)
        trainer.train()
    return [end - start for start, end in zip(began, ended, strict=True)]


def _arguments(config: TrainConfig, folder: str, steps: int, rows: int) -> Any:
    from trl import GRPOConfig

    return GRPOConfig(
        output_dir=folder,
        use_cpu=not torch.cuda.is_available(),
        bf16=torch.cuda.is_available(),
        per_device_train_batch_size=rows // config.micro_batches,
        gradient_accumulation_steps=config.micro_batches,
        steps_per_generation=config.micro_batches,
        num_generations=config.group_size,
        max_steps=steps,
        max_completion_length=config.max_context,
        temperature=config.temperature,
        learning_rate=config.learning_rate,
        max_grad_norm=config.max_grad_norm,
        beta=0.0,
        loss_type="grpo",
        report_to=[],
        save_strategy="no",
        logging_steps=steps,
        remove_unused_columns=False,
        dataloader_pin_memory=False,
        disable_tqdm=True,
    )


def padded(rows: Rows, pad: int, device: torch.device) -> dict[str, Any]:
    """Rows as TRL's trainer has them: prompts filled up on the left, completions on the right."""

    def filled(lists: Sequence[Sequence[int]], value: int = 0, side: str = "right") -> torch.Tensor:
        return pad_sequence([torch.tensor(one, dtype=torch.long) for one in lists], True, value, side)

    prompts, completions = [row.prompt_ids for row in rows], [row.completion_ids for row in rows]
    tensors = {
        "prompt_ids": filled(prompts, pad, "left"),
        "prompt_mask": filled([[1] * len(ids) for ids in prompts], side="left"),
        "completion_ids": filled(completions, pad),
        "completion_mask": filled([[1] * len(ids) for ids in completions]),
        "tool_mask": filled([row.loss_mask for row in rows]),
        "advantages": torch.ones(len(rows)) - 2 * (torch.arange(len(rows)) % 2),
    }
    moved: dict[str, Any] = {name: tensor.to(device) for name, tensor in tensors.items()}
    return moved | {"num_items_in_batch": moved["tool_mask"].sum()}


def _beside_trl(
    config: TrainConfig, ours: Mapping[str, Mapping[str, Any]], *, teaching: bool = False
) -> dict[str, Any]:
    sides = {name: our_updates(config.with_(**settings)) for name, settings in ours.items()}
    sides["trl"] = trl_updates(config, next(iter(sides.values())))
    found = {name: side.figures(teaching=teaching) for name, side in sides.items()}
    theirs = found["trl"]
    for side in found.values():
        for part in ("learning", "whole"):
            base = theirs[part]["tokens_per_second"]
            side[part]["ratio"] = side[part]["tokens_per_second"] / base if base else None
    return found


def measure(config: TrainConfig) -> dict[str, Any]:
    """Seconds and tokens per second of every side, and how many times TRL's throughput ours is."""
    return {
        "model": config.model,
        "env": config.env,
        "rows": config.tasks_per_step * config.group_size,
        "passes": config.micro_batches,
        "sides": _beside_trl(config.with_(method=f"{__name__}:RECIPE"), OURS),
        "groups": _beside_trl(config, GROUPS, teaching=True),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "threads": torch.get_num_threads(),
    }


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    if not torch.cuda.is_available():
        torch.set_num_threads(1)
    settings = {
        **small_policy_settings(options.env),
        **{"micro_batches": options.passes, "tasks_per_step": options.tasks, "group_size": options.group},
        **{"max_context": options.max_context, "steps": options.updates + 1, "panel_per_type": 1},
        **{"validate_every": 10**6, "save_every": 10**6, "transcripts_every": 0, "schedule": "constant"},
    }
    return measure(TrainConfig(model=options.model, **settings))


def main(words: Sequence[str] | None = None) -> int:
    """Runs the measurement; returns 2 where it was refused."""
    parser = options_parser(__doc__)
    parser.add_argument("--env", default="alfworld", help="the environment")
    parser.add_argument("--model", default="shipped", help="the policy")
    parser.add_argument("--tasks", type=int, default=8, help="groups of an update")
    parser.add_argument("--group", type=int, default=8, help="rollouts of a group")
    parser.add_argument("--passes", type=int, default=4, help="forward passes of an update; they divide its rollouts")
    parser.add_argument("--updates", type=int, default=5, help="updates that count, after one that is left out")
    parser.add_argument("--max-context", type=int, default=2048, help="longest row in tokens")
    return measurement(parser, _measure, words)


if __name__ == "__main__":
    sys.exit(main())

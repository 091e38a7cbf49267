"""How much of an update the environments take: seconds in them beside those of generating, preparing and updating.

    python -m benchmarks.env_share --out benchmarks/records/env_share.json

A short run of the trainer, with a clock around :class:`PairedVectorEnv`: everything between an agent's words and its
next prompt's messages counts as the environments' time, so reading the reply, showing the skill, grouping and the
prompt's wording too. Validations and the first update are left out.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from statistics import median
from typing import Any

import torch

from benchmarks.measuring import measurement, options_parser
from skillc_gym.vector import PairedVectorEnv
from trainers.base import Trajectory
from trainers.config import TrainConfig
from trainers.learner import train
from trainers.tracking import SilentProgress
from trainers.training import prepare
from trainers.warmstart import small_policy_settings

__all__ = ["Clock", "env_seconds", "main", "measure"]

_PARTS = ("generate", "prepare", "update")


class Clock:
    """Seconds spent in calls, since the last time that somebody asked."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The call, with its seconds counted."""

        @wraps(call)
        def timed(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                return call(*args, **kwargs)
            finally:
                self._seconds += time.perf_counter() - began

        return timed

    def take(self) -> float:
        """The seconds, which begin at 0 again."""
        taken, self._seconds = self._seconds, 0.0
        return taken


@contextmanager
def _clocked(clock: Clock) -> Iterator[None]:
    """Times all resets and steps of grouped environments within."""
    plain = {name: getattr(PairedVectorEnv, name) for name in ("reset", "step")}
    for name, call in plain.items():
        setattr(PairedVectorEnv, name, clock.around(call))
    try:
        yield
    finally:
        for name, call in plain.items():
            setattr(PairedVectorEnv, name, call)


def env_seconds(config: TrainConfig) -> list[dict[str, float]]:
    """Runs the trainer.

    Returns:
        Per update: ``env_steps``, and seconds of ``env`` (part of ``generate``), ``generate``, ``prepare``, ``update``.
    """
    clock, spent = Clock(), list[float]()

    def note(_: Sequence[Trajectory]) -> dict[str, Any]:
        # Metrics are asked for when an update's episodes have been played.
        spent.append(clock.take())
        return {}

    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        learner, _ = prepare(config.with_(run=folder, resume="never"), SilentProgress(), stack)
        learner.metrics = (*learner.metrics, note)
        with _clocked(clock):
            train(learner)
        records = [record for record in learner.setup.folder.metrics() if record["event"] == "train"]
        learner.setup.rollouts.close()
    return [
        {"env_steps": record["env_steps"], "env": env, **{part: record[f"seconds_{part}"] for part in _PARTS}}
        for record, env in zip(records, spent, strict=True)
    ]


def measure(config: TrainConfig) -> dict[str, Any]:
    """Measures one world.

    Args:
        config: A run; ``steps`` says how many updates, the first of which is left out.

    Returns:
        The record: medians over the updates, in seconds, the environments' share of an update, microseconds per step.
    """
    updates = env_seconds(config)[1:]
    shares = [each["env"] / sum(each[part] for part in _PARTS) for each in updates]
    return {
        "env": config.env,
        "model": config.model,
        "rollouts": config.tasks_per_step * config.group_size,
        "seconds": {name: median(each[name] for each in updates) for name in ("env", *_PARTS)},
        "env_steps": median(each["env_steps"] for each in updates),
        "microseconds_per_step": median(1e6 * each["env"] / each["env_steps"] for each in updates),
        "share": median(shares),
        "every_share": [round(share, 5) for share in shares],
    }


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    if not torch.cuda.is_available():
        torch.set_num_threads(1)
    sizes = {"tasks_per_step": options.tasks, "group_size": options.group, "steps": options.updates + 1}
    apart = {"validate_every": 10**6, "save_every": 10**6, "transcripts_every": 0, "panel_per_type": 1}
    configs = [
        TrainConfig(model=options.model, **{**small_policy_settings(env), **sizes, **apart}) for env in options.envs
    ]
    return {
        "worlds": [measure(config) for config in configs],
        "updates": options.updates,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "threads": torch.get_num_threads(),
    }


def main(words: Sequence[str] | None = None) -> int:
    """Runs the measurement; returns 2 where it was refused."""
    parser = options_parser(__doc__)
    parser.add_argument("--envs", nargs="+", default=["alfworld", "webshop"], help="the worlds")
    parser.add_argument("--model", default="shipped", help="the policy")
    parser.add_argument("--tasks", type=int, default=8, help="groups of an update")
    parser.add_argument("--group", type=int, default=8, help="rollouts of a group")
    parser.add_argument("--updates", type=int, default=3, help="updates that count, after one that is left out")
    return measurement(parser, _measure, words)


if __name__ == "__main__":
    sys.exit(main())

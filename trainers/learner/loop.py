"""A training run, from the first validation to the last checkpoint: draw, play, credit, update, validate, save."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skillc_gym.errors import ConfigError
from trainers.learner.learner import Learner
from trainers.rollout.batches import MicroBatch


def train(learner: Learner, checkpoint: Path | None = None) -> bool:
    """Trains on from a learner's state until somebody asks to stop, or to the end, of which it then tells."""
    config, backend = learner.config, learner.backend
    backend.prepare(checkpoint)
    if checkpoint is not None:
        learner.resume_ahead(checkpoint)
    if learner.update == 0:
        learner.validate()
    stop = learner.agree_to_stop(timed=False)  # else a long validation would let no run ever begin
    while not (stop or learner.finished):
        update, seconds = learner.update + 1, dict[str, float]()
        with _timed(seconds, "seconds_generate"):
            tasks, n_plus = learner.draw(update)
            batch = learner.play(tasks, n_plus, update)
        with _timed(seconds, "seconds_prepare"):
            batch, advantages, figures = learner.credit(batch)
            extra, made = learner.extra_rows(batch, advantages, update)
            steps = learner.rows.optimiser_steps(batch, advantages, extra, update)
            learner.play_ahead(update + 1)  # once what this update was played with has been counted
            if config.stream_norms_every and update % config.stream_norms_every == 0:
                figures["stream_grad_norm"] = learner.part_norms(batch, advantages)
        with _timed(seconds, "seconds_update"):
            backend.start_update(update)
            for step in steps:
                figures |= optimise(learner, step, update)
        stop = learner.agree_to_stop()
        learner.finish({**figures, **made, **seconds})
        if update % config.validate_every == 0 or learner.finished:
            learner.validate()
            stop = learner.agree_to_stop() or stop
        if stop or learner.finished or update % config.save_every == 0:
            learner.save()
    return learner.finished


def optimise(learner: Learner, step: list[MicroBatch], update: int) -> dict[str, Any]:
    """One optimiser step: the gradients of its micro-batches add up; gives the figures of the last one.

    A ConfigError if the gradient is not finite: the weights are no policy from here on, so nothing more is saved.
    """
    backend = learner.backend
    for number, batch in enumerate(step, 1):
        with backend.accumulate(last=number == len(step)):
            backend.backward(learner.loss(batch, update))
    figures = dict(backend.step())
    if not math.isfinite(figures.get("grad_norm") or 0.0):
        raise ConfigError(
            f"The gradient of update {update} is not finite (its norm is {figures['grad_norm']}); earlier checkpoints "
            "stay as they are. Begin a new run with a lower learning_rate, or look at a loss of your own."
        )
    return figures


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - began

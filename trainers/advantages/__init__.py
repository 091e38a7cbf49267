"""Credit-assignment schemes, one small file each; a trainer knows none of them.

A scheme in the registry maps a batch and its corrections to one advantage per rollout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from skillc_gym.errors import unknown_name
from trainers.advantages.batch import AdvantageBatch, EpisodeLike
from trainers.advantages.contrast import Contrast
from trainers.advantages.csca import Streams, csca, csca_streams
from trainers.advantages.gae import gae
from trainers.advantages.gigpo import gigpo
from trainers.advantages.grouping import FloatArray
from trainers.advantages.grpo import grpo
from trainers.advantages.raised_baseline import raised_baseline
from trainers.advantages.relabelling import relabelling_weights
from trainers.advantages.rloo import rloo
from trainers.advantages.whitening import whiten

__all__ = [
    "SCHEMES",
    "AdvantageBatch",
    "Contrast",
    "EpisodeLike",
    "FloatArray",
    "Scheme",
    "Streams",
    "csca",
    "csca_streams",
    "gae",
    "get_scheme",
    "gigpo",
    "grpo",
    "raised_baseline",
    "relabelling_weights",
    "rloo",
    "whiten",
]

Scheme = Callable[[AdvantageBatch, FloatArray, Mapping[str, Any]], Streams]
"""(batch, C(x) per rollout float64[N], the preset's options) -> the advantage in its parts."""


def _csca(batch: AdvantageBatch, correction: FloatArray, options: Mapping[str, Any]) -> Streams:
    return csca_streams(batch.returns, batch.task, batch.condition, correction, success=batch.success, **options)


def _grpo(batch: AdvantageBatch, correction: FloatArray, options: Mapping[str, Any]) -> Streams:
    nothing = correction * 0.0
    return Streams(grpo(batch.returns, batch.task, eps=options["eps"]), nothing, nothing, omega=0.0)


SCHEMES: Mapping[str, Scheme] = MappingProxyType({"csca": _csca, "grpo": _grpo})


def get_scheme(name: str) -> Scheme:
    """Looks a scheme up by name.

    Raises:
        UnknownNameError: No such scheme; the message names the nearest.
    """
    if name not in SCHEMES:
        raise unknown_name("advantage scheme", name, SCHEMES)
    return SCHEMES[name]

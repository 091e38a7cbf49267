"""A model's type, and what bfloat16 costs on processors without instructions for it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_ROWS, _WIDTH, _TRIES = 128, 512, 3


def cast(parameters: Iterable[torch.nn.Parameter], dtype: torch.dtype) -> None:
    """Casts parameters where they are, and not what else a model computes with, as its rotary frequencies."""
    for parameter in parameters:
        parameter.data = parameter.data.to(dtype)


def bfloat16_slowdown() -> float:
    """How many times as long a linear layer takes here in bfloat16 as in float32; measured, in some milliseconds."""
    import torch

    return _shortest(torch.bfloat16) / _shortest(torch.float32)


def bfloat16_warning(precision: str) -> str:
    """A sentence where a precision makes this processor slower, and on what to do; "" on a GPU and where it pays."""
    if "bfloat16" not in precision:
        return ""
    import torch

    if torch.cuda.is_available():
        return ""
    slowdown = bfloat16_slowdown()
    if slowdown < 2:
        return ""
    return (
        f"precision={precision}: a layer takes {slowdown:.0f} times as long in bfloat16 as in float32 on this "
        "processor, which has no instructions for it; take precision=float32."
    )


def _shortest(dtype: torch.dtype) -> float:
    import torch

    rows, weights = (torch.ones((size, _WIDTH), dtype=dtype) for size in (_ROWS, _WIDTH))
    seconds = []
    for _ in range(_TRIES):
        began = time.process_time()
        torch.nn.functional.linear(rows, weights)
        seconds.append(time.process_time() - began)
    return min(seconds)

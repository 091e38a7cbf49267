"""That bfloat16 is warned of where it only costs time, and nowhere else."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs the extra 'train'")

import torch

from trainers.models import bfloat16_slowdown, bfloat16_warning, precision


def test_the_factor_is_measured_here() -> None:
    assert bfloat16_slowdown() > 0


@pytest.mark.parametrize(
    ("cuda", "factor", "asked", "warned"),
    [
        (False, 50.0, "bfloat16_copy", True),
        (False, 50.0, "float32", False),
        (False, 50.0, "auto", False),
        (False, 0.6, "bfloat16", False),
        (True, 50.0, "bfloat16", False),
    ],
)
def test_only_a_processor_that_loses_by_it_is_warned(
    cuda: bool, factor: float, asked: str, warned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(precision, "bfloat16_slowdown", lambda: factor)
    said = bfloat16_warning(asked)
    assert bool(said) == warned
    if said:
        assert "50 times" in said
        assert "precision=float32" in said

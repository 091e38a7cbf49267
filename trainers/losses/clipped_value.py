"""PPO's value loss (Schulman et al. 2017, arXiv 1707.06347; the clipping as in the reference implementation)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

__all__ = ["clipped_value_loss"]


def clipped_value_loss(
    values: torch.Tensor, old_values: torch.Tensor, targets: torch.Tensor, clip: float = 0.5
) -> torch.Tensor:
    """``max((V - R)^2, (V_clip - R)^2) / 2`` with ``V_clip`` within ``clip`` of the value before the update.

    Args:
        values: V under the trained weights, any shape.
        old_values: V before the update; carries no gradient.
        targets: R, advantage plus old value; carries no gradient.
        clip: How far an update may move a value.

    Returns:
        A loss to be minimised, of the same shape, without its coefficient.
    """
    old, target = old_values.detach(), targets.detach()
    near = values.clamp(old - clip, old + clip)
    return 0.5 * (values - target).square().maximum((near - target).square())

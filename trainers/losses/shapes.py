"""What the formulas ask of their tensors: equal shapes, for broadcasting hides mistakes in plausible numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillc_gym.errors import ConfigError

if TYPE_CHECKING:
    import torch

__all__ = ["require_equal_shapes", "spread"]


def require_equal_shapes(**tensors: Any) -> None:
    """Checks the arguments of a formula by name.

    Raises:
        ConfigError: One is no tensor, or their shapes differ.
    """
    import torch

    for name, value in tensors.items():
        if not isinstance(value, torch.Tensor):
            raise ConfigError(f"{name} must be a torch.Tensor, got a {type(value).__name__}; torch.as_tensor makes one")
    if len({value.shape for value in tensors.values()}) > 1:
        found = ", ".join(f"{name} {tuple(value.shape)}" for name, value in tensors.items())
        raise ConfigError(f"The tensors must have equal shapes, got {found}")


def spread(name: str, values: Any, like: torch.Tensor) -> torch.Tensor:
    """Values that broadcast to the shape of ``like``, in that shape.

    Raises:
        ConfigError: They do not.
    """
    import torch

    try:
        return torch.as_tensor(values, device=like.device).expand_as(like)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ConfigError(f"{name} must broadcast to the shape {tuple(like.shape)} ({error})") from error

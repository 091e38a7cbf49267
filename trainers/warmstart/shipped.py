"""The warm-started policies that come with the package: one or more for each environment that demonstrates."""

from __future__ import annotations

from pathlib import Path

from skillc_gym.envs.registry import warm_started
from skillc_gym.errors import unknown_name

__all__ = ["SHIPPED", "is_shipped", "shipped_names", "shipped_policy"]

SHIPPED = "shipped"
"""The name under which a configuration asks for the policy of its environment."""


def is_shipped(name: str) -> bool:
    """Whether a model's name asks for a policy that comes with its environment: "shipped", "shipped-hard"."""
    return name == SHIPPED or name.startswith(f"{SHIPPED}-")


def shipped_names(env: str = "alfworld") -> tuple[str, ...]:
    """Names of the policies that come with an environment."""
    return (SHIPPED, *(f"{SHIPPED}-{name}" for name in warm_started(env)[1].policies))


def shipped_policy(env: str = "alfworld", name: str = SHIPPED) -> Path:
    """The folder of a warm-started policy that comes with an environment.

    Args:
        env: The environment.
        name: "shipped", or "shipped-NAME" for one of its further policies.

    Raises:
        UnknownNameError: Nobody demonstrates in the environment, or it has no policy of that name.
    """
    start = warm_started(env)[1]
    folders = {SHIPPED: start.policy, **{f"{SHIPPED}-{other}": folder for other, folder in start.policies.items()}}
    if name not in folders:
        raise unknown_name("shipped policy", name, folders)
    return Path(__file__).parent / folders[name]

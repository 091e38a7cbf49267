"""The warm-started policies that come with the package, one for each environment that demonstrates."""

from __future__ import annotations

from pathlib import Path

from skillc_gym.envs.registry import warm_started

__all__ = ["SHIPPED", "shipped_policy"]

SHIPPED = "shipped"
"""The name under which a configuration asks for the policy of its environment."""


def shipped_policy(env: str = "alfworld") -> Path:
    """The folder of the warm-started policy that comes with an environment.

    Raises:
        UnknownNameError: Nobody demonstrates in the environment.
    """
    return Path(__file__).parent / warm_started(env)[1].policy

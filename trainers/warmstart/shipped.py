"""The small policies that come with the package: a warm-started one per environment that demonstrates, trained ones."""

from __future__ import annotations

from pathlib import Path

from skillc_gym.envs.registry import warm_started

__all__ = ["SHIPPED", "shipped_policy", "shipped_trained_policy"]

SHIPPED = "shipped"
"""The name under which a configuration asks for the policy of its environment."""


def shipped_policy(env: str = "alfworld") -> Path:
    """The folder of the warm-started policy that comes with an environment.

    Raises:
        UnknownNameError: Nobody demonstrates in the environment.
    """
    return Path(__file__).parent / warm_started(env)[1].policy


def shipped_trained_policy(env: str = "alfworld") -> Path | None:
    """The folder of the policy that was trained from the shipped one; None where none comes with the package.

    It lies beside its start, under the start's name with ``_trained`` behind it.

    Raises:
        UnknownNameError: Nobody demonstrates in the environment.
    """
    start = shipped_policy(env)
    trained = start.with_name(f"{start.name}_trained")
    return trained if (trained / "config.json").is_file() else None

"""What the environment decides of the demonstration: policy, tasks and sizes that take minutes on two cores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillc_gym.errors import unknown_name
from trainers.warmstart.recipes import CATALOGUE, GENERATOR, SHIPPED_POLICY, SHIPPED_SHOPPER
from trainers.warmstart.worlds import world

__all__ = ["DEMO_WORLDS", "DemoWorld", "demo_world"]


@dataclass(frozen=True)
class DemoWorld:
    """An environment's part of the demonstration."""

    shipped: Path
    """The warm-started policy for generated tasks."""
    held_out_splits: tuple[str, ...]
    """Splits of the held-out tasks, the headline first."""
    held_out_per_type: int
    """Held-out tasks per task type."""
    settings: Callable[[str, bool], dict[str, Any]]
    """Fields of the training configuration, by the method's name and whether the tasks are generated."""

    def training(self, preset: str, *, generated: bool) -> dict[str, Any]:
        """Fields of the training configuration."""
        return self.settings(preset, generated)


def _houses(preset: str, generated: bool) -> dict[str, Any]:
    """With generated games, SkillC also retires skills of no visible use.

    A panel of 16 games per type knows a gap to some 0.1 only, so one that stays below 0.05 counts as none.
    """
    return {
        "preset_options": {"tau_retire": 0.05} if generated and preset == "skillc" else {},
        "env_options": {"generator": GENERATOR} if generated else {},
        "max_episode_steps": 20 if generated else 30,
        "max_reply_tokens": 20,
        "panel_per_type": 16,
    }


def _shop(preset: str, generated: bool) -> dict[str, Any]:
    """One skill that is never retired: the gap alone decides how many rollouts see it."""
    return {
        "env_options": {"generator": CATALOGUE} if generated else {},
        "chat_options": {"role": world("webshop").chat_format.role},
        "max_episode_steps": 12,
        "max_reply_tokens": 32,
        "panel_per_type": 64,
    }


DEMO_WORLDS: Mapping[str, DemoWorld] = {
    "alfworld": DemoWorld(SHIPPED_POLICY, ("valid_unseen",), 40, _houses),
    "webshop": DemoWorld(SHIPPED_SHOPPER, ("test",), 240, _shop),
}
"""By the environment's short name."""


def demo_world(name: str) -> DemoWorld:
    """Returns an environment's part of the demonstration.

    Raises:
        UnknownNameError: If there is no demonstration of it.
    """
    if name not in DEMO_WORLDS:
        raise unknown_name("environment", name, DEMO_WORLDS)
    return DEMO_WORLDS[name]

"""Methods by name, one small file each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from skillc_gym.errors import unknown_name
from trainers.recipes import (
    fixed_gate,
    fixed_rho,
    grpo,
    high_init,
    mixed_norm,
    no_pairing,
    no_pruning,
    skill0,
    skill_grpo,
    skillc,
)
from trainers.recipes.recipe import Allocation, Preset

__all__ = ["PRESETS", "Allocation", "Preset", "get_preset", "preset_names"]

_MODULES = (grpo, skill_grpo, skill0, skillc, no_pairing, mixed_norm, fixed_gate, no_pruning, fixed_rho, high_init)

PRESETS: Mapping[str, Preset] = MappingProxyType({module.PRESET.name: module.PRESET for module in _MODULES})


def preset_names() -> tuple[str, ...]:
    """The names that :func:`get_preset` knows."""
    return tuple(PRESETS)


def get_preset(name: str, **overrides: Any) -> Preset:
    """Looks a method up by name, with some of its options changed.

    Args:
        name: One of :func:`preset_names`.
        **overrides: Options of :class:`Preset`; recorded in its ``overrides``.

    Raises:
        UnknownNameError: No such preset, option or value; the message names the nearest.
        ConfigError: A value out of range.

    Example:
        >>> get_preset("skillc", correction_mask="success").overrides
        {'correction_mask': 'success'}
    """
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    return PRESETS[name].overridden(**overrides) if overrides else PRESETS[name]

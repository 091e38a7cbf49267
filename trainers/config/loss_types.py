"""Names of losses as users of other libraries know them, and the settings that they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from skillc_gym.errors import ConfigError

__all__ = ["LossType", "settings_of"]

LossType = Literal["grpo", "dapo", "dr_grpo", "gspo"]

_MEANINGS: Mapping[str, Mapping[str, str]] = {
    "grpo": {"loss_aggregation": "trajectory", "ratio": "token"},
    "dapo": {"loss_aggregation": "token", "ratio": "token"},
    "dr_grpo": {"loss_aggregation": "constant", "ratio": "token"},
    "gspo": {"loss_aggregation": "trajectory", "ratio": "sequence"},
}
_DEFAULTS = _MEANINGS["grpo"]


def settings_of(loss_type: LossType | None, given: Mapping[str, Any]) -> Mapping[str, str]:
    """The settings that a name stands for.

    Args:
        loss_type: The name; None stands for nothing.
        given: The run's own values of these settings.

    Raises:
        ConfigError: One of them was set to something else.
    """
    meant = _MEANINGS[loss_type] if loss_type else {}
    for name, value in meant.items():
        if given[name] not in (value, _DEFAULTS[name]):
            raise ConfigError(
                f"loss_type={loss_type} means {name}={value}, but {name}={given[name]}; set one of the two."
            )
    return meant

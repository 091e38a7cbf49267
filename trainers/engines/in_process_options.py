"""The options of the engine that generates in this process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from skillc_gym.errors import unknown_name
from trainers.base import Natural, check_values

__all__ = ["InProcessOptions"]


@dataclass(frozen=True)
class InProcessOptions:
    """What ``engine.NAME=`` sets for ``engine=transformers``.

    Attributes:
        draft_tokens: Tokens drafted from what was said before, which one pass confirms or refuses; 0 for none.

    Raises:
        ConfigError: A value lies outside its range.
    """

    draft_tokens: Natural = 0

    def __post_init__(self) -> None:
        check_values(self, prefix="engine.")

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> InProcessOptions:
        """Reads the options of a run.

        Raises:
            UnknownNameError: There is no option of that name.
        """
        known = [spec.name for spec in fields(cls)]
        for name in options:
            if name not in known:
                raise unknown_name("option of the engine transformers", name, known)
        return cls(**options)

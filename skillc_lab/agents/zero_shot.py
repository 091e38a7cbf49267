"""The policy with the prompt alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skillc_lab.agents.base import Agent


@dataclass(frozen=True)
class ZeroShot(Agent):
    """Shows nothing beside the library's skill, where that is on."""

    name: ClassVar[str] = "zero-shot"


AGENT = ZeroShot()

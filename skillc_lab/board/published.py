"""What papers report, for the rows that are not filled yet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """A row: success in per cent, without skills at test unless it says so; None where none is reported."""

    model: str
    method: str
    alfworld: float | None
    webshop: float | None
    source: str
    skills: bool = False
    """Whether the figures are with skills at test."""


_GIGPO, _SDAR, _ADRS = "2505.10978, table 1", "README of ZJU-REAL/SDAR", "README of ADRS"
_1B, _3B, _7B = "Qwen2.5-1.5B", "Qwen2.5-3B", "Qwen2.5-7B"

PUBLISHED = (
    Published(_1B, "PPO", 54.4, 51.5, _GIGPO),
    Published(_1B, "RLOO", 69.7, 52.1, _GIGPO),
    Published(_1B, "GRPO", 72.8, 56.8, _GIGPO),
    Published(_1B, "GiGPO", 86.7, 65.0, _GIGPO),
    Published(_1B, "RetireOPD", 89.8, 75.8, "2609.20784"),
    Published(_3B, "SDAR", 84.4, 68.0, "2605.15155"),
    Published(_3B, "OPID", 84.3, 74.2, "2606.26790"),
    Published(_3B, "RetireOPD", 93.8, 77.3, "2609.20784"),
    Published(_3B, "ADRS", 94.5, 76.6, _ADRS),
    Published(_7B, "GRPO", 77.6, 66.1, _GIGPO),
    Published(_7B, "GRPO", 81.2, 72.6, _SDAR),
    Published(_7B, "GiGPO", 90.8, 72.8, _GIGPO),
    Published(_7B, "SDAR", 85.9, 82.8, "2605.15155"),
    Published(_7B, "SIRI", 93.0, 81.3, "2606.02355"),
    Published(_7B, "RetireOPD", 95.3, 84.4, "2609.20784"),
    Published(_7B, "ADRS", 96.1, 79.7, _ADRS),
    Published(_7B, "SkillRL", 89.9, 72.7, "2602.08234", skills=True),
    Published(_7B, "D2Skill", 90.6, 80.5, "2603.28716", skills=True),
    Published(_7B, "RetroAgent", 94.9, 82.3, "2603.08561", skills=True),
    Published(_7B, "Skill1", 97.5, 82.9, "2605.06130", skills=True),
)
"""Collected from papers and from the repositories of their authors; numbers are those of arXiv."""

"""Skill memories: which text an episode sees, and what is learned from it."""

from trainers.memory.bank import Entry, SkillBank
from trainers.memory.banked import BankMemory, BankOptions
from trainers.memory.base import (
    DistractedLibrary,
    FixedLibrary,
    GuidedLibrary,
    Memory,
    MemoryTools,
    SkillMemory,
    SkillSelector,
    skill_selectors,
    specific_text,
)
from trainers.memory.by_success import EvolveRMemory, SkillRLMemory
from trainers.memory.by_utility import D2SkillMemory, RetroAgentMemory, Skill1Memory

__all__ = ["BankMemory", "BankOptions"]
__all__ += ["D2SkillMemory", "RetroAgentMemory", "Skill1Memory"]
__all__ += ["Entry", "SkillBank"]
__all__ += ["EvolveRMemory", "SkillRLMemory"]
__all__ += [
    "DistractedLibrary",
    "FixedLibrary",
    "GuidedLibrary",
    "Memory",
    "MemoryTools",
    "SkillMemory",
    "SkillSelector",
]
__all__ += ["skill_selectors", "specific_text"]

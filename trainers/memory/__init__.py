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

__all__ = ["BankMemory", "BankOptions", "D2SkillMemory", "DistractedLibrary", "Entry", "EvolveRMemory", "FixedLibrary"]
__all__ += ["GuidedLibrary", "Memory", "MemoryTools", "RetroAgentMemory", "Skill1Memory", "SkillBank", "SkillMemory"]
__all__ += ["SkillRLMemory", "SkillSelector", "skill_selectors", "specific_text"]

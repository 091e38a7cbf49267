"""Skill memories: which text an episode sees, and what is learned from it."""

from trainers.memory.bank import Entry, SkillBank
from trainers.memory.banked import BankMemory, BankOptions
from trainers.memory.base import (
    FixedLibrary,
    Memory,
    MemoryTools,
    SkillMemory,
    SkillSelector,
    has_own_choice,
    skill_selectors,
)
from trainers.memory.by_success import EvolveRMemory, SkillRLMemory
from trainers.memory.by_utility import D2SkillMemory, RetroAgentMemory, Skill1Memory
from trainers.memory.guided import GuidedLibrary, specific_text

__all__ = [
    "BankMemory",
    "BankOptions",
    "D2SkillMemory",
    "Entry",
    "EvolveRMemory",
    "FixedLibrary",
    "GuidedLibrary",
    "Memory",
    "MemoryTools",
    "RetroAgentMemory",
    "Skill1Memory",
    "SkillBank",
    "SkillMemory",
    "SkillRLMemory",
    "SkillSelector",
    "has_own_choice",
    "skill_selectors",
    "specific_text",
]

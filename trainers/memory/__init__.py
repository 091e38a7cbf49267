"""Skill memories: which text an episode sees, and what is learned from it."""

from __future__ import annotations

from trainers.memory.base import FixedLibrary, Memory, MemoryTools, SkillMemory

__all__ = ["FixedLibrary", "Memory", "MemoryTools", "SkillMemory"]

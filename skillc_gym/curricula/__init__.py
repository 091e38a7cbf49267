"""Curricula: which condition an agent meets next, and which task types still have a skill."""

from skillc_gym.curricula.skills import CurriculumOptions, InternalizationCurriculum, Retirement, scale_capacity

__all__ = ["CurriculumOptions", "InternalizationCurriculum", "Retirement", "scale_capacity"]

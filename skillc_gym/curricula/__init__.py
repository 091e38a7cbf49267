"""Curricula: which tasks and which condition an agent meets next."""

from skillc_gym.curricula.difficulty import DifficultyCurriculum, DifficultyOptions
from skillc_gym.curricula.skills import CurriculumOptions, InternalizationCurriculum, Retirement, scale_capacity

__all__ = ["CurriculumOptions", "DifficultyCurriculum", "DifficultyOptions", "InternalizationCurriculum", "Retirement"]
__all__ += ["scale_capacity"]

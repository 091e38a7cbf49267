"""The internalisation curriculum; its code lives in :mod:`skillc_gym.curricula.skills`."""

from skillc_gym.curricula.skills import InternalizationCurriculum, Retirement

__all__ = ["InternalizationCurriculum", "Retirement"]

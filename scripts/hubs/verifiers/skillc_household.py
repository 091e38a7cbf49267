"""Household tasks and a shop, each task played with a skill in the prompt and without it."""

from __future__ import annotations

from typing import Any

import verifiers.v1 as vf

from skillc_gym.adapters.verifiers import (
    ChatHarness,
    SkillEnv,
    SkillEnvConfig,
    SkillTask,
    SkillTaskset,
    SkillTasksetConfig,
)

__all__ = ["ChatHarness", "HouseholdTaskset", "SkillEnv", "load_environment"]


class HouseholdConfig(SkillTasksetConfig):
    """The houses of the board unless told otherwise: generated, so that nothing is downloaded."""

    env_kwargs: dict[str, Any] = {  # noqa: RUF012 - pydantic copies defaults
        "data": "generated",
        "split": "valid_unseen",
        "generator": {"seed": 0, "games_per_type": 400, "size": "small"},
        "max_episode_steps": 20,
    }


class HouseholdTaskset(SkillTaskset, vf.Taskset[SkillTask, HouseholdConfig]):  # type: ignore[misc]
    """The tasks of an environment, each a group of episodes with the skill and without."""


def load_environment(**taskset: Any) -> SkillEnv:
    """The environment in Python.

    Args:
        **taskset: Fields of ``SkillTasksetConfig``, such as ``env="webshop"``, ``env_kwargs={"data": "generated"}``,
            ``tasks=8``, ``group_size=4``.
    """
    made: SkillEnv = vf.load_environment(SkillEnvConfig(taskset={"id": "skillc_household", **taskset}))
    return made

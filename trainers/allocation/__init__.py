"""How many rollouts of a group see the skill: pure rules."""

from trainers.allocation.rules import (
    Difficulty,
    DifficultyRouter,
    Trials,
    fading_allocation,
    gap_lower_bound,
    signal_allocation,
    skill_needed,
    wilson_bounds,
)

__all__ = [
    "Difficulty",
    "DifficultyRouter",
    "Trials",
    "fading_allocation",
    "gap_lower_bound",
    "signal_allocation",
    "skill_needed",
    "wilson_bounds",
]

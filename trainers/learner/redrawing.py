"""Groups without differences: left out of an update, and others played in their place.

Where all members of a group came to the same return, advantages over the group are 0 and nothing is learned from it.
DAPO (arXiv 2503.14476) samples until its batch has no such group; here as often as ``redraw_groups`` allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from skillc_gym.errors import ConfigError
from trainers.advantages import FloatArray, RolloutBatch
from trainers.base import Returns, Trajectory
from trainers.config import TrainConfig
from trainers.recipes.recipe import Recipe
from trainers.rollout.opening import TaskSplit, sample_tasks

Played = tuple[Trajectory, dict[str, FloatArray]]
"""A trajectory, and what the scheme asked to know of its tokens."""


def split_by_difference(played: Sequence[Played], returns: Returns) -> tuple[list[Played], list[Played]]:
    """Rollouts of tasks whose returns differ, and of tasks in which all are alike."""
    batch = RolloutBatch.from_trajectories([trajectory for trajectory, _ in played], returns)
    seen: dict[str, set[float]] = {}
    # An update may hold two groups of one task, which advantages compare.
    for task, value in zip(batch.task, batch.returns, strict=True):
        seen.setdefault(task, set()).add(float(value))
    sides: tuple[list[Played], list[Played]] = [], []
    for task, each in zip(batch.task, played, strict=True):
        sides[len(seen[task]) == 1].append(each)
    return sides


def groups_of(played: Sequence[Played]) -> int:
    """How many groups they are of."""
    return len({trajectory.group for trajectory, _ in played})


def other_tasks(split: TaskSplit, config: TrainConfig, had: Sequence[str], count: int, step: int) -> list[str]:
    """So many tasks that the update has not had yet, or as many as there are; ``step`` seeds the draw."""
    found = list[str]()
    for how in (config.task_sampling, "uniform"):  # where a type has too few left, others take their place
        taken = {*had, *found}
        left = tuple(task for task in split.training if task not in taken)
        if missing := min(count - len(found), len(left)):
            drawn = sample_tasks(replace(split, training=left), missing, how, seed=config.seed, step=step)
            found += dict.fromkeys(drawn)
    return found


def check_redrawing(config: TrainConfig, recipe: Recipe) -> None:
    """Refuses (ConfigError) to leave groups out where a method learns from those without differences, too."""
    if not config.redraw_groups:
        return
    if config.group_size < 2:
        raise ConfigError(
            "redraw_groups leaves out groups whose rollouts are all alike, and with group_size=1 every one is; take a "
            "group_size of at least 2, or redraw_groups=0."
        )
    learns = recipe.rows or recipe.curriculum.steers or recipe.advantage.judges_steps
    learns = learns or recipe.allocation.name not in ("never", "always")
    # Normalised over the whole update, rollouts of a group that are all alike still differ from the others.
    learns = learns or getattr(recipe.advantage, "scope", "group") == "batch"
    # Penalty and entropy bonus only regularise, so that they may miss some groups.
    learns = learns or not all(
        loss.needs_advantages or loss.reads_advantages or loss.regularises for loss in recipe.losses
    )
    if learns or not recipe.memory.is_fixed:
        raise ConfigError(
            f"redraw_groups leaves groups without differences out, and {recipe.name} learns from those too, by its "
            "losses, rows, advantages, curriculum, allocation or memory; take grpo or one like it, or redraw_groups=0."
        )

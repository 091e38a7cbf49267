"""What a starting policy can do before it is trained: success and essential steps in both conditions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from skillc_gym.envs.registry import warm_started
from skillc_gym.episodes import Episode
from trainers.evaluation import PairedReport
from trainers.evaluation.policy import evaluate_policy
from trainers.warmstart.recipes import PolicyRecipe, recipe_config

TRAINING_TEMPERATURE = 1.0
ATTEMPTS: Mapping[float, int] = {TRAINING_TEMPERATURE: 4, 0.4: 1}
"""Pairs of episodes per task at each temperature: more at that of training, where rare successes count."""


def measure_start(recipe: PolicyRecipe, policy: Path, per_type: int) -> dict[str, Any]:
    """Plays held-out tasks with a policy, with the skill and without, at the training temperature and at validations'.

    Args:
        recipe: How the policy was made; its tasks are the world to measure in.
        policy: Its checkpoint folder.
        per_type: Tasks per type, a fixed panel of the environment's held-out split.

    Returns:
        Panel, and by temperature the rates over all tasks and per task type: success (``sr_without``, ``sr_with``), and
        how often the essential step was taken (``essential_without``, ``essential_with``; None where it has no mark).
    """
    config = recipe_config(recipe, policy)
    found = {
        temperature: evaluate_policy(config.with_(eval_temperature=temperature), per_type=per_type, attempts=attempts)
        for temperature, attempts in ATTEMPTS.items()
    }
    reports = {str(temperature): report.paired for temperature, report in found.items()}
    return {
        "split": config.split,
        "tasks_per_type": per_type,
        "panel_sha256": next(iter(reports.values())).panel_sha256,
        "temperatures": {name: _rates(report, config.env) for name, report in reports.items()},
    }


def essential_rate(episodes: Sequence[Episode], pattern: str) -> float:
    """Share of episodes among whose possible commands the pattern is found; the commands stand one a line."""
    compiled = re.compile(pattern, re.MULTILINE)
    taken = ["\n".join(turn.action for turn in episode.turns if turn.action_valid) for episode in episodes]
    return fmean(bool(compiled.search(commands)) for commands in taken)


def _rates(report: PairedReport, env: str) -> dict[str, Any]:
    marks = warm_started(env)[1].essential
    by_type: dict[str, Any] = {}
    for kind, counts in report.per_type.items():
        by_type[kind] = {"sr_without": counts.sr_without, "sr_with": counts.sr_with}
        for condition, arm in enumerate(("without", "with")):
            played = [e for e in report.episodes if e.task_type == kind and e.condition == condition]
            by_type[kind][f"essential_{arm}"] = essential_rate(played, marks[kind]) if kind in marks else None
    overall = report.overall
    return {
        "attempts": report.attempts,
        "tasks": overall.n,
        "sr_without": overall.sr_without,
        "sr_without_interval": overall.sr_without_interval.to_json(),
        "sr_with": overall.sr_with,
        "sr_with_interval": overall.sr_with_interval.to_json(),
        "per_type": by_type,
    }

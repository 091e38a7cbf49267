"""From a paired evaluation to a line of metrics."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from skillc_gym.curricula.skills import InternalizationCurriculum, Retirement, scale_capacity
from trainers.evaluation.outcomes import graded
from trainers.evaluation.paired import PairedReport
from trainers.recipes.method import Method

__all__ = ["retirement_rule", "validation_record"]


def validation_record(
    report: PairedReport, method: Method, step: int, retired: Sequence[Retirement] = ()
) -> dict[str, Any]:
    """Describes a validation and where the method stands after it; changes neither.

    Args:
        report: The panel, played with and without skills.
        method: The method, which has been told.
        step: Updates done so far.
        retired: What the curriculum answered.
    """
    state = method.describe()
    return {
        "step": step,
        "event": "validation",
        "sr_with": dict(report.sr_with),
        "sr_without": dict(report.sr_without),
        "overall_with": report.overall.sr_with,
        "overall_without": report.overall.sr_without,
        "n": {kind: counts.n for kind, counts in report.per_type.items()},
        "cut_by_context": {arm: cut / len(report.outcomes) for arm, cut in report.cuts("context").items()},
        "actions": report.actions(),
        **_mean_scores(report),
        "gap_smoothed": state["gap"],
        "gate": state["gate"],
        "active": state["active"],
        "retired": [{"type": entry.task_type, "reason": entry.reason} for entry in retired],
        "retirement": retirement_rule(method.curriculum),
        "gated": method.recipe.allocation.follows_curriculum,
    }


def _mean_scores(report: PairedReport) -> dict[str, float]:
    """Mean score in both conditions, where it says more than success."""
    if not graded(report.outcomes):
        return {}
    return {
        f"score_{arm}": fmean(outcome.arm(arm == "with").score for outcome in report.outcomes)
        for arm in ("with", "without")
    }


def retirement_rule(curriculum: InternalizationCurriculum) -> dict[str, Any]:
    """What may retire a type: the reasons, the smoothed gap's threshold, and K(t) per equal stage of training."""
    options = curriculum.config
    return {
        "by": list(options["retire_by"]),
        "threshold": options["tau_retire"],
        "capacity": list(scale_capacity(options["capacity"], len(curriculum.task_types))),
    }

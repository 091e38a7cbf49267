"""Reports as lines of text, and as a line of metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from skillc_gym.curricula.skills import InternalizationCurriculum, Retirement, scale_capacity
from skillc_gym.envs.registry import short_type
from trainers.evaluation.outcomes import ARMS, PairedCounts, graded, mean_scores, pass_rates
from trainers.evaluation.paired import PairedReport
from trainers.recipes.method import Method

_RATES = ("sr_with", "sr_without", "gap")


def table(report: PairedReport) -> str:
    """The report as lines of text, rates in percent with their 95 % intervals; below it what else was measured."""
    rows = [*report.per_type.items(), ("all", report.overall)]
    head = f"{'type':<10}{'n':>5}  {'with skills':^18}  {'without':^18}  {'gap':^18}"
    lines = [head, *(_line(short_type(kind), counts) for kind, counts in rows), *_actions(report), *_further(report)]
    return "\n".join([*lines, f"Warning: {report.warning}"] if report.warning else lines)


def _line(name: str, counts: PairedCounts) -> str:
    cells = [_cell(getattr(counts, rate), getattr(counts, f"{rate}_interval")) for rate in _RATES]
    return f"{name:<10}{counts.n:>5}  " + "  ".join(cells)


def _actions(report: PairedReport) -> Iterator[str]:
    found = report.actions()
    for name, title in (("well_formed", "well-formed"), ("admissible", "admissible")):
        shares = [found[arm][name] for arm in ARMS]
        cells = [f"{'--':>5}" if share is None else f"{100 * share:5.1f}" for share in shares]
        yield f"{title:<15}  {cells[0]:<18}  {cells[1]}"


def _further(report: PairedReport) -> Iterator[str]:
    if report.attempts > 1:
        for k, rates in pass_rates(report.outcomes, report.attempts).items():
            yield _pair(f"pass@{k}", report.overall.n, rates, "rate")
    if graded(report.outcomes):
        scores = mean_scores(report.outcomes)
        yield _pair("score", scores["all"]["tasks"], scores["all"], "mean")
        if scores["reachable"]:
            yield _pair("reachable", scores["reachable"]["tasks"], scores["reachable"], "mean")
    for cut, what in (("context", "the context"), ("steps", "the step limit")):
        found = report.cuts(cut)
        if any(found.values()):
            yield f"Cut by {what}: {found['with']} episodes with skills, {found['without']} without."


def _pair(name: str, n: int, found: Mapping[str, Any], key: str) -> str:
    arms = [found[arm] for arm in ARMS]
    cells = [_cell(arm[key], arm["interval"]) if arm else f"{'--':^18}" for arm in arms]
    return f"{name:<10}{n:>5}  " + "  ".join(cells)


def _cell(rate: float, interval: Iterable[float]) -> str:
    low, high = interval
    return f"{100 * rate:5.1f} [{100 * low:5.1f},{100 * high:6.1f}]"


def validation_record(
    report: PairedReport, method: Method, step: int, retired: Sequence[Retirement] = ()
) -> dict[str, Any]:
    """Describes a validation and where the method, which has been told, stands after it; changes neither."""
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
    if not graded(report.outcomes):
        return {}
    return {
        f"score_{arm}": fmean(outcome.arm(skill).score for outcome in report.outcomes) for arm, skill in ARMS.items()
    }


def retirement_rule(curriculum: InternalizationCurriculum) -> dict[str, Any]:
    """What may retire a type: the reasons, the smoothed gap's threshold, and K(t) per equal stage of training."""
    options = curriculum.config
    return {
        "by": list(options["retire_by"]),
        "threshold": options["tau_retire"],
        "capacity": list(scale_capacity(options["capacity"], len(curriculum.task_types))),
    }

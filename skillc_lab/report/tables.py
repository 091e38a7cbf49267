"""What evaluations found, in tables and cards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from skillc_lab.report.shell import table
from trainers.evaluation.paired_report import Change, PairedCounts, PairedReport, compare_reports
from trainers.evaluation.repeats import pass_rates
from trainers.evaluation.scores import graded, mean_scores
from trainers.stats import Interval
from trainers.tracking.progress import short_type

__all__ = ["cards", "further", "results", "retirements"]

_WHY = {"gap": "its own smoothed gap fell below the threshold", "budget": "cut by the budget K(t)"}


def cards(before: PairedReport | None, after: PairedReport) -> str:
    """The headline: success without and with skills, and the gap between them."""
    entries = _change_cards(before, after) if before is not None else _outcome_cards(after)
    boxes = (
        f'<div class="card">{name}<b>{figure}</b><small class="soft">{how}</small></div>'
        for name, figure, how in entries
    )
    return f'<div class="cards">{"".join(boxes)}</div>'


def _outcome_cards(report: PairedReport) -> Sequence[tuple[str, str, str]]:
    found = report.overall
    return (
        ("Success without skills", _percent(found.sr_without), _interval(found.sr_without_interval)),
        ("Success with skills", _percent(found.sr_with), _interval(found.sr_with_interval)),
        ("Gap (with minus without)", _points(found.gap), _interval(found.gap_interval)),
    )


def _change_cards(before: PairedReport, after: PairedReport) -> Sequence[tuple[str, str, str]]:
    change = compare_reports(before, after, skill=False)["overall"]
    first, last = before.overall, after.overall
    return (
        (
            "Success without skills",
            f"{_percent(change.before)} → {_percent(change.after)}",
            f"{_points(change.change)} points, {_interval(change.interval)}",
        ),
        ("Success with skills", f"{_percent(first.sr_with)} → {_percent(last.sr_with)}", "same tasks"),
        (
            "Gap (with minus without)",
            f"{_points(first.gap)} → {_points(last.gap)}",
            f"95 % intervals {_range(first.gap_interval)} and {_range(last.gap_interval)}",
        ),
    )


def results(before: PairedReport | None, after: PairedReport, order: Sequence[str] = ()) -> str:
    """Rates of every type with their intervals, before (if there is one) and after, and the change without skills."""
    changes = compare_reports(before, after, skill=False) if before is not None else {}
    names = [*(k for k in order if k in after.per_type), *(k for k in after.per_type if k not in order)]
    rows = [
        *(
            _row(kind, None if before is None else before.per_type[kind], after.per_type[kind], changes)
            for kind in names
        ),
        _row("overall", None if before is None else before.overall, after.overall, changes),
    ]
    times = ("before", "after") if before is not None else ("",)
    heads = [f"{what}{', ' * bool(when)}{when}" for when in times for what in ("with", "without", "gap")]
    head = ["type", "tasks", *heads, *(["change without"] if changes else [])]
    return (
        table(head, rows)
        + '<p class="soft">Percent, with 95 % intervals: Wilson for rates, Newcombe (paired) for differences.</p>'
    )


def further(report: PairedReport) -> str:
    """What an evaluation measured beside success: mean scores, pass@k, and what cut episodes."""
    rows = [_pair_row(name, tasks, rates) for name, tasks, rates in _beside(report)]
    measured = table(("measure", "tasks", "with", "without"), rows) if rows else ""
    return measured + "".join(f'<p class="{css}">{escape(text)}</p>' for css, text in _cut_notes(report))


def _beside(report: PairedReport) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    if graded(report.outcomes):
        scores = mean_scores(report.outcomes)
        yield "mean score", scores["all"]["tasks"], scores["all"]
        if scores["reachable"]:
            yield "mean score, tasks within reach", scores["reachable"]["tasks"], scores["reachable"]
    if report.attempts > 1:
        for k, rates in pass_rates(report.outcomes, report.attempts).items():
            yield f"pass@{k}", report.overall.n, rates


def _pair_row(name: str, tasks: int, found: Mapping[str, Any]) -> str:
    cells = "".join(_measured(found[arm]) for arm in ("with", "without"))
    return f"<tr><td>{escape(name)}</td><td>{tasks}</td>{cells}</tr>"


def _measured(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "<td></td>"
    value = found["mean"] if "mean" in found else found["rate"]
    return _cell(f"{100 * value:.1f}", Interval(*found["interval"]))


def _cut_notes(report: PairedReport) -> Iterator[tuple[str, str]]:
    for css, cut, what in (("warn", "context", "The context's end"), ("soft", "steps", "The step limit")):
        found = report.cuts(cut)
        if any(found.values()):
            of = f"of {len(report.outcomes)} episodes"
            yield css, f"{what} cut {found['with']} {of} with the skill and {found['without']} without; they failed."


def _row(kind: str, before: PairedCounts | None, after: PairedCounts, changes: Mapping[str, Change]) -> str:
    cells = []
    for counts in (before, after):
        if counts is not None:
            cells += [
                _cell(f"{100 * counts.sr_with:.0f}", counts.sr_with_interval),
                _cell(f"{100 * counts.sr_without:.0f}", counts.sr_without_interval),
                _cell(_signed(counts.gap), counts.gap_interval),
            ]
    if changes:
        cells.append(_cell(_signed(changes[kind].change), changes[kind].interval))
    css, name = (' class="all"', "all") if kind == "overall" else ("", short_type(kind))
    return f"<tr{css}><td>{escape(name)}</td><td>{after.n}</td>{''.join(cells)}</tr>"


def retirements(found: Mapping[str, tuple[int, str]]) -> str:
    """Who retired when and why.

    Args:
        found: Step and reason by task type.
    """
    if not found:
        return '<p class="soft">No type retired.</p>'
    rows = (
        f"<tr><td>{escape(short_type(kind))}</td><td>{step}</td><td>{escape(_WHY.get(reason, reason))}</td></tr>"
        for kind, (step, reason) in sorted(found.items(), key=lambda item: item[1][0])
    )
    return table(("type", "step", "reason"), rows, words=True)


def _cell(figure: str, interval: Interval) -> str:
    return f"<td>{figure}<br><small>{_range(interval)}</small></td>"


def _percent(rate: float) -> str:
    return f"{100 * rate:.1f} %"


def _points(difference: float) -> str:
    return f"{100 * difference:+.1f}"


def _signed(difference: float) -> str:
    whole = round(100 * difference)
    return f"{whole:+d}" if whole else "0"


def _interval(interval: Interval) -> str:
    return f"95 % interval {_range(interval)}"


def _range(interval: Interval) -> str:
    return f"[{100 * interval.low:.0f}, {100 * interval.high:.0f}]"

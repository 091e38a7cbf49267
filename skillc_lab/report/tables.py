"""What evaluations found, as cards and tables: rows of figures with their intervals, columns that each stand once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from skillc_gym.envs.registry import short_type
from skillc_lab.report.records import ComparedRun, in_order
from skillc_lab.report.style import method_words
from skillc_lab.tables import ACTED, Cell, Row, Table, acted_cell, acted_heads, points, rate
from trainers.evaluation import (
    Change,
    PairedCounts,
    PairedReport,
    action_warning,
    compare_reports,
    graded,
    mean_scores,
    pass_rates,
)
from trainers.stats import Interval

_WHY = {"gap": "its own smoothed gap fell below the threshold", "budget": "cut by the budget K(t)"}


class Card(NamedTuple):
    """A headline figure: its name, the figure, and what explains it."""

    name: str
    figure: str
    how: str


def cards(before: PairedReport | None, after: PairedReport) -> list[Card]:
    """The headline: success without and with the skill, and the gap between them."""
    last = after.overall
    rates = {"Success without the skill": "without", "Success with the skill": "with"}
    found = []
    for name, arm in rates.items():
        figure = f"{rate(getattr(last, f'sr_{arm}'))} %"
        how = f"95 % interval {_range(getattr(last, f'sr_{arm}_interval'))}"
        if before is not None:
            change = compare_reports(before, after, skill=arm == "with")["overall"]
            figure = f"{rate(getattr(before.overall, f'sr_{arm}'))} → {figure}"
            how = f"{points(change.change)} points, 95 % interval {_range(change.interval)}"
        found.append(Card(name, figure, how))
    gap = points(last.gap) if before is None else f"{points(before.overall.gap)} → {points(last.gap)}"
    return [*found, Card("Gap (with minus without)", gap, f"points; 95 % interval {_range(last.gap_interval)}")]


def lead(method: str, before: PairedReport | None, after: PairedReport, others: Sequence[ComparedRun] = ()) -> str:
    """What a page shows, in one sentence."""
    how, said = f"with the skill {rate(after.overall.sr_with)} %", f"{rate(after.overall.sr_without)} %"
    if before is None:
        return f"Of {after.overall.n} held-out tasks {said} are solved without the skill, {how}."
    ends = [f"{said} after {method or 'training'}"]
    ends += [
        f"{rate(each.after.overall.sr_without)} % after {method_words(each.name)}" for each in others if each.after
    ]
    return (
        f"Without the skill, success goes from {rate(before.overall.sr_without)} % to {' and to '.join(ends)}; "
        f"{how} (before: {rate(before.overall.sr_with)} %)."
    )


def results(before: PairedReport | None, after: PairedReport, order: Sequence[str] = ()) -> Table:
    """Rates of every type with their intervals, before (if there is one) and after, and the change without skills."""
    changes: Mapping[str, Change] = {} if before is None else compare_reports(before, after, skill=False)
    reports = {"": after} if before is None else {", before": before, ", after": after}
    measured = [(f"{what}{when}", report, show) for when, report in reports.items() for what, show in _MEASURED.items()]
    # The change stands beside the type: what a narrow screen shows first.
    heads = ["type", *["change without"] * bool(changes), "tasks", *(head for head, *_ in measured)]
    rows: list[Row] = []
    for kind in [*in_order(after, order), "overall"]:
        change = [_cell(_signed(changes[kind].change), changes[kind].interval)] if changes else []
        figures = [show(_counts(report, kind)) for _, report, show in measured]
        rows.append(["all" if kind == "overall" else short_type(kind), *change, _counts(after, kind).n, *figures])
    return Table(heads, rows, strong=[len(rows) - 1])


_MEASURED: Mapping[str, Callable[[PairedCounts], Cell]] = {
    "with": lambda counts: _cell(f"{100 * counts.sr_with:.0f}", counts.sr_with_interval),
    "without": lambda counts: _cell(f"{100 * counts.sr_without:.0f}", counts.sr_without_interval),
    "gap": lambda counts: _cell(_signed(counts.gap), counts.gap_interval),
}


def _counts(report: PairedReport, kind: str) -> PairedCounts:
    return report.overall if kind == "overall" else report.per_type[kind]


def measures(report: PairedReport) -> Table:
    """What an evaluation measured besides success: good replies and commands, mean scores and pass@k."""
    rows: list[Row] = [
        [name, tasks, _measured(rates["with"]), _measured(rates["without"])] for name, tasks, rates in _more(report)
    ]
    actions = report.actions()
    for name, what in (("well_formed", "well-formed replies"), ("admissible", "admissible commands")):
        shares = [actions[arm][name] for arm in ("with", "without")]
        if None not in shares:
            rows.append([f"{what}, % of turns", report.overall.n, *(f"{100 * (share or 0):.1f}" for share in shares)])
    return Table(["measure", "tasks", "with", "without"], rows)


def _more(report: PairedReport) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    if graded(report.outcomes):
        scores = mean_scores(report.outcomes)
        yield "mean score", scores["all"]["tasks"], scores["all"]
        if scores["reachable"]:
            yield "mean score, tasks within reach", scores["reachable"]["tasks"], scores["reachable"]
    if report.attempts > 1:
        for k, rates in pass_rates(report.outcomes, report.attempts).items():
            yield f"pass@{k}", report.overall.n, rates


def _measured(found: Mapping[str, Any] | None) -> Cell | None:
    if found is None:
        return None
    value = found["mean"] if "mean" in found else found["rate"]
    return _cell(f"{100 * value:.1f}", Interval(*found["interval"]))


def cut_notes(report: PairedReport) -> Iterator[tuple[str, str]]:
    """What keeps success from saying much: bad replies or commands, and causes that cut episodes ("warn", "soft")."""
    if warning := action_warning(report) if report.warning is None else report.warning:
        yield "warn", warning
    for css, cut, what in (("warn", "context", "The context's end"), ("soft", "steps", "The step limit")):
        found = report.cuts(cut)
        if any(found.values()):
            of = f"of {len(report.outcomes)} episodes"
            yield css, f"{what} cut {found['with']} {of} with the skill and {found['without']} without; they failed."


def retirements(found: Mapping[str, tuple[int, str]]) -> Table:
    """Who retired when and why, by step and reason of every task type."""
    ordered = sorted(found.items(), key=lambda item: item[1][0])
    rows: list[Row] = [[short_type(kind), step, _WHY.get(reason, reason)] for kind, (step, reason) in ordered]
    return Table(["type", "step", "reason"], rows, words=True)


def acted_table(runs: Sequence[ComparedRun]) -> Table:
    """What the methods' own parts did, a column per run; empty where nothing was written down, or they have none."""
    rows: list[Row] = [
        [ACTED[name][0], *(acted_cell(name, [each.acted]) for each in runs)]
        for name in acted_heads([each.acted for each in runs])
    ]
    return Table(["what its own parts did", *(method_words(each.name) for each in runs)], rows)


# Runs compared with each other ----------------------------------------------------------------------------------------


class RunColumn(NamedTuple):
    """One column of the table of compared runs."""

    name: str
    """Its head."""
    run: Callable[[ComparedRun], str | Cell]
    """What a run's row says, which has been evaluated after training."""
    start: Callable[[PairedReport], str | Cell] = lambda before: ""
    """What the row of the common start says."""
    difference: Callable[[ComparedRun, ComparedRun], str | Cell] = lambda first, other: ""
    """What the row of the first run minus another says."""


def _good(report: PairedReport | None) -> str:
    """Shares of well-formed replies and of admissible commands, in per cent, of the turns without the skill."""
    shares = report.actions()["without"].values() if report is not None else ()
    return " / ".join(f"{100 * share:.0f}" for share in shares if share is not None)


def _rate_column(name: str, arm: str) -> RunColumn:
    def shown(report: PairedReport | None) -> Cell:
        assert report is not None
        found: Interval = getattr(report.overall, f"sr_{arm}_interval")
        return _cell(rate(getattr(report.overall, f"sr_{arm}")), found)

    def difference(first: ComparedRun, other: ComparedRun) -> Cell:
        assert first.after is not None
        assert other.after is not None
        found = compare_reports(other.after, first.after, skill=arm == "with")["overall"]
        return Cell(points(found.change), _range(found.interval, "+.0f"))

    return RunColumn(name, lambda each: shown(each.after), shown, difference)


RUN_COLUMNS: tuple[RunColumn, ...] = (
    RunColumn(
        "held-out tasks",
        lambda each: method_words(each.name),
        lambda before: "before training",
        lambda first, other: f"{method_words(first.name)} minus {method_words(other.name)}",
    ),
    _rate_column("without the skill", "without"),
    _rate_column("with the skill", "with"),
    RunColumn("well-formed, admissible", lambda each: _good(each.after), _good),
    RunColumn("updates", lambda each: str(each.run.last_step)),
    RunColumn("tokens generated", lambda each: f"{each.tokens:,}"),
)


def versus_table(runs: Sequence[ComparedRun]) -> Table:
    """Held-out success of runs from one start, with the differences of the first run from the others."""
    first, before = runs[0], runs[0].before
    done = [each for each in runs if each.after is not None]
    rows: list[Row] = [[column.start(before) for column in RUN_COLUMNS]] if before is not None else []
    rows += [[column.run(each) for column in RUN_COLUMNS] for each in done]
    others = [each for each in done if each is not first] if first in done else []
    strong = range(len(rows), len(rows) + len(others))
    rows += [[column.difference(first, each) for column in RUN_COLUMNS] for each in others]
    return Table([column.name for column in RUN_COLUMNS], rows, strong=strong)


def own_agent(report: PairedReport) -> str:
    """The agent that played, whose examples or notes are not the policy's own; "" for the policy as it is."""
    return "" if report.agent == "zero-shot" else report.agent


def agent_words(report: PairedReport) -> str:
    """A sentence on the agent that played; "" if none did."""
    agent = own_agent(report)
    return f"Played by the agent {agent}, which shows more than the skill." if agent else ""


def shared_words(runs: Sequence[ComparedRun]) -> str:
    """What compared runs have in common, as far as all of them say it, and in what they differ."""
    known: dict[str, list[Any]] = {
        "environment": [each.run.config.get("env") for each in runs],
        "tasks": [each.after and each.after.panel_sha256 for each in runs],
        "start": [each.run.config.get("model") for each in runs],
        "seed": [each.run.config.get("seed") for each in runs],
        "number of updates": [each.run.last_step for each in runs],
    }
    counts = {name: len(set(map(str, values))) for name, values in known.items() if None not in values}
    same, other = (
        ", ".join(name for name, count in counts.items() if (count == 1) is alike) for alike in (True, False)
    )
    said = (f"The same in all runs: {same}." if same else "", f"Not the same: {other}." if other else "")
    return " ".join(filter(None, said))


def _cell(figure: str, interval: Interval) -> Cell:
    return Cell(figure, _range(interval))


def _signed(difference: float) -> str:
    whole = round(100 * difference)
    return f"{whole:+d}" if whole else "0"


def _range(interval: Interval, form: str = ".0f") -> str:
    return f"[{100 * interval.low:{form}}, {100 * interval.high:{form}}]"  # "-0" says on which side of 0 it ends

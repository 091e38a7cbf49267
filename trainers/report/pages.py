"""The report of a run as one HTML page that needs no other file."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from skillc_gym.episodes import STYLE, Episode
from trainers.evaluation.paired_report import Change, PairedCounts, PairedReport, compare_reports
from trainers.evaluation.stats import Interval
from trainers.report.records import RunRecords
from trainers.report.transcripts import transcripts_section
from trainers.tracking.progress import short_type

__all__ = ["PageContent", "render_page"]

_STYLE = """
:root { --ink:#1d2330; --soft:#667085; --line:#e4e7ec; --card:#fff; --page:#f2f4f7; color-scheme:light dark; }
@media (prefers-color-scheme: dark) { :root { --ink:#e6e9ef; --soft:#98a2b3; --line:#2b3240; --card:#171b24;
  --page:#0e1117; } }
* { box-sizing:border-box; }
body { margin:0 auto; max-width:78rem; padding:2rem 1.2rem 4rem; background:var(--page); color:var(--ink);
  font:16px/1.55 system-ui,sans-serif; }
h1 { font-size:1.6rem; margin:0 0 .3rem; } h2 { margin:2.6rem 0 .7rem; font-size:1.2rem; } h3 { margin:1.6rem 0 .4rem;
  font-size:1rem; }
p { max-width:48rem; } .soft { color:var(--soft); font-size:.9rem; }
.cards { display:grid; grid-template-columns:repeat(auto-fit,minmax(15rem,1fr)); gap:1rem; margin:1.4rem 0; }
.card { background:var(--card); border:1px solid var(--line); border-radius:12px; padding:1rem 1.2rem; }
.card b { display:block; font-size:1.7rem; line-height:1.3; font-variant-numeric:tabular-nums; }
figure { margin:1rem 0; background:#fff; border:1px solid var(--line); border-radius:12px; padding:.9rem; }
figure img { width:100%; height:auto; display:block; } figure.narrow { max-width:52rem; }
.scroll { overflow-x:auto; background:var(--card); border:1px solid var(--line); border-radius:12px; }
table { border-collapse:collapse; width:100%; font-size:.9rem; font-variant-numeric:tabular-nums; }
th, td { padding:.5rem .8rem; text-align:right; white-space:nowrap; border-bottom:1px solid var(--line); }
th:first-child, td:first-child { text-align:left; } tr:last-child td { border-bottom:0; }
table.words th, table.words td { text-align:left; }
tr.all td { font-weight:600; } td small { color:var(--soft); font-weight:400; }
details.pair, details.raw { background:var(--card); border:1px solid var(--line); border-radius:12px; margin:.6rem 0;
  padding:.6rem 1rem; }
summary { cursor:pointer; } details.raw pre { overflow-x:auto; font-size:.8rem; }
"""

_CAPTIONS = {
    "overview": "The run at a glance: success, active types, gap, gate and rollouts with the skill.",
    "before_after": "Held-out tasks before and after training, with 95 % intervals.",
    "success_by_type": "Each type on the held-back panel that steers the curriculum.",
    "diagnostics": "Whom the updates rewarded, and how long episodes were.",
}


@dataclass(frozen=True)
class PageContent:
    """What a page is made of.

    Attributes:
        title: Its heading.
        run: The run's metrics.
        figures: PNG files by name.
        before: Evaluation before training.
        after: Evaluation after it.
        episodes_before: Transcripts of the former.
        episodes_after: Transcripts of the latter.
        versions: The run's ``versions.json``.
    """

    title: str
    run: RunRecords
    figures: Mapping[str, Path]
    before: PairedReport | None = None
    after: PairedReport | None = None
    episodes_before: Sequence[Episode] = ()
    episodes_after: Sequence[Episode] = ()
    versions: Mapping[str, Any] = field(default_factory=dict)


def render_page(content: PageContent) -> str:
    """Renders the page; every recorded text is escaped, every figure inlined."""
    parts = [f"<h1>{escape(content.title)}</h1>", _lead(content), _figure(content, "overview")]
    if content.after is not None:
        parts += ["<h2>Held-out tasks</h2>", _results(content), _figure(content, "before_after", narrow=True)]
    parts += [
        "<h2>Retirement</h2>",
        _retirements(content.run),
        "<h2>Each task type</h2>",
        _figure(content, "success_by_type"),
        "<h2>What the advantages did</h2>",
        _figure(content, "diagnostics"),
    ]
    if content.episodes_after:
        parts += ["<h2>Transcripts</h2>", _transcripts(content)]
    parts += [
        "<h2>Where this comes from</h2>",
        _raw("Configuration", content.run.config),
        _raw("Versions", content.versions),
    ]
    body = "\n".join(part for part in parts if part)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(content.title)}</title><style>{_STYLE}{STYLE}</style></head>\n<body>{body}</body></html>\n"
    )


def _lead(content: PageContent) -> str:
    before, after = content.before, content.after
    if before is None or after is None:
        return f'<p class="soft">{content.run.last_step} training steps; no evaluation before and after.</p>'
    change = compare_reports(before, after, skill=False)["overall"]
    cards = (
        ("Success without skills", f"{_percent(change.before)} → {_percent(change.after)}", _change_text(change)),
        (
            "Success with skills",
            f"{_percent(before.overall.sr_with)} → {_percent(after.overall.sr_with)}",
            "same tasks",
        ),
        (
            "Gap (with minus without)",
            f"{_points(before.overall.gap)} → {_points(after.overall.gap)}",
            f"95 % intervals {_range(before.overall.gap_interval)} and {_range(after.overall.gap_interval)}",
        ),
    )
    boxes = "".join(
        f'<div class="card">{name}<b>{figure}</b><small class="soft">{how}</small></div>' for name, figure, how in cards
    )
    return (
        f'<p class="soft">{content.run.last_step} training steps; {change.n} held-out tasks, each played once with the '
        f"skill and once without from the same seed. One training run: the intervals speak of the choice of tasks, not "
        f'of other training seeds.</p><div class="cards">{boxes}</div>'
    )


def _results(content: PageContent) -> str:
    after, before = content.after, content.before
    assert after is not None
    order = [*(k for k in content.run.task_types if k in after.per_type)]
    order += [k for k in after.per_type if k not in order]
    changes = compare_reports(before, after, skill=False) if before is not None else {}
    rows = [(short_type(kind), kind, after.per_type[kind]) for kind in order] + [("all", "overall", after.overall)]
    lines = []
    for name, key, counts in rows:
        first = None if before is None else before.overall if key == "overall" else before.per_type[key]
        css = ' class="all"' if key == "overall" else ""
        lines.append(
            f"<tr{css}><td>{escape(name)}</td><td>{counts.n}</td>{_cells(first, counts, changes.get(key))}</tr>"
        )
    times = ("before", "after") if before is not None else ("after",)
    heads = "".join(f"<th>{what}, {when}</th>" for when in times for what in ("with", "without", "gap"))
    change = "<th>change without</th>" if changes else ""
    return (
        f'<div class="scroll"><table><tr><th>type</th><th>tasks</th>{heads}{change}</tr>{"".join(lines)}</table></div>'
        '<p class="soft">Percent, with 95 % intervals: Wilson for rates, Newcombe (paired) for differences.</p>'
    )


def _cells(before: PairedCounts | None, after: PairedCounts, change: Change | None) -> str:
    cells = []
    for counts in (before, after):
        if counts is not None:
            cells += [
                _cell(f"{100 * counts.sr_with:.0f}", counts.sr_with_interval),
                _cell(f"{100 * counts.sr_without:.0f}", counts.sr_without_interval),
                _cell(_signed(counts.gap), counts.gap_interval),
            ]
    if change is not None:
        cells.append(_cell(_signed(change.change), change.interval))
    return "".join(cells)


def _cell(figure: str, interval: Interval) -> str:
    return f"<td>{figure}<br><small>{_range(interval)}</small></td>"


def _retirements(run: RunRecords) -> str:
    if not run.retirements:
        return '<p class="soft">No type retired.</p>'
    why = {"gap": "its own smoothed gap fell below the threshold", "budget": "cut by the budget K(t)"}
    rows = "".join(
        f"<tr><td>{escape(short_type(kind))}</td><td>{step}</td><td>{escape(why.get(reason, reason))}</td></tr>"
        for kind, (step, reason) in sorted(run.retirements.items(), key=lambda item: item[1][0])
    )
    head = "<tr><th>type</th><th>step</th><th>reason</th></tr>"
    return f'<div class="scroll"><table class="words">{head}{rows}</table></div>'


def _transcripts(content: PageContent) -> str:
    return (
        '<p class="soft">The same task with the skill (left) and without (right). Chosen to show most: tasks that only '
        "the skill solved before training come first. They are no sample.</p>"
        + transcripts_section(content.episodes_before, content.episodes_after)
    )


def _figure(content: PageContent, name: str, *, narrow: bool = False) -> str:
    if name not in content.figures:
        return ""
    data = base64.b64encode(content.figures[name].read_bytes()).decode("ascii")
    css = ' class="narrow"' if narrow else ""
    return f'<figure{css}><img alt="{escape(_CAPTIONS[name])}" src="data:image/png;base64,{data}"></figure>'


def _raw(name: str, values: Mapping[str, Any]) -> str:
    if not values:
        return ""
    text = escape(json.dumps(values, indent=1, ensure_ascii=False))
    return f'<details class="raw"><summary>{name}</summary><pre>{text}</pre></details>'


def _change_text(change: Change) -> str:
    return f"{_points(change.change)} points, 95 % interval {_range(change.interval)}"


def _percent(rate: float) -> str:
    return f"{100 * rate:.1f} %"


def _points(difference: float) -> str:
    return f"{100 * difference:+.1f}"


def _signed(difference: float) -> str:
    whole = round(100 * difference)
    return f"{whole:+d}" if whole else "0"


def _range(interval: Interval) -> str:
    return f"[{100 * interval.low:.0f}, {100 * interval.high:.0f}]"

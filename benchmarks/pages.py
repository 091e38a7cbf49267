"""What pages of the documentation show of records: each table stands below the comment that it is made from.

python -m benchmarks.pages --write    # makes what they show again; without --write, pages that are stale are named

The comment, ``<!--`` to ``-->`` on lines of their own, is a template. It asks for a record's values and writes its
table around them, ``{{ record("fuzz").loader.runs|f(",") }}``, or for a table that is computed from every task's
outcome, ``{{ study("confirmation") }}``. What it says stands below it, up to ``<!--/-->``. Notebooks show what their
cells print, run from top to bottom.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any

import jinja2

from benchmarks.measuring import RECORDS, figure
from skillc_gym.envs.registry import env_spec, short_type
from skillc_gym.errors import ConfigError
from skillc_lab.cli.help import settings_tables
from skillc_lab.studies import CellResult, Regime, comparison_table, read_record
from skillc_lab.tables import Table, points, rate, read_json
from trainers.evaluation import PairedReport
from trainers.stats import wilson

_ROOT = Path(__file__).resolve().parents[1]
_DOCS = (_ROOT / "docs", _ROOT / "scripts" / "hubs")
_FILLED = re.compile(r"^(<!--\n(.*?)\n-->)$.*?^<!--/-->$", re.DOTALL | re.MULTILINE)
_RENAMED = {"inside the noise": "no significant difference", "as good": "equivalent"}
"""Verdicts by the names that older records have for them."""


def filled_in(page: str) -> str:
    """A page's text with the figures of its records below every template; names that one sets hold in later ones."""
    templates = []
    for found in _FILLED.finditer(page):
        if "\n<!--\n" in found[0]:  # what stands up to the end of the next one would be lost
            raise ConfigError(f"The template {found[2]!r} wants a line <!--/--> below it.")
        templates.append(found[2])
    made = iter(environment().from_string("\0".join(templates)).render().split("\0"))
    return _FILLED.sub(lambda found: f"{found[1]}\n\n{next(made).strip()}\n\n<!--/-->", page)


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """A copy of a notebook with each cell's number and what it printed; they run in one namespace, in order."""
    result, names = copy.deepcopy(notebook), {"__name__": "__main__"}
    cells = [cell for cell in result["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, start=1):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)  # the project's own notebook
        lines = printed.getvalue().splitlines(keepends=True)
        cell["execution_count"] = number
        cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
    return result


@cache
def environment() -> jinja2.Environment:
    """What fills pages in; a value that a record lacks is an error."""
    made = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, autoescape=False)
    made.globals |= {
        "record": record,
        "study": study_tables,
        "types": types_table,
        "agents": agents_table,
        "evaluations": evaluation_tables,
        "settings": settings_tables,
        "costs": cost_table,
        "share": share,
        "rises": rises,
    }
    made.filters |= {
        "f": format,
        "figure": figure,
        "median": median,
        "rate": _rate,
        "points": _points,
        "short": short_type,
        "said": lambda verdict: _RENAMED.get(verdict, verdict),
    }
    return made


@cache
def record(name: str) -> dict[str, Any]:
    """A record by its name: a file, or one of those that were measured once, which share a file."""
    once: dict[str, Any] = read_json(RECORDS / "measured_once.json")
    return once.get(name) or read_json(RECORDS / f"{name}.json")


def _rate(found: Mapping[str, Any], key: str = "mean") -> str:
    return rate(found[key], found["interval" if key == "mean" else f"{key}_interval"])


def _points(found: Mapping[str, Any], digits: int = 0) -> str:
    return points(found["mean"], found["interval"], digits)


def study_tables(name: str) -> str:
    """A section for every starting point of a study: its table, and success by seed."""
    return "\n\n".join(
        f"### {name}, {regime.start} start\n\n{comparison_table(regime.rows, regime.before).markdown()}\n\n"
        f"{seed_table(regime).markdown()}"
        for regime in read_record(RECORDS / f"{name}.json").regimes
    )


def seed_table(regime: Regime) -> Table:
    """Success in per cent after training by method and seed, without and with the skill."""
    seeds = sorted({cell.seed for cell in regime.cells})
    rows = []
    for row in regime.rows:
        shown = {cell.seed: f"{100 * cell.without:.1f} / {100 * cell.with_skill:.1f}" for cell in row.cells}
        rows.append([row.method, *map(shown.get, seeds)])
    return Table(["without / with, by seed", *map(str, seeds)], rows)


def types_table(name: str) -> str:
    """Success in per cent by task type, without and with the skill, before training and after each method's."""
    regime = read_record(RECORDS / f"{name}.json").regimes[0]
    shown = {"before": [regime.before]} if regime.before else {}
    shown |= {row.method: [*row.cells] for row in regime.rows}
    kinds = dict.fromkeys(outcome.task_type for cells in shown.values() for outcome in cells[0].outcomes)
    rows = [[short_type(kind), *(_of_cells(cells, kind) for cells in shown.values())] for kind in kinds]
    return Table(["without / with, by type", *shown], rows).markdown()


def _of_cells(cells: Sequence[CellResult], kind: str) -> str:
    found = [outcome for cell in cells for outcome in cell.outcomes if outcome.task_type == kind]
    without, shown = fmean(each.won_without for each in found), fmean(each.won_with for each in found)
    return f"{100 * without:.1f} / {100 * shown:.1f}"


def share(won: int, episodes: int) -> str:
    """Episodes won in per cent, with Wilson's interval."""
    found = wilson(won, episodes)
    return f"{100 * won / episodes:.1f} % [{100 * found.low:.0f}, {100 * found.high:.0f}]"


def cost_table(name: str) -> str:
    """What an update of each method costs, and times what GRPO's costs; the least and the most where they are known."""
    rows = [
        [
            f"`{row['method']}`",
            f"{row['prompt_tokens']:,.0f}",
            f"{row['generated_tokens']:,.0f}",
            f"{row['seconds']:.2f}",
            f"{row['to_grpo']:.2f}",
            f"{row['to_grpo_on_its_rollouts']:.2f}{_ends(row)}" if row["same_rollouts"] else "(rollouts differ)",
        ]
        for row in record(name)["methods"]
    ]
    heads = ["method", "prompt tokens", "generated tokens", "seconds", "to GRPO", "to GRPO on the same rollouts"]
    return Table(heads, rows).markdown()


def _ends(row: Mapping[str, Any]) -> str:
    ratios = row.get("ratios")
    return f" [{min(ratios):.2f}, {max(ratios):.2f}]" if ratios else ""


def agents_table(name: str) -> str:
    """Tasks that agents solved with the skill and without, by environment; those that try again by their last try."""
    found = record(name)["evaluations"]
    by_agent: dict[str, dict[str, Any]] = {}
    for each in found:
        by_agent.setdefault(each["report"]["agent"], {})[each["env"]] = each
    tries = {agent: next(iter(own.values()))["trials"] for agent, own in by_agent.items()}
    heads = [agent + (f", {trials['trials']} tries" if trials else "") for agent, trials in tries.items()]
    rows = []
    for env in dict.fromkeys(each["env"] for each in found):
        own = [_solved(evaluations.get(env)) for evaluations in by_agent.values()]
        tasks = next(each for each in found if each["env"] == env)["report"]["overall"]["n"]
        rows.append([f"{tasks} tasks (`{env}`)", *own])
    return Table(["solved with the skill / without", *heads], rows).markdown()


def _solved(evaluation: Mapping[str, Any] | None) -> str:
    if evaluation is None:
        return "not run"
    if evaluation["trials"]:
        return " / ".join(str(evaluation["trials"][arm][-1]["solved"]) for arm in ("with", "without"))
    overall = evaluation["report"]["overall"]
    return " / ".join(str(round(overall["n"] * overall[f"sr_{arm}"])) for arm in ("with", "without"))


def evaluation_tables(name: str) -> str:
    """Success of evaluated policies by step limit, and by task type."""
    found = record(name)["evaluations"]
    reports = [PairedReport.from_json(each["report"]) for each in found]
    limits = (20, 30, 50)
    heads = [f"{arm}, {limit} steps" for arm in ("with", "without") for limit in limits]
    kinds = env_spec(found[0]["settings"]["env"]).task_types
    named = [[each["policy"], each["settings"]["split"]] for each in found]
    by_limit = [
        [
            *name,
            f"`{str(each['weights_sha256'])[:12]}`",
            len(report.outcomes),
            *(_within(report, arm, limit) for arm in (True, False) for limit in limits),
        ]
        for name, each, report in zip(named, found, reports, strict=True)
    ]
    by_type = [
        [*name, *(_of_type(report, kind) for kind in kinds)] for name, report in zip(named, reports, strict=True)
    ]
    first = Table(["policy", "split", "weights", "tasks", *heads], by_limit)
    second = Table(["policy", "with / without, by type", *kinds.values()], by_type)
    return f"{first.markdown()}\n\n{second.markdown()}"


def _within(report: PairedReport, skill: bool, limit: int) -> str:
    """An episode of at most so many steps would have ended the same under that limit."""
    arms = [outcome.arm(skill) for outcome in report.outcomes]
    won = sum(arm.won and arm.steps <= limit for arm in arms)
    return rate(won / len(arms), wilson(won, len(arms)))


def _of_type(report: PairedReport, kind: str) -> str | None:
    counts = report.per_type.get(kind)
    return f"{100 * counts.sr_with:.0f} / {100 * counts.sr_without:.0f}" if counts else None


def rises(values: Sequence[float]) -> bool:
    """Whether values rise, or fall, with every step."""
    steps = [after - before for before, after in pairwise(values)]
    return all(step > 0 for step in steps) or all(step < 0 for step in steps)


def main(argv: Sequence[str] | None = None) -> int:
    """Writes tables and output of all pages, or names the pages where they are stale and returns 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write them")
    parser.add_argument("--docs", type=Path, nargs="+", default=_DOCS, help="folders of the pages")
    options = parser.parse_args(argv)
    pages = sorted(page for folder in options.docs for page in folder.rglob("*") if page.suffix in (".md", ".ipynb"))
    stale = {page: text for page in pages if (text := _fresh(page))}
    for page, text in stale.items():
        print(f"{page}: {'written' if options.write else 'stale; python -m benchmarks.pages --write'}")
        if options.write:
            page.write_text(text, encoding="utf-8")
    return int(bool(stale) and not options.write)


def _fresh(page: Path) -> str:
    """A page's text with its tables or its output made again; "" where they are as they should be."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        made = json.dumps(executed(json.loads(text)), indent=1, ensure_ascii=False) + "\n"
    else:
        made = filled_in(text)
    return made if made != text else ""


if __name__ == "__main__":
    sys.exit(main())

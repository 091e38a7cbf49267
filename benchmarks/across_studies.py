"""Tables that are computed from the records of several studies.

python -m benchmarks.across_studies criteria RECORD ... --out benchmarks/records/recipe_criteria.json
python -m benchmarks.across_studies gains RECORD ... --out benchmarks/records/gain_by_type.json
python -m benchmarks.across_studies claims RECORD ... --out benchmarks/records/replication.json
python -m benchmarks.across_studies reading RECORD ... --method METHOD --beside GRPO
python -m benchmarks.across_studies texts STUDY.json REPLAY.json --out benchmarks/records/changed_skill.json

``criteria``: what a recipe must do to be recommended: a method compared with others, record by record, and its success
with the skill. ``gains``: what it gains over another one, task type by task type; it says where to look, verdicts are
those of whole regimes. ``claims``: the differences that SkillC's paper reports. ``texts``: what policies of a study do
with a text that should not help, from the study's record and those of its replays (``skillc study ... --library``).
``reading``: a method at the tokens, read and generated, of another one's whole runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.measuring import estimated, measurement, options_parser
from skillc_gym.errors import ConfigError, require_name
from skillc_lab.studies import (
    CellResult,
    Regime,
    area_difference,
    change,
    difference,
    read_record,
    regimes_of,
    success,
    with_method,
)
from skillc_lab.studies.result import area_under_curve
from skillc_lab.studies.table import BaselineComparison, judged
from skillc_lab.tables import record_names
from trainers.stats import Difference, Verdict, mean_over_seeds, t_quantile, wilson

STUDIED = "contrastive_relabelling"
"""The method that most records have: it was the recommended one while they were made."""
_USUAL = ("grpo", "skillc")
CLAIMS: Mapping[str, Mapping[str, float]] = {
    "grpo": {"alfworld": 13.0, "webshop": 7.9},
    "skill0": {"alfworld": 4.7, "webshop": 3.1},
    "gigpo": {"alfworld": -0.2, "webshop": 1.2},
    "no_pairing": {"alfworld": 3.3},
    "mixed_norm": {"alfworld": 2.2},
    "fixed_gate": {"alfworld": 1.7},
    "no_pruning": {"alfworld": 1.1},
    "fixed_rho": {"alfworld": 0.8},
    "high_init": {"alfworld": 3.5},
}
"""By how many points SkillC is said to be better than each, by environment."""
_TURNED: Mapping[Verdict, Verdict] = {"better": "worse", "worse": "better"}


def _regimes(options: argparse.Namespace) -> list[tuple[Path, Regime]]:
    """Every record's regimes, with the baseline that was asked for."""
    records = [(path, read_record(path)) for path in options.records]
    lenders = [(lender, False) for lender in options.beside_from]
    lenders += [(options.baseline_from, True)] if options.baseline_from else []
    for (lender, method), replaces in lenders:
        other = read_record(Path(lender))
        for n, (path, own) in enumerate(records):
            if replaces and own.baseline == options.method:
                raise ConfigError(f"--baseline-from would replace {own.baseline}, the method itself; use --beside-from")
            records[n] = path, with_method(own, other, method, own.baseline if replaces else "")
    found = [(path, regime) for path, record in records for regime in regimes_of([record])]
    _require_methods(options, [regime for _, regime in found])
    if options.types:
        return [(path, _regime_on(regime, options.types)) for path, regime in found]
    return [(path, replace(regime, rows=())) for path, regime in found] if options.own_holm else found


def _regime_on(regime: Regime, types: Sequence[str]) -> Regime:
    """A regime's cells on the held-out tasks of some types, without the study's own table, which is of all."""
    known = {outcome.task_type for outcome in _before(regime).outcomes}
    for kind in types:
        require_name("task type of these held-out tasks", kind, known)
    first, *cells = (_cell_on(cell, types) for cell in (_before(regime), *regime.cells))
    return replace(regime, rows=(), cells=cells, before=first)


def _require_methods(options: argparse.Namespace, regimes: Sequence[Regime]) -> None:
    """An UnknownNameError for a method that no regime has cells of; the usual ones may be missing."""
    known = {cell.method for regime in regimes for cell in regime.cells}
    for name in {options.method, *options.beside} - {STUDIED, *_USUAL}:
        require_name("method of these records", name, known)


def _cells(regime: Regime, *methods: str) -> list[list[CellResult]]:
    return [[cell for cell in regime.cells if cell.method == method] for method in methods]


def _before(regime: Regime) -> CellResult:
    if regime.before is None:
        raise ConfigError(f"{regime.name} has no cell of its starting point; `skillc study` plays it")
    return regime.before


def _judged(found: Mapping[str, Difference]) -> dict[str, Any]:
    """Differences with a verdict each, after Holm's step over those of several seeds."""
    return {
        name: {
            **found[name].to_json(),
            "adjusted_p": each.adjusted_p,
            "seeds": found[name].seeds,
            "not_lower_p": found[name].not_lower_p(),
            "verdict": each.verdict,
        }
        for name, each in judged(found).items()
    }


def _as_in_study(rows: dict[str, Any], regime: Regime, method: str, measure: str) -> dict[str, Any]:
    """The verdicts of the study's own table where it has the pair: one comparison has one verdict, on every page.

    The measure is ``against`` (the end) or ``area_against``, as of :class:`~skillc_lab.studies.MethodRow`.
    """
    if not regime.rows:
        return rows
    baseline = regime.rows[0].method
    for name, found in rows.items():
        row = regime.row(method if name == baseline else name) if baseline in (name, method) else None
        own: BaselineComparison | None = getattr(row, measure, None)
        if own:
            turned = _TURNED.get(own.verdict, own.verdict) if method == baseline else own.verdict
            found.update(adjusted_p=own.adjusted_p, verdict=turned)
    return rows


def criteria(options: argparse.Namespace) -> dict[str, Any]:
    """A method beside others: the end without and with the skill, the mean over training; no records are pooled."""
    regimes = [
        {"record": path.stem, **_criteria(regime, options.method, options.beside)} for path, regime in _regimes(options)
    ]
    for found in (row for regime in regimes for row in regime["beside"].values() if options.types):
        del found["area"]  # of validation tasks, whose types are training's
    return {
        "method": options.method,
        "others": options.beside,
        "records": record_names(options.records),
        **({"types": options.types} if options.types else {}),
        "regimes": regimes,
    }


def _criteria(regime: Regime, method: str, others: Sequence[str]) -> dict[str, Any]:
    own, *cells = _cells(regime, method, *others)
    if not own:
        known = ", ".join(sorted({cell.method for cell in regime.cells}))
        raise ConfigError(f"{regime.name} has no cells of {method!r}; there are {known}")
    played = {name: found for name, found in zip(others, cells, strict=True) if found}
    ends = _judged({name: difference(own, found) for name, found in played.items()})
    areas = _judged({name: area_difference(own, found, regime.budget) for name, found in played.items()})
    ends = _as_in_study(ends, regime, method, "against")
    areas = _as_in_study(areas, regime, method, "area_against")
    shown = _judged({name: difference(own, found, skill=True) for name, found in played.items()})
    with_skill = change(own, _before(regime), skill=True)
    return {
        "regime": regime.name,
        "tokens": regime.budget,
        "seeds": sorted(cell.seed for cell in own),
        "beside": {name: {"end": ends[name], "area": areas[name], "with_skill": shown[name]} for name in played},
        "with_skill_change": {**with_skill.to_json(), "not_lower_p": with_skill.not_lower_p()},
    }


def gains(options: argparse.Namespace) -> dict[str, Any]:
    """A row for each task type of a regime: its rates before training, and the difference of two methods after it."""
    other = options.beside[0]
    rows = [row for _, regime in _regimes(options) for row in _gains(regime, options.method, other)]
    return {"method": options.method, "beside": other, "records": record_names(options.records), "types": rows}


def _gains(regime: Regime, method: str, other: str) -> list[dict[str, Any]]:
    cells, at_first = _cells(regime, method, other), _before(regime)
    if not all(cells):
        raise ConfigError(f"{regime.name} needs cells of {method} and of {other}")
    rows = []
    for kind in sorted({outcome.task_type for outcome in at_first.outcomes}):
        start = _cell_on(at_first, [kind])
        found = difference(*([_cell_on(cell, [kind]) for cell in own] for own in cells))
        before = {"without_before": start.without, "with_before": start.with_skill}
        named = {"regime": regime.name, "task_type": kind, "tasks": len(start.outcomes), "seeds": found.seeds}
        rows.append({**named, **before, **found.to_json()})
    return rows


def _cell_on(cell: CellResult, kinds: Sequence[str]) -> CellResult:
    return replace(cell, outcomes=tuple(outcome for outcome in cell.outcomes if outcome.task_type in kinds))


def claims(options: argparse.Namespace) -> dict[str, Any]:
    """What records say of each of :data:`CLAIMS`."""
    regimes = regimes_of([read_record(path) for path in options.records])
    return {
        "records": record_names(options.records),
        "regimes": {regime.name: _claims(regime) for regime in regimes},
        "settings": [{"regime": regime.name, "tokens": _tokens(regime), "seeds": regime.seeds} for regime in regimes],
    }


def _tokens(regime: Regime) -> str:
    """Generated tokens of a run: the budget, or what the runs took whose updates ended before it."""
    taken = [cell.usage.tokens_generated for cell in regime.cells]
    return f"{regime.budget:,}" if min(taken) >= regime.budget else f"{min(taken):,} to {max(taken):,}"


def _claims(regime: Regime) -> list[dict[str, Any]]:
    wanted = {other: by_env[regime.env] for other, by_env in CLAIMS.items() if regime.env in by_env}
    found = {}
    for other in wanted:
        own, cells = _cells(regime, "skillc", other)
        if {cell.seed for cell in own} & {cell.seed for cell in cells}:
            found[other] = difference(own, cells)
    rows = _as_in_study(_judged(found), regime, "skillc", "against")
    return [
        {
            "first": "skillc",
            "second": other,
            "paper": points,
            "found": {**rows[other], "visible": visible(found[other])} if other in found else None,
        }
        for other, points in wanted.items()
    ]


def visible(found: Difference) -> float | None:
    """The smallest true difference that a comparison of this noise would call significant four times of five.

    Before Holm's adjustment; None with one seed, whose noise the comparison does not know.
    """
    if found.seeds < 2:
        return None
    return (t_quantile(0.975, found.freedom) + t_quantile(0.8, found.freedom)) * found.error


def texts(options: argparse.Namespace) -> dict[str, Any]:
    """Success with each shown text before and after training; the first record is the study's own, with the skill."""
    records = [read_record(path) for path in options.records]
    panels = {cell.panel_sha256 for record in records for cell in record.results}
    if len(panels) > 1:
        raise ConfigError(f"Texts are compared on the same tasks; these records have {len(panels)} panels")
    _require_methods(options, [regime for record in records for regime in record.regimes])
    starts: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        library = str(record.protocol["settings"].get("library") or "the skill")
        for regime in record.regimes:
            shown = _text(regime, library, [options.method, *options.beside])
            starts.setdefault(regime.start, []).append(shown)
    tasks = len(records[0].results[0].outcomes)
    return {"records": record_names(options.records), "tasks": tasks, "starts": starts}


def _text(regime: Regime, library: str, methods: Sequence[str]) -> dict[str, Any]:
    before = _before(regime)
    shown = dict(zip(methods, _cells(regime, *methods), strict=True))
    won = sum(outcome.won_with for outcome in before.outcomes)
    return {
        "shown": library,
        "before": {"mean": before.with_skill, "interval": wilson(won, len(before.outcomes)).to_json()},
        "before_without": before.without,
        "after": {method: _after(cells, before) for method, cells in shown.items() if cells},
    }


def _after(cells: Sequence[CellResult], before: CellResult) -> dict[str, Any]:
    return {
        "seeds": sorted(cell.seed for cell in cells),
        **estimated(success(cells, skill=True)),
        "without": success(cells, skill=False).mean,
        "change": change(cells, before, skill=True).to_json(),
    }


def reading(options: argparse.Namespace) -> dict[str, Any]:
    """A method when it has read and generated as many tokens as the other in its whole runs, on validation tasks.

    A run is taken to read as evenly as it generates.
    """
    other = options.beside[0]
    rows = [_reading(regime, options.method, other) for _, regime in _regimes(options)]
    return {"method": options.method, "beside": other, "records": record_names(options.records), "regimes": rows}


def _reading(regime: Regime, method: str, other: str) -> dict[str, Any]:
    own, others = ({cell.seed: cell for cell in cells} for cells in _cells(regime, method, other))
    pairs = [(own[seed], others[seed]) for seed in sorted(own.keys() & others.keys())]
    if not pairs:
        raise ConfigError(f"{regime.name} needs cells of {method} and of {other}, of the same seeds")
    shares = [_all_tokens(theirs) / _all_tokens(mine) for mine, theirs in pairs]
    there = [_validation(mine, min(1.0, share)) for (mine, _), share in zip(pairs, shares, strict=True)]
    ends = [_validation(mine, 1.0) for mine, _ in pairs]
    at_end = [at - _validation(theirs, 1.0) for at, (_, theirs) in zip(there, pairs, strict=True)]
    over_training = [
        _mean_validation(mine, min(1.0, share)) - _mean_validation(theirs, min(1.0, 1 / share))
        for (mine, theirs), share in zip(pairs, shares, strict=True)
    ]
    return {
        "regime": regime.name,
        "seeds": [mine.seed for mine, _ in pairs],
        "share_of_run": fmean(shares),
        "validation_there": fmean(there),
        "validation_at_end": fmean(ends),
        "minus_others_end": estimated(mean_over_seeds(at_end)),
        "over_training": estimated(mean_over_seeds(over_training)),
    }


def _all_tokens(cell: CellResult) -> int:
    return cell.usage.tokens_generated + cell.usage.prompt_tokens


def _validation(cell: CellResult, share: float) -> float:
    """Success without the skill on validation tasks after a share of the run's tokens, between validations by line."""
    tokens, rates = zip(*((point.tokens, point.without) for point in cell.curve), strict=True)
    return float(np.interp(share * tokens[-1], tokens, rates))


def _mean_validation(cell: CellResult, share: float) -> float:
    """The mean of :func:`_validation` up to a share of the run."""
    return area_under_curve(cell.curve, round(share * cell.curve[-1].tokens))


TABLES: Mapping[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "claims": claims,
    "criteria": criteria,
    "gains": gains,
    "reading": reading,
    "texts": texts,
}


def main(words: Sequence[str] | None = None) -> int:
    """Computes a table; 2 where a record is missing, of other tasks, or lacks one of the methods."""
    parser = options_parser(__doc__)
    parser.add_argument("table", choices=TABLES, help="what is computed")
    parser.add_argument("records", type=Path, nargs="+", help="records of `skillc study`")
    parser.add_argument("--method", default=STUDIED, help=f"the method (default: {STUDIED}, which most records have)")
    parser.add_argument("--types", nargs="+", help="criteria: held-out tasks of these types alone, by full name")
    own = "criteria: Holm over --beside alone, also where the study's own table has the pair among others"
    parser.add_argument("--own-holm", action="store_true", help=own)
    parser.add_argument("--beside", nargs="+", default=_USUAL, help="others; for gains and reading the first alone")
    taken = "criteria, gains, reading: the record and the method that the baseline's cells are taken from"
    parser.add_argument("--baseline-from", nargs=2, metavar=("RECORD", "METHOD"), help=taken)
    added = (
        "criteria: a record of the same tasks and a method whose cells are added to those of the records; repeatable"
    )
    parser.add_argument("--beside-from", nargs=2, action="append", default=[], metavar=("RECORD", "METHOD"), help=added)
    return measurement(parser, _table, words)


def _table(options: argparse.Namespace) -> dict[str, Any]:
    if (options.types or options.own_holm) and options.table != "criteria":
        raise ConfigError(f"--types and --own-holm are of criteria; leave them out for {options.table}")
    return TABLES[options.table](options)


if __name__ == "__main__":
    sys.exit(main())

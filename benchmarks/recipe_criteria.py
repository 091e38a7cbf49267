"""What a recipe must do to be recommended, and what records say: beside others, and with the skill beside its start.

``python -m benchmarks.recipe_criteria RECORD ... --out FILE`` writes the table, FILE without its ending. Each record is
read alone: studies of one regime are not pooled, and Holm's step goes over the other methods of a record that are named
here.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.page_record import measure_and_write, record_names
from benchmarks.rates import points
from skillc_gym.errors import ConfigError
from skillc_lab.studies import CellResult, Regime, area_difference, change, difference, read_record, regimes_of
from trainers.recipes import RECOMMENDED
from trainers.stats import Difference, holm

__all__ = ["beside", "criteria", "main"]


def criteria(regime: Regime, method: str, others: Sequence[str]) -> dict[str, Any]:
    """A method beside others in one regime, and its success with the skill beside the starting point's.

    Raises:
        ConfigError: The regime has no cells of the method, or was not played before training.
    """
    cells = {name: [cell for cell in regime.cells if cell.method == name] for name in (method, *others)}
    if not cells[method]:
        raise ConfigError(f"{regime.name} has no cells of {method!r}; there are {', '.join(_methods(regime))}")
    if regime.before is None:
        raise ConfigError(f"{regime.name} has no cell of its starting point; `skillc study` plays it")
    with_skill = change(cells[method], regime.before, skill=True)
    return {
        "regime": regime.name,
        "tokens": regime.budget,
        "seeds": sorted(cell.seed for cell in cells[method]),
        "beside": beside(cells[method], {name: cells[name] for name in others if cells[name]}, regime.budget),
        "with_skill_change": {**with_skill.to_json(), "not_lower_p": with_skill.not_lower_p()},
    }


def beside(
    own: Sequence[CellResult], others: Mapping[str, Sequence[CellResult]], budget: int
) -> dict[str, dict[str, Any]]:
    """The method's difference to each other one, at the end and by the area, over the seeds that both have.

    Args:
        own: The method's cells.
        others: Cells of the others, by name.
        budget: Generated tokens over which the area is taken.
    """
    at_end = _judged({name: difference(own, cells) for name, cells in others.items()})
    areas = _judged({name: area_difference(own, cells, budget) for name, cells in others.items()})
    return {name: {"end": at_end[name], "area": areas[name]} for name in others}


def _judged(found: Mapping[str, Difference]) -> dict[str, dict[str, Any]]:
    differ = holm({name: each.p_value for name, each in found.items()})
    equal = holm({name: each.equivalence_p() for name, each in found.items()})
    return {
        name: {
            **each.to_json(),
            "adjusted_p": differ[name],
            "seeds": each.seeds,
            "not_lower_p": each.not_lower_p(),
            "verdict": each.verdict(differ[name], equal[name]),
        }
        for name, each in found.items()
    }


def _methods(regime: Regime) -> list[str]:
    return sorted({cell.method for cell in regime.cells})


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    regimes = [(path, regime) for path in options.records for regime in regimes_of([read_record(path)])]
    return {
        "method": options.method,
        "others": options.beside,
        "records": record_names(options.records),
        "regimes": [
            {"record": path.stem, **criteria(regime, options.method, options.beside)} for path, regime in regimes
        ],
    }


def _page(record: Mapping[str, Any]) -> str:
    lines = [
        f"# {record['method']} beside {' and '.join(record['others'])}, regime by regime",
        "",
        f"`python -m benchmarks.recipe_criteria {' '.join(record['records'])} --out docs/results/recipe_criteria`: "
        "success on held-out tasks without the skill, in points, 95 % over seeds and tasks.",
        "Each record is read alone, and verdicts are after Holm's step over the other methods of this table in it. "
        "**With the skill** is success with it after training minus before.",
        "",
        "| record | regime | seeds | beside | at the end | by the area | with the skill |",
        "|---" * 7 + "|",
        *(line for regime in record["regimes"] for line in _lines(regime)),
    ]
    return "\n".join(lines) + "\n"


def _lines(regime: Mapping[str, Any]) -> list[str]:
    own = points(regime["with_skill_change"])
    head = f"| [{regime['record']}]({regime['record']}.md) | {regime['regime']} |"
    return [
        f"{head} {found['end']['seeds']} | {name} | {_said(found['end'])} | {_said(found['area'])} | {own} |"
        for name, found in regime["beside"].items()
    ]


def _said(found: Mapping[str, Any]) -> str:
    return f"{points(found)}: {found['verdict']}"


def main(words: Sequence[str] | None = None) -> int:
    """Writes the table; 2 where a record is missing, or has nothing of the method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path, nargs="+", help="records of `skillc study`")
    parser.add_argument("--method", default=RECOMMENDED, help=f"the recipe (default: {RECOMMENDED})")
    parser.add_argument("--beside", nargs="+", default=["grpo", "skillc"], help="other methods (default: grpo skillc)")
    parser.add_argument("--out", type=Path, help="record and page, without ending")
    return 2 if measure_and_write(parser.parse_args(words), _measure, _page) is None else 0


if __name__ == "__main__":
    raise SystemExit(main())

"""The differences that the method's paper reports, beside what this project's records say of them.

``python -m benchmarks.replication_table RECORD ... --out FILE`` writes the table, FILE without its ending; what no
record has stands as not yet measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.page_record import measure_and_write, record_names
from benchmarks.rates import points
from skillc_lab.studies import Regime, difference, read_record, regimes_of
from trainers.stats import Difference, holm, t_quantile

__all__ = ["CLAIMS", "Claim", "visible"]


@dataclass(frozen=True)
class Claim:
    """A difference of skill-free success between two methods.

    Attributes:
        first: The method that is said to be better.
        second: The other one.
        points: By how many points, by environment, as the paper has it.
    """

    first: str
    second: str
    points: dict[str, float]


CLAIMS = (
    Claim("skillc", "grpo", {"alfworld": 13.0, "webshop": 7.9}),
    Claim("skillc", "skill0", {"alfworld": 4.7, "webshop": 3.1}),
    Claim("skillc", "gigpo", {"alfworld": -0.2, "webshop": 1.2}),
    Claim("skillc", "no_pairing", {"alfworld": 3.3}),
    Claim("skillc", "mixed_norm", {"alfworld": 2.2}),
    Claim("skillc", "fixed_gate", {"alfworld": 1.7}),
    Claim("skillc", "no_pruning", {"alfworld": 1.1}),
    Claim("skillc", "fixed_rho", {"alfworld": 0.8}),
    Claim("skillc", "high_init", {"alfworld": 3.5}),
)


def visible(found: Difference, power: float = 0.8) -> float | None:
    """The smallest true difference that a comparison of this noise would call significant with this power.

    Before Holm's adjustment; None with one seed, whose noise the comparison does not know.
    """
    if found.seeds < 2 or not found.error:
        return None
    return (t_quantile(0.975, found.freedom) + t_quantile(power, found.freedom)) * found.error


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    regimes = regimes_of([read_record(path) for path in options.records])
    return {
        "records": record_names(options.records),
        "regimes": {regime.name: _claims(regime) for regime in regimes},
        "settings": [{"regime": regime.name, "tokens": _tokens(regime), "seeds": regime.seeds} for regime in regimes],
    }


def _tokens(regime: Regime) -> str:
    """Generated tokens of a run: the budget, or what the runs took whose updates ended before it."""
    taken = [cell.usage.tokens_generated for cell in regime.cells]
    if min(taken) >= regime.budget:
        return f"{regime.budget:,}"
    return f"{min(taken):,} to {max(taken):,}"


def _claims(regime: Regime) -> list[dict[str, Any]]:
    found = [(claim, _difference(regime, claim)) for claim in CLAIMS if regime.env in claim.points]
    several = {claim.second: each for claim, each in found if each is not None and each.seeds > 1}
    adjusted = holm({name: each.p_value for name, each in several.items()})
    equal = holm({name: each.equivalence_p() for name, each in several.items()})
    return [
        {
            "first": claim.first,
            "second": claim.second,
            "paper": claim.points[regime.env],
            "found": each
            and {
                **each.to_json(),
                "seeds": each.seeds,
                "visible": visible(each),
                "verdict": each.verdict(adjusted.get(claim.second, 1.0), equal.get(claim.second, 1.0)),
            },
        }
        for claim, each in found
    ]


def _difference(regime: Regime, claim: Claim) -> Difference | None:
    cells = {name: [cell for cell in regime.cells if cell.method == name] for name in (claim.first, claim.second)}
    shared = set.intersection(*({cell.seed for cell in own} for own in cells.values()))
    return difference(cells[claim.first], cells[claim.second]) if shared else None


def _page(record: dict[str, Any]) -> str:
    lines = [
        "# The paper's differences beside this project's",
        "",
        f"`python -m benchmarks.replication_table {' '.join(record['records'])} --out docs/results/replication`: "
        "skill-free success on held-out tasks, in points.",
        "**Visible** is the smallest true difference that a comparison with this noise would see with a power of 80 %, "
        "before Holm's adjustment.",
    ]
    for settings in record["settings"]:
        name = settings["regime"]
        lines += [
            "",
            f"## {name}",
            "",
            f"{settings['tokens']} generated tokens a run; {settings['seeds']}.",
            "",
            "| difference | paper | here, 95 % | seeds | visible | verdict |",
            "|---" * 6 + "|",
            *(_line(entry) for entry in record["regimes"][name]),
        ]
    return "\n".join(lines) + "\n"


def _line(entry: dict[str, Any]) -> str:
    found, label = entry["found"], f"{entry['first']} minus {entry['second']}"
    if found is None:
        return f"| {label} | {entry['paper']:+.1f} | not yet measured | | | |"
    seen = "" if found["visible"] is None else f"{100 * found['visible']:.0f}"
    return f"| {label} | {entry['paper']:+.1f} | {points(found)} | {found['seeds']} | {seen} | {found['verdict']} |"


def main(words: Sequence[str] | None = None) -> int:
    """Writes the table; 2 where a record is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path, nargs="+", help="records of `skillc study`")
    parser.add_argument("--out", type=Path, help="record and page, without ending")
    return 2 if measure_and_write(parser.parse_args(words), _measure, _page) is None else 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Compares WebShop with all recordings of upstream's, says what each fix changes of them, and writes it down.

python -m benchmarks.parity_webshop --reference FOLDER --data FOLDER --out benchmarks/records/parity_webshop.json
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.measuring import measurement, options_parser
from benchmarks.parity import webshop as parity
from benchmarks.parity import webshop_catalog as parity_catalog
from benchmarks.parity.webshop import Comparison, compare_episodes
from skillc_gym.envs.webshop.shop import FIXED, FIXES, UPSTREAM, Fixes
from skillc_gym.errors import MissingDataError
from skillc_gym.version import __version__

EXACT: tuple[Callable[[Path], Comparison], ...] = (
    parity.compare_colors,
    parity.compare_fuzzy,
    parity.compare_rewards,
    parity.compare_goals,
    parity_catalog.compare_products,
    parity_catalog.compare_loader,
    parity_catalog.compare_terms,
    parity_catalog.compare_rankings,
    parity_catalog.compare_special_searches,
    parity.compare_episodes,
)
"""What must be equal."""


def _changed(folder: Path, fixes: Fixes) -> frozenset[str]:
    """The recordings that some fixes change: episodes by id, hidden commands."""
    episodes = compare_episodes(folder, compat=fixes)
    hidden = parity_catalog.compare_special_searches(folder, compat=fixes)
    lines = [line.split(" step ")[0] for line in episodes.differences]
    return frozenset(lines + [f"`{line.split(': got ')[0]}`" for line in hidden.differences])


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    found = [compare(options.reference) for compare in EXACT]
    try:
        found.append(parity_catalog.compare_real_rankings(options.reference, options.data))
    except MissingDataError as error:
        print(f"The rankings of the real products were not compared: {error}", file=sys.stderr)
    alone = {name: _changed(options.reference, replace(UPSTREAM, **{name: True})) for name in FIXES}
    together = _changed(options.reference, FIXED)
    compared = [
        {"name": each.name, "cases": each.cases, "counts": dict(each.counts), "differences": each.differences}
        for each in [*found, parity.compare_nouns(options.reference)]
    ]
    fixes = {name: sorted(changed) for name, changed in alone.items()}
    unexplained = sorted(together.difference(*alone.values()))
    told = {"fixes": fixes, "all_fixes": sorted(together), "unexplained": unexplained}
    return {"version": __version__, "compared": compared, **told}


def main(words: Sequence[str] | None = None) -> int:
    """Compares; returns 1 if anything differs that must not. A tagger need not agree with the recorded nouns."""
    parser = options_parser(__doc__)
    parser.add_argument("--reference", type=Path, required=True, help="folder of reference vectors")
    parser.add_argument("--data", default=None, help="the real 1,000 products; $WEBSHOP_DATA if left out")
    return measurement(parser, _measure, words, failed=_wrong)


def _wrong(record: dict[str, Any]) -> bool:
    exact = [each for each in record["compared"] if not each["name"].startswith("nouns")]
    return bool(record["unexplained"]) or any(each["differences"] for each in exact)


if __name__ == "__main__":
    sys.exit(main())

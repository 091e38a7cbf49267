"""Compares WebShop with all recordings of upstream's, says what each fix changes of them, and writes it down.

python -m benchmarks.parity_webshop --reference FOLDER --data FOLDER --out docs/results/parity_webshop
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.parity import webshop as parity
from benchmarks.parity import webshop_catalog as parity_catalog
from benchmarks.parity.webshop import Comparison, compare_episodes
from benchmarks.revision import write_record
from skillc_gym.envs.webshop.shop import FIXED, FIXES, UPSTREAM, Fixes
from skillc_gym.errors import MissingDataError, SkillCError
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


@dataclass(frozen=True)
class Effects:
    """The recordings that fixes change (episodes by id, hidden commands): each fix alone, and all together."""

    alone: dict[str, frozenset[str]]
    together: frozenset[str]

    @property
    def unexplained(self) -> frozenset[str]:
        """The recordings that change with all fixes and with none alone."""
        return self.together - frozenset().union(*self.alone.values())


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns 1 if anything differs that must not."""
    options = _parser().parse_args(arguments)
    try:
        exact = [_told(compare(options.reference), options.show) for compare in EXACT]
        missing = ""
        try:
            exact.append(_told(parity_catalog.compare_real_rankings(options.reference, options.data), options.show))
        except MissingDataError as error:
            missing = f"The rankings of the real products were not compared: {error}"
            print(missing)
        nouns = _told(parity.compare_nouns(options.reference), options.show)
        effects = fix_effects(options.reference)
    except SkillCError as error:
        print(error, file=sys.stderr)
        return 2
    page = _page(exact, nouns, effects, missing)
    print(page)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.with_suffix(".md").write_text(page, encoding="utf-8")
        write_record(options.out.with_suffix(".json"), _record(exact, nouns, effects))
    return 1 if effects.unexplained or any(found.differences for found in exact) else 0


def fix_effects(folder: Path) -> Effects:
    """Replays all recorded episodes and hidden commands with each fix alone, then with all of them."""
    alone = {name: _changed(folder, replace(UPSTREAM, **{name: True})) for name in FIXES}
    return Effects(alone, _changed(folder, FIXED))


def _changed(folder: Path, fixes: Fixes) -> frozenset[str]:
    episodes = compare_episodes(folder, compat=fixes)
    hidden = parity_catalog.compare_special_searches(folder, compat=fixes)
    lines = [line.split(" step ")[0] for line in episodes.differences]
    return frozenset(lines + [f"`{line.split(': got ')[0]}`" for line in hidden.differences])


def _told(found: Comparison, show: int) -> Comparison:
    print(f"{found.name}: {found.cases} cases, {len(found.differences)} differ", flush=True)
    for line in found.differences[:show]:
        print(f"    {line}")
    return found


def _page(exact: list[Comparison], nouns: Comparison, effects: Effects, missing: str) -> str:
    rows = [f"| {found.name} | {_counted(found)} | {found.cases:,} | {len(found.differences)} |" for found in exact]
    fixes = [f"| `{name}` | {len(changed)} | {' '.join(sorted(changed))} |" for name, changed in effects.alone.items()]
    agreeing = nouns.cases - len(nouns.differences)
    lines = [
        "# WebShop beside recordings of upstream",
        "Recordings of princeton-nlp/WebShop at 64fa2a5 with real Lucene, on 498 made-up products, and of a real "
        "Lucene index over the real 1,000 products. Made by `python -m benchmarks.parity_webshop`, "
        f'skillc-gym {__version__}, with `compat="upstream"` where it matters.',
        "\n".join(["| recordings | of which | cases | different |", "|---|---|---:|---:|", *rows]),
        *([missing] if missing else []),
        f"The built-in tagger finds the recorded nouns of {agreeing} of {nouns.cases} names; rewards were computed "
        "from the recorded nouns, purchases in episodes from the tagger's.",
        "## What the fixes change",
        f'With `compat="fixed"`, {len(effects.together)} episodes and hidden commands differ somewhere. Each fix alone '
        f"changes those named beside it; {len(effects.unexplained)} differ for no fix.",
        "\n".join(["| fix | changed | which |", "|---|---:|---|", *fixes]),
        "Fuzzy scores, rewards, goals, products, terms and rankings do not depend on `compat`. Where a fix changes "
        "none, no recording reaches what it is about; the tests do.",
    ]
    return "\n\n".join(lines) + "\n"


def _counted(found: Comparison) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in found.counts.items())


def _record(exact: list[Comparison], nouns: Comparison, effects: Effects) -> dict[str, Any]:
    compared = [
        {"name": found.name, "cases": found.cases, "counts": dict(found.counts), "differences": found.differences}
        for found in [*exact, nouns]
    ]
    fixes = {name: sorted(changed) for name, changed in effects.alone.items()}
    return {"version": __version__, "compared": compared, "fixes": fixes, "all_fixes": sorted(effects.together)}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", type=Path, required=True, help="folder of reference vectors")
    parser.add_argument("--data", default=None, help="the real 1,000 products; $WEBSHOP_DATA if left out")
    parser.add_argument("--show", type=int, default=3, help="differences to show of each kind")
    parser.add_argument("--out", type=Path, help="where to write .md and .json")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""Make a WebShop catalogue: from upstream's JSON files, or of generated products.

    python scripts/make_catalog.py --out catalogs/full --products items_shuffle.json --attributes items_ins_v2.json
    python scripts/make_catalog.py --out catalogs/folder --source data/webshop
    python scripts/make_catalog.py --out catalogs/big --generate 1180000 --seed 0
    python scripts/make_catalog.py --out made --generate 1000 --json        # upstream's three files instead

Rows are read and written one by one, so memory does not grow with the files. The folder is then opened with
``gym.make("skillc/WebShop-v0", data="catalogs/full")``.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import IO

from skillc_gym.envs.webshop.catalog.catalog import Catalog, build_catalog
from skillc_gym.envs.webshop.catalog.generate import GeneratedSource, generate_rows
from skillc_gym.envs.webshop.catalog.sources import JsonSource
from skillc_gym.errors import ConfigError, SkillCError

FILES = ("items_shuffle.json", "items_ins_v2.json", "items_human_ins.json")
SHOWN_NOTES = 10


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    args = _parser().parse_args(argv)
    try:
        _require_empty(args.out)
        if args.json:
            if args.generate is None:
                raise ConfigError("--json goes with --generate only")
            write_json(args.out, args.generate, args.seed)
        else:
            _build(args)
    except SkillCError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _require_empty(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} exists and is not an empty folder; give a new --out, or empty it first.")


def write_json(folder: Path, size: int, seed: int) -> None:
    """Writes a generated catalogue as upstream's three files, row by row."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as files:
        products, attributes, human = (
            _Joined(files.enter_context((folder / name).open("w", encoding="ascii")), brackets)
            for name, brackets in zip(FILES, ("[]", "{}", "{}"), strict=True)
        )
        for generated in generate_rows(size, seed):
            key = json.dumps(generated.row["asin"]) + ": "
            products.add(json.dumps(generated.row))
            attributes.add(key + json.dumps(generated.attributes))
            if generated.human:
                human.add(key + json.dumps(generated.human))
        for part in (products, attributes, human):
            part.end()


class _Joined:
    """An array or object that is written part by part."""

    def __init__(self, file: IO[str], brackets: str) -> None:
        self._file, self._separator, self._last = file, brackets[0] + "\n", "\n" + brackets[1] + "\n"

    def add(self, text: str) -> None:
        self._file.write(self._separator + text)
        self._separator = ",\n"

    def end(self) -> None:
        self._file.write(("" if self._separator == ",\n" else self._separator) + self._last)


def _build(args: argparse.Namespace) -> None:
    began = time.perf_counter()
    build_catalog(_source(args), args.out, None if args.quiet else _progress)
    catalog = Catalog(args.out)
    report = catalog.load_report
    print(f"{args.out}: {report}")
    for note in islice(report, SHOWN_NOTES):
        print(f"  row {note.row} {note.asin}: {note.action}: {note.reason}")
    if report.skipped + report.mended > SHOWN_NOTES:
        print(f"  ... all of them in {args.out / 'report.jsonl'}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"sha256 {catalog.sha256}; {time.perf_counter() - began:.1f} s, at most {peak:,.0f} MB of memory")


def _source(args: argparse.Namespace) -> JsonSource | GeneratedSource:
    if args.generate is not None:
        return GeneratedSource(args.generate, args.seed)
    options = {"num_products": args.num_products, "accept_truncated": args.accept_truncated}
    if args.source:
        return JsonSource.of_folder(args.source, **options)
    return JsonSource(args.products, args.attributes, args.human_goals, **options)


def _progress(rows: int) -> None:
    print(f"\r{rows:,} rows", end="" if rows % 1_000_000 else "\n", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder to make; must not exist, or be empty")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--source", type=Path, help="folder with upstream's JSON files, plain or .xz or .gz")
    what.add_argument("--products", type=Path, help="items_shuffle*.json")
    what.add_argument("--generate", type=int, metavar="N", help="generate so many products")
    parser.add_argument("--attributes", type=Path, help="items_ins_v2*.json, beside --products")
    parser.add_argument("--human-goals", type=Path, help="items_human_ins.json, beside --products")
    parser.add_argument("--num-products", type=int, help="read only the first so many rows")
    parser.add_argument("--seed", type=int, default=0, help="of generated products (default 0)")
    parser.add_argument("--json", action="store_true", help="with --generate: write upstream's three JSON files")
    parser.add_argument("--accept-truncated", action="store_true", help="keep the whole rows of a file that is cut off")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""Measure a catalogue: building it, opening it, searching it, and what a process costs.

    python -m scripts.bench_catalog --sizes 1000 100000 1180000 --work catalogs --out docs/results/bench_webshop_catalog

Each size is generated into the work folder (kept, and used again), then opened in a fresh process. Queries are the
instructions of products (synthetic ones as agents copy them, human ones, their first words) and single option values.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skillc_gym.webshop.catalog import Catalog, build_catalog, open_catalog
from skillc_gym.webshop.generate import GeneratedSource
from skillc_gym.webshop.product import Product

COLUMNS = (
    "products", "build seconds", "build CPU seconds", "build peak MB", "disk MB", "open ms", "search median ms",
    "search p95 ms", "search p99 ms", "product us", "private MB after",
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--queries", type=int, default=1_000, help="of each kind")
    parser.add_argument("--work", type=Path, required=True, help="folder for the generated catalogues")
    parser.add_argument("--out", type=Path, help="where to write .json and .md")
    parser.add_argument("--step", choices=("build", "measure"), help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.step:
        step = build if args.step == "build" else measure
        print(json.dumps(step(args.work, args.sizes[0], args.queries)))
        return 0
    results = [_measured(size, args.work, args.queries) for size in args.sizes]
    report = {"machine": _machine(), "results": results}
    print(table(results))
    if args.out:
        args.out.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
        args.out.with_suffix(".md").write_text(_page(report))
    return 0


def build(work: Path, size: int, _: int) -> dict[str, Any]:
    """Builds the catalogue of one size, unless it is there."""
    began = time.perf_counter()
    build_catalog(GeneratedSource(size, 0), work / str(size))
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cpu = time.process_time()
    timing = {"build seconds": round(seconds, 1), "build CPU seconds": round(cpu, 1), "build peak MB": round(peak)}
    (work / f"{size}.json").write_text(json.dumps(timing))
    return timing


def measure(work: Path, size: int, number: int) -> dict[str, Any]:
    """Opens the catalogue and times what environments do with it."""
    before = _private_mb()
    began = time.perf_counter()
    catalog = open_catalog(work / str(size))
    opened = time.perf_counter() - began
    queries = sample_queries(catalog, number)
    by_kind = {kind: _timed(texts, catalog.search) for kind, texts in queries.items()}
    together = np.concatenate([by_kind[kind] for kind in queries])
    rng = random.Random(1)
    indices = [rng.randrange(size) for _ in range(number)]
    products = _timed(indices, catalog.product)
    return {
        "products": size,
        "disk MB": round(sum(path.stat().st_size for path in catalog.folder.iterdir()) / 1e6),
        "open ms": round(1e3 * opened, 1),
        "search median ms": _quantile(together, 50),
        "search p95 ms": _quantile(together, 95),
        "search p99 ms": _quantile(together, 99),
        "by query": {kind: {f"p{q}": _quantile(times, q) for q in (50, 95, 99)} for kind, times in by_kind.items()},
        "product us": round(1e6 * float(np.median(products)), 1),
        "private MB after": round(_private_mb() - before, 1),
    }


def sample_queries(catalog: Catalog, number: int) -> dict[str, list[str]]:
    """Draws queries of several kinds; all of them differ from each other as far as the catalogue allows."""
    rng = random.Random(0)
    wanted: list[Product] = []
    while len(wanted) < number:
        product = catalog.product(rng.randrange(len(catalog)))
        if product.instruction:
            wanted.append(product)
    human = [row["instruction"] for rows in catalog.human_instructions().values() for row in rows]
    return {
        "instruction": [instruction(product, rng) for product in wanted],
        "human instruction": rng.sample(human, min(number, len(human))),
        "attributes and kind": [
            f"{' '.join(product.instruction_attributes)} {product.query}".lower() for product in wanted
        ],
        "title": [product.title.lower() for product in wanted],
        "kind alone": [product.query for product in wanted[: number // 4]],
    }


def instruction(product: Product, rng: random.Random) -> str:
    """Writes a synthetic goal's text, which agents often search for as it stands."""
    chosen = ", and ".join(f"{name}: {rng.choice(values)}" for name, values in product.options.items() if values)
    wish = f" with {chosen}" if chosen else ""
    return f"{product.instruction}{wish}, and price lower than {rng.randrange(10, 990, 10):.2f} dollars".lower()


def table(results: Sequence[dict[str, Any]]) -> str:
    """Writes the results as a Markdown table."""
    rows = [list(COLUMNS), ["---:"] * len(COLUMNS)]
    rows += [[f"{result[name]:,}" for name in COLUMNS] for result in results]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def _measured(size: int, work: Path, queries: int) -> dict[str, Any]:
    work.mkdir(parents=True, exist_ok=True)
    if not (work / str(size) / "manifest.json").is_file():
        _child("build", size, work, queries)
    timing = json.loads((work / f"{size}.json").read_text())
    return {**timing, **_child("measure", size, work, queries)}


def _child(step: str, size: int, work: Path, queries: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "scripts.bench_catalog", "--step", step, "--sizes", str(size)]
    command += ["--work", str(work), "--queries", str(queries)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout))


def _timed(arguments: Sequence[Any], call: Callable[[Any], object]) -> np.ndarray[Any, np.dtype[np.float64]]:
    times = np.empty(len(arguments))
    for place, argument in enumerate(arguments):
        began = time.perf_counter()
        call(argument)
        times[place] = time.perf_counter() - began
    return times


def _quantile(seconds: np.ndarray[Any, np.dtype[np.float64]], percent: int) -> float:
    return round(1e3 * float(np.percentile(seconds, percent)), 3)


def _private_mb() -> float:
    """Memory that no other process shares, where the system tells."""
    try:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty")) / 1024


def _machine() -> dict[str, str]:
    return {"python": platform.python_version(), "numpy": np.__version__, "system": platform.machine()}


def _page(report: dict[str, Any]) -> str:
    kinds = list(report["results"][0]["by query"])
    rows = [["products", *kinds], ["---:"] * (len(kinds) + 1)]
    for result in report["results"]:
        times = (result["by query"][kind] for kind in kinds)
        rows.append([f"{result['products']:,}", *(f"{time['p50']:.2f} / {time['p95']:.2f}" for time in times)])
    lines = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return (
        "# The catalogue at three sizes\n\nMade by `python -m scripts.bench_catalog` on one core, products generated "
        "with seed 0; every query is new (nothing comes from the memory of earlier searches).\n\n"
        f"{table(report['results'])}\nSearch by kind of query, median / 95th percentile in ms:\n\n{lines}\n"
    )


if __name__ == "__main__":
    sys.exit(main())

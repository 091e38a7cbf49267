r"""Measure a catalogue: building it, opening it, searching it, playing in it, and what a process costs.

    python -m benchmarks.bench_webshop_catalog --sizes 1000 100000 1180000 --work catalogs \
        --out benchmarks/records/bench_webshop_catalog.json

Each size is generated into the work folder (kept, and used again), then opened in fresh processes. Queries are the
instructions of products (synthetic ones as agents copy them, human ones), what the rule-based shopper makes of them,
titles, attributes and kinds. Memory is what a process shares with no other.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bench_webshop import anonymous_megabytes, environment_kilobytes, peak_megabytes, resets, walk
from benchmarks.measuring import measurement, options_parser
from skillc_gym.envs.webshop import WebShopEnv
from skillc_gym.envs.webshop.catalog import Catalog, GeneratedSource, Product, build_catalog, open_catalog
from skillc_gym.envs.webshop.experts import parse_instruction

STEPS, ENVIRONMENTS = 20_000, 2_000


def build(work: Path, size: int, _: int) -> dict[str, Any]:
    """Builds the catalogue of one size, unless it is there."""
    began = time.perf_counter()
    build_catalog(GeneratedSource(size, 0), work / str(size))
    seconds = time.perf_counter() - began
    peak = peak_megabytes()
    cpu = time.process_time()
    timing = {"build seconds": round(seconds, 1), "build CPU seconds": round(cpu, 1), "build peak MB": round(peak)}
    (work / f"{size}.json").write_text(json.dumps(timing))
    return timing


def measure(work: Path, size: int, number: int) -> dict[str, Any]:
    """Opens the catalogue and times searches."""
    began = time.perf_counter()
    catalog = open_catalog(work / str(size))
    opened = time.perf_counter() - began
    queries = sample_queries(catalog, number)
    by_kind = {kind: _timed(texts, catalog.search) for kind, texts in queries.items()}
    together = np.concatenate([by_kind[kind] for kind in queries])
    return {
        "products": size,
        "disk MB": round(sum(path.stat().st_size for path in catalog.folder.rglob("*")) / 1e6),
        "catalogue open ms": round(1e3 * opened, 1),
        "search median ms": _quantile(together[:, 0], 50),
        "search median CPU ms": _quantile(together[:, 1], 50),
        "search p95 CPU ms": _quantile(together[:, 1], 95),
        "by query": {
            kind: {"median ms": _quantile(times[:, 0], 50), "median CPU ms": _quantile(times[:, 1], 50)}
            for kind, times in by_kind.items()
        },
    }


def play(work: Path, size: int, _: int) -> dict[str, Any]:
    """Opens the environment and plays in it."""
    began = time.perf_counter()
    env = WebShopEnv(data=work / str(size))
    opened = time.perf_counter() - began
    began = time.perf_counter()
    env.reset(seed=0)
    first = round(1e3 * (time.perf_counter() - began), 1)
    walk(env, STEPS)
    found: dict[str, Any] = {
        "open ms": round(1e3 * opened, 1),
        "first reset ms": first,
        "goals": len(env.goals),
        "steps/s": round(walk(env, STEPS, seed=1)),
        "steps/s, all searches new": round(walk(env, STEPS, seed=2, query="new")),
        "reset us": round(resets(env, 10_000), 1),
        "MB per process": round(anonymous_megabytes(), 1),
    }
    return {**found, "KB per environment": round(environment_kilobytes(env, ENVIRONMENTS), 2)}


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
        "shopper": [" ".join(parse_instruction(instruction(product, rng)).words) for product in wanted],
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


STEPS_OF = {"build": build, "measure": measure, "play": play}


def _measured(size: int, work: Path, queries: int) -> dict[str, Any]:
    work.mkdir(parents=True, exist_ok=True)
    if not (work / str(size) / "manifest.json").is_file():
        _child("build", size, work, queries)
    timing = json.loads((work / f"{size}.json").read_text())
    return {**timing, **_child("measure", size, work, queries), **_child("play", size, work, queries)}


def _child(step: str, size: int, work: Path, queries: int) -> dict[str, Any]:
    """Runs a step in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.bench_webshop_catalog", "--step", step, "--sizes", str(size)]
    command += ["--work", str(work), "--queries", str(queries)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout))


def _timed(texts: Sequence[str], call: Callable[[str], object]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Returns the seconds of each call: by the clock, and of the processor."""
    times = np.empty((len(texts), 2))
    for place, text in enumerate(texts):
        began, worked = time.perf_counter(), time.thread_time()
        call(text)
        times[place] = time.perf_counter() - began, time.thread_time() - worked
    return times


def _quantile(seconds: np.ndarray[Any, np.dtype[np.float64]], percent: int) -> float:
    return round(1e3 * float(np.percentile(seconds, percent)), 3)


def _machine() -> dict[str, str]:
    return {"python": platform.python_version(), "numpy": np.__version__, "system": platform.machine()}


def main(words: Sequence[str] | None = None) -> int:
    """Measures; what it starts in processes of their own prints one step's figures."""
    parser = options_parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--queries", type=int, default=1_000, help="of each kind")
    parser.add_argument("--work", type=Path, required=True, help="folder for the generated catalogues")
    parser.add_argument("--step", choices=STEPS_OF, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.step:
        print(json.dumps(STEPS_OF[options.step](options.work, options.sizes[0], options.queries)))
        return 0
    return measurement(parser, _measure, words)


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    results = [_measured(size, options.work, options.queries) for size in options.sizes]
    return {"machine": _machine(), "results": results}


if __name__ == "__main__":
    sys.exit(main())

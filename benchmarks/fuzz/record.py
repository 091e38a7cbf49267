"""Runs the fuzzer in a process of its own, since it never returns, and records what it reports at its end."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from benchmarks.fuzz.target import load
from skillc_gym.version import __version__
from trainers.tracking import provenance

__all__ = ["markdown", "read_report", "recorded"]

NAME = "fuzz"
_STATISTICS = {
    "runs": "number_of_executed_units",
    "runs_per_second": "average_exec_per_sec",
    "slowest_run_seconds": "slowest_unit_time_sec",
    "peak_megabytes": "peak_rss_mb",
}
_STATISTIC = r"stat::{}:\s*(\d+)"
_COVERAGE = re.compile(r"cov: (\d+) ft: (\d+) corp: (\d+)")
_FINDING = re.compile(r"(?:ERROR: libFuzzer: |=== Uncaught Python exception: ===\n)(.{1,200})")


def recorded(target: str, *, seconds: int, memory: int, seed: int, out: Path) -> int:
    """Fuzzes and writes ``fuzz.json`` and ``.md``; other targets' entries stay.

    Args:
        target: Its name.
        seconds: How long.
        memory: Limit in MiB.
        seed: Seed of the fuzzer.
        out: Folder of the record.

    Returns:
        The fuzzer's exit status, 0 if nothing was found.
    """
    options = ["--seconds", str(seconds), "--memory", str(memory), "--seed", str(seed)]
    command = [sys.executable, "-m", "benchmarks.fuzz", target, *options]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False
    )
    sys.stderr.write(done.stdout[-4000:])
    entry = {"seconds": seconds, "memory_limit_megabytes": memory, "seed": seed, **read_report(done.stdout)}
    path = out / f"{NAME}.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known[target] = {**entry, "versions": _versions(), "git": provenance()["git"]}
    out.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(markdown(known), encoding="utf-8")
    return done.returncode


def read_report(text: str) -> dict[str, Any]:
    """Reads what libFuzzer says at its end: counts, coverage and what it stumbled over."""
    found = {name: re.search(_STATISTIC.format(key), text) for name, key in _STATISTICS.items()}
    report: dict[str, Any] = {name: int(match[1]) if match else None for name, match in found.items()}
    reached = _COVERAGE.findall(text)
    report["branches_reached"] = int(reached[-1][0]) if reached else None
    report["inputs_kept"] = int(reached[-1][2]) if reached else None
    report["findings"] = sorted({finding.strip() for finding in _FINDING.findall(text)})
    return report


def markdown(entries: dict[str, Any]) -> str:
    """Writes the record as a table."""
    rows = [
        "| target | seconds | runs | runs/s | slowest run, s | peak memory, MB | branches reached | findings |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for target, entry in sorted(entries.items()):
        found = "; ".join(entry["findings"]) or "none"
        keys = ("seconds", "runs", "runs_per_second", "slowest_run_seconds", "peak_megabytes", "branches_reached")
        rows.append(f"| {target} | {' | '.join(_number(entry[key]) for key in keys)} | {found} |")
    commands = "\n".join(
        f"python -m benchmarks.fuzz {target} --seconds {entry['seconds']} --out docs/results"
        for target, entry in sorted(entries.items())
    )
    versions = ", ".join(f"{name} {version}" for name, version in next(iter(entries.values()))["versions"].items())
    return f"""# Fuzzing

{chr(10).join(_about(entries))}

A second of processor time for one input, or memory beyond the limit, counts as a finding.

{chr(10).join(rows)}

```
{commands}
```

{versions}
"""


def _about(entries: dict[str, Any]) -> list[str]:
    return [textwrap.fill(f"- `{name}`: {load(name).about}", 120, subsequent_indent="  ") for name in sorted(entries)]


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _versions() -> dict[str, str]:
    return {
        "skillc-gym": __version__,
        "python": platform.python_version(),
        "atheris": importlib.metadata.version("atheris"),
    }

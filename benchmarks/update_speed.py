r"""Seconds of an update beside those of an earlier revision, whose tree is given: the same training run, in turns.

    git worktree add --detach ../earlier 50047bb
    python -m benchmarks.update_speed --peer ../earlier --peer-command scripts/train.py --own micro_batches=16 \
        share_prefixes=true engine.draft_tokens=3 --out docs/results/update_speed

Both sides run the training command of the README from the same policy, one process and one thread each, and play the
same episodes as long as their weights agree. Validations and the first update of every turn are left out.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.page_record import measure_and_write
from benchmarks.revision import require_clean
from skillc_gym.errors import ConfigError
from trainers.tracking import iter_records

__all__ = ["compare", "main", "page", "turn"]

SETTINGS = (
    "chat=compact",
    "data=generated",
    "max_episode_steps=20",
    "max_reply_tokens=24",
    "learning_rate=3e-4",
    "kl_coef=0",
    "validate_every=1000000",
    "panel_per_type=2",
)
ROOT = Path(__file__).parents[1]
OWN = "-m skillc_lab train"

Update = dict[str, float]


def turn(tree: Path, command: str, settings: Sequence[str]) -> list[Update]:
    """Trains once, in a process of its own.

    Args:
        tree: Root of a checkout.
        command: What the interpreter runs, before the settings.
        settings: ``name=value`` each.

    Returns:
        Generated tokens, seconds of playing and of learning, and the loss of each update but the first.

    Raises:
        ConfigError: The run failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        ended = subprocess.run(
            [sys.executable, *command.split(), *settings, f"run={run}"],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode:
            raise ConfigError(f"Training in {tree} ended with {ended.returncode}: {ended.stderr[-2000:]}")
        records = [record for _, record in iter_records(run / "metrics.jsonl") if record]
    return [_update(record) for record in records if record["event"] == "train"][1:]


def _update(record: dict[str, Any]) -> Update:
    return {
        "tokens": float(record["tokens_generated"]),
        "playing": float(record["seconds_generate"]),
        "learning": float(record.get("seconds_prepare", 0.0)) + float(record["seconds_update"]),
        "loss": float(record["loss"]),
    }


def compare(own: Sequence[Update], peer: Sequence[Update]) -> dict[str, Any]:
    """Medians of both sides, and of the ratios update by update."""
    return {
        "own": _medians(own),
        "peer": _medians(peer),
        "same_tokens": sum(a["tokens"] == b["tokens"] for a, b in zip(own, peer, strict=True)),
        "updates": len(own),
        "ratios": {
            part: [round(_cost(b, part) / _cost(a, part), 3) for a, b in zip(own, peer, strict=True)]
            for part in ("playing", "learning", "both")
        },
        "every_update": {"own": list(own), "peer": list(peer)},
    }


def _cost(update: Update, part: str) -> float:
    """Seconds per thousand generated tokens."""
    seconds = update["playing"] + update["learning"] if part == "both" else update[part]
    return 1000 * seconds / update["tokens"]


def _medians(updates: Sequence[Update]) -> Update:
    return {
        "tokens": median(each["tokens"] for each in updates),
        **{part: median(_cost(each, part) for each in updates) for part in ("playing", "learning", "both")},
    }


def page(record: dict[str, Any]) -> str:
    """The record in Markdown."""
    lines = ["| | playing | learning | both |", "|---|---|---|---|"]
    for side in ("own", "peer"):
        figures = " | ".join(f"{record[side][part]:.3f}" for part in ("playing", "learning", "both"))
        lines.append(f"| {record['names'][side]} | {figures} |")
    ratios = record["ratios"]
    spans = (f"{median(ratios[p]):.2f} [{min(ratios[p]):.2f}, {max(ratios[p]):.2f}]" for p in ratios)
    lines.append(f"| ratio, median [least, most] | {' | '.join(spans)} |")
    table = "\n".join(lines)
    return (
        "# An update beside an earlier revision's\n\n"
        f"`python -m benchmarks.update_speed`, preset `{record['preset']}`: seconds per thousand generated tokens, "
        f"medians of {record['updates']} updates of {record['own']['tokens']:,.0f} tokens, in turns, one process and "
        f"one thread each. In {record['same_tokens']} updates both sides generated equally many tokens.\n\n{table}\n"
    )


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    require_clean(allow_changes=options.allow_changes)
    own, peer = list[Update](), list[Update]()
    for seed in range(options.rounds):
        common = [f"method={options.preset}", f"model={options.model.resolve()}", *SETTINGS]
        common += [f"steps={options.updates + 1}", f"seed={seed}"]
        own += turn(ROOT, OWN, [*common, *options.own])
        peer += turn(options.peer.resolve(), options.peer_command, common)
    names = {"own": f"this revision, {' '.join(options.own)}", "peer": f"revision {_revision(options.peer)}"}
    return {"preset": options.preset, "names": names, **compare(own, peer)}


def _revision(tree: Path) -> str:
    asked = ["git", "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(asked, cwd=tree, capture_output=True, text=True, check=True).stdout.strip()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the measurement; returns 2 where it was refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=Path, default=ROOT, help="checkout of the other revision (default: this one)")
    parser.add_argument("--peer-command", default=OWN, help="what trains there (default: as here)")
    parser.add_argument("--own", nargs="*", default=[], help="settings of this side alone, name=value")
    parser.add_argument("--preset", default="skillc", help="the method, known to both")
    parser.add_argument(
        "--model", type=Path, default=ROOT / "trainers/warmstart/checkpoint", help="the policy's folder"
    )
    parser.add_argument("--rounds", type=int, default=2, help="turns of each side, one seed each")
    parser.add_argument("--updates", type=int, default=3, help="updates of a turn")
    parser.add_argument("--out", type=Path, help="record, without suffix")
    parser.add_argument("--allow-changes", action="store_true", help="measure a changed working tree")
    return 0 if measure_and_write(parser.parse_args(argv), _measure, page) is not None else 2


if __name__ == "__main__":
    sys.exit(main())

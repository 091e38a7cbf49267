"""verl-agent's vector of ALFWorld beside ours: answers of 20 games, costs, and each fork's own training script on ours.

    python -m benchmarks.verl_agent --checkouts FORK ... --their-python PYTHON --out benchmarks/records/verl_agent

Answers and costs are of the first checkout; ``--part`` measures one half and keeps the other of the record. Then the
training script of each runs over our environments, and that of the first once more with the documentation's lines for
paired advantages, all with a model that has no weights, up to its first update: `benchmarks.parity`.

``PYTHON`` has what theirs needs: ray, textworld[pddl], alfworld, torch, transformers, omegaconf, hydra-core,
tensordict, torchdata, codetiming, msgspec, pandas, pyarrow, and what this package needs. Modules that a fork imports
and none of this uses are stood in for.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from benchmarks.measuring import measurement, options_parser, versions_of
from skillc_gym.errors import ConfigError
from skillc_lab.tables import read_json

_PARITY = Path(__file__).parent / "parity"
_STEPS = 55
"""A few more than an episode has, so that finished members are asked again."""
_STAND_INS = {
    "torchvision/__init__.py": "",
    "torchvision/transforms.py": "",
    "sentence_transformers.py": "SentenceTransformer = None\n",
    "faiss.py": "",
}
_IN_TRAINING = ("sentence_transformers.py", "faiss.py")
_SCRIPT = "examples/gigpo_trainer/run_alfworld.sh"


def main(words: Sequence[str] | None = None) -> int:
    """Runs the comparison; 1 if any answer differed."""
    parser = options_parser(__doc__)
    parser.add_argument("--checkouts", type=Path, nargs="+", required=True, help="checkouts of verl-agent or of forks")
    parser.add_argument("--their-python", type=Path, required=True, help="the Python that runs it")
    parser.add_argument("--data", type=Path, default=os.environ.get("ALFWORLD_DATA"), help="archive of games")
    parser.add_argument("--games", type=int, default=20, help="games to compare, and members of their vector")
    parser.add_argument("--groups", type=int, default=128, help="groups of 8 members of our vector, for its costs")
    parser.add_argument(
        "--part", choices=("vectors", "training"), help="measure this alone; the record keeps the other"
    )
    return measurement(
        parser, _measure, words, failed=lambda record: record.get("parity", {}).get("differences", 0) > 0
    )


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    place = options.out and options.out.with_suffix(".json")
    record = read_json(place) if options.part and place and place.exists() else {}
    with tempfile.TemporaryDirectory() as work:
        games = _games(options.data, Path(work))
        if options.part != "training":
            record |= _vectors(options, games, Path(work))
        if options.part != "vectors":
            runs = [(one, False) for one in options.checkouts] + [(options.checkouts[0], True)]
            record["training"] = [_trained(one, options.their_python, games, paired) for one, paired in runs]
    versions = {"versions": versions_of("numpy", "gymnasium"), "their_versions": _versions(options.their_python)}
    return {**record, "processors": os.cpu_count(), **versions}


def _vectors(options: argparse.Namespace, games: Path, work: Path) -> dict[str, Any]:
    """Plays both vectors, and ours once more at the size of a training run."""
    first, root = options.checkouts[0], _PARITY.parents[1]
    theirs, ours, many = (work / f"{name}.jsonl" for name in ("theirs", "ours", "many"))
    _play(options.their_python, (_stand_ins(work), first), "theirs", first, games, options.games, 1, _STEPS, theirs)
    _play(Path(sys.executable), (root,), "ours", first, games, options.games, 1, _STEPS, ours)
    _play(Path(sys.executable), (root,), "ours", first, games, options.groups, 8, _STEPS, many)
    return {
        "checkout": first.resolve().name,
        "parity": _compared(theirs, ours, options.games),
        "speed": {
            "theirs": {"members": options.games, **_costs(theirs)},
            "ours_as_many": {"members": options.games, **_costs(ours)},
            "ours": {"members": options.groups * 8, **_costs(many)},
        },
    }


def _games(data: Path | None, work: Path) -> Path:
    """Unpacks the games, and writes beside each the type of its task, which their listing reads."""
    if data is None or not Path(data).is_file():
        raise ConfigError(f"--data (or ALFWORLD_DATA) is an archive of games, got {data}")
    with tarfile.open(data) as archive:
        archive.extractall(work / "games", filter="data")
    for game in (work / "games").rglob("game.tw-pddl"):
        told = game.with_name("traj_data.json")
        if not told.exists():
            told.write_text(json.dumps({"task_type": game.parts[-3].partition("-")[0]}), encoding="utf-8")
    return work / "games"


def _stand_ins(work: Path, names: Sequence[str] = tuple(_STAND_INS)) -> Path:
    for name in names:
        text = _STAND_INS[name]
        path = work / "stand_ins" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return work / "stand_ins"


def _play(python: Path, places: Sequence[Path], side: str, *words: object) -> None:
    # -P: the script's folder has a module named alfworld.
    words = (python, "-P", _PARITY / "verl_agent.py", side, *words)
    named = {"PYTHONPATH": os.pathsep.join(map(str, places)), "PYTHONSAFEPATH": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        list(map(str, words)), env={**os.environ, **named}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ConfigError(f"{side} ended with {done.returncode}: {done.stderr[-2000:]}")


def _trained(checkout: Path, python: Path, games: Path, paired: bool) -> dict[str, Any]:
    """Runs the checkout's script for GiGPO in ALFWorld, with two import lines changed, up to the first update."""
    with tempfile.TemporaryDirectory() as work:
        own, record, shim = Path(work) / "checkout", Path(work) / "record.json", Path(work) / "bin/python3"
        shutil.copytree(checkout, own, ignore=shutil.ignore_patterns(".git"))
        patch = [sys.executable, "-m", "skillc_gym.adapters.verl_agent", "patch", str(own), "--write"]
        subprocess.run(patch, cwd=_PARITY.parents[1], check=True, stdout=subprocess.DEVNULL)
        stand_ins = _stand_ins(Path(work), _IN_TRAINING)
        shim.parent.mkdir()
        shim.write_text(f'#!/bin/sh\nexec {python.absolute()} -P {_PARITY / "verl_agent_training.py"} "$@"\n')
        shim.chmod(0o755)
        named = {
            **dict.fromkeys(("HOME", "MODELS_ROOT"), work),  # the second is what OPID's scripts ask for
            "PATH": f"{shim.parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(map(str, (stand_ins, own, _PARITY.parents[1]))),
            "ALFWORLD_DATA": str(games),
            "RECORD": str(record),
            "PAIRED": str(_paired(Path(work))) if paired else "",
            "OMP_NUM_THREADS": "1",
        }
        done = subprocess.run(
            ["bash", _SCRIPT], cwd=own, env={**os.environ, **named}, capture_output=True, text=True, check=False
        )
        if not record.exists():
            raise ConfigError(f"{_SCRIPT} of {checkout} ended with {done.returncode}: {done.stderr[-2000:]}")
        return {"checkout": checkout.resolve().name, "paired": paired, **read_json(record)}


def _paired(work: Path) -> Path:
    """The page's lines for paired advantages, as a file."""
    page = (_PARITY.parents[1] / "docs/adapters/verl-agent.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"^```py\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (work / "paired.py").write_text(lines, encoding="utf-8")
    return work / "paired.py"


def _compared(theirs: Path, ours: Path, games: int) -> dict[str, Any]:
    rows = [[json.loads(line) for line in path.open(encoding="utf-8")] for path in (theirs, ours)]
    pairs = list(zip_longest(*rows))
    wrong = [pair for pair in pairs if pair[0] != pair[1]]
    return {
        "games": len({row["info"]["extra.gamefile"] for row in rows[0]} - {None}),
        "members": games,
        "answers": len(pairs),
        "won": sum(row["info"]["won"] for row in rows[0]),
        "differences": len(wrong),
        "first": wrong[0] if wrong else None,
    }


def _costs(out: Path) -> dict[str, float]:
    costs: dict[str, float] = json.loads(out.with_suffix(".costs.json").read_text(encoding="utf-8"))
    return {name: round(value, 2) for name, value in costs.items()}


def _versions(python: Path) -> dict[str, str]:
    names = ("ray", "textworld", "alfworld")
    ask = f"import importlib.metadata as m, json; print(json.dumps({{n: m.version(n) for n in {names}}}))"
    told = subprocess.run([str(python), "-c", ask], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(told.stdout)
    return found


if __name__ == "__main__":
    sys.exit(main())

"""Records of evaluations that ``skillc evaluate --out`` and others left in folders: the outcome of every task.

python -m benchmarks.evaluations agents runs/agents/* --out benchmarks/records/agents.json
python -m benchmarks.evaluations policies runs/real-valid_unseen ... --out benchmarks/records/real_start.json
python -m benchmarks.evaluations course runs/night/grpo-seed0 --out benchmarks/records/smollm2_grpo.json

``agents``: of agents without training, with their tries; ``policies``: of policies, with their weights; ``course``: of
a folder that ``scripts/smollm2/night.sh`` writes, the warm start, the run, and success before and after. What a record
holds is of one clean revision.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measuring import measurement, options_parser
from skillc_gym.errors import MissingDataError
from skillc_lab.report import RunRecords
from skillc_lab.tables import read_json
from trainers.config import TrainConfig
from trainers.evaluation import Change, PairedReport, compare_reports
from trainers.tracking import one_revision
from trainers.warmstart import CARD, sha256_of_file

_SETTINGS = ("env", "split", "max_episode_steps", "max_reply_tokens", "max_context", "eval_temperature", "seed")
_OF_AN_UPDATE = (
    *("step", "success_with", "success_without", "tokens_generated", "prompt_tokens"),
    *("loss", "grad_norm", "n_plus"),
)


def agents(options: argparse.Namespace) -> dict[str, Any]:
    """Evaluations of agents, with what they did over their tries."""

    def described(folder: Path) -> dict[str, Any]:
        agent, trials = (_read_if_there(folder / f"{name}.json") for name in ("agent", "trials"))
        kept = None if agent is None else {name: agent[name] for name in ("options", "figures")}
        return {"env": _read(folder, "config")["env"], "trials": trials, "agent": kept}

    return _gathered(options, described)


def policies(options: argparse.Namespace) -> dict[str, Any]:
    """Evaluations of policies, with their settings and weights."""

    def described(folder: Path) -> dict[str, Any]:
        config = _read(folder, "config")
        weights = Path(TrainConfig(model=config["model"], env=config["env"]).model_path) / "model.safetensors"
        return {
            "policy": Path(config["model"]).name,
            "settings": {name: config[name] for name in _SETTINGS},
            "weights_sha256": sha256_of_file(weights) if weights.is_file() else None,
        }

    return _gathered(options, described)


def _gathered(options: argparse.Namespace, describe: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    found = [
        {**describe(folder), **{name: _read(folder, name) for name in ("versions", "report")}}
        for folder in options.folders
    ]
    for each in found:
        PairedReport.from_json(each["report"])
    revisions = (each["versions"].get("git") for each in found)
    return {"revision": one_revision(revisions, allow_changes=options.allow_changes), "evaluations": found}


def _read(folder: Path, name: str) -> dict[str, Any]:
    path = folder / f"{name}.json"
    if not path.is_file():
        raise MissingDataError(
            f"{folder} has no {path.name} of an evaluation; make one by skillc evaluate --out {folder}"
        )
    return read_json(path)


def _read_if_there(path: Path) -> dict[str, Any] | None:
    return read_json(path) if path.is_file() else None


def course(options: argparse.Namespace) -> dict[str, Any]:
    """A warm start, a training run, and the evaluations before and after it."""
    (folder,) = options.folders
    before, after = (PairedReport.from_json(_read(folder / when, "report")) for when in ("before", "after"))
    run, card = RunRecords.read(folder / "run"), read_json(folder / "start" / CARD)
    versions = [_read(folder / part, "versions") for part in ("run", "before", "after")]
    git = one_revision([each["git"] for each in versions], allow_changes=options.allow_changes)
    told = ("parameters", "loss_held_out", "demonstrator_success", "recipe", "versions")
    return {
        # A start may be older than the run, as one that comes along is: its hash says which it was.
        "start": {name: card[name] for name in told} | {"sha256": sha256_of_file(folder / "start/model.safetensors")},
        "evaluations": {"before": before.to_json(), "after": after.to_json()},
        "change": {
            arm: _points(compare_reports(before, after, skill=arm == "with")["overall"]) for arm in ("without", "with")
        },
        "config": {name: value for name, value in run.config.items() if name not in ("model", "run")},
        "validations": list(run.validations),
        "updates": [_update(each) for each in run.train],
        "versions": versions[0] | {"git": git},
    }


def _points(change: Change) -> dict[str, Any]:
    return {"points": 100 * change.change, "interval": [100 * end for end in change.interval.to_json()]}


def _update(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name in _OF_AN_UPDATE or name.startswith("seconds_")}


KINDS: Mapping[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "agents": agents,
    "course": course,
    "policies": policies,
}


def main(words: Sequence[str] | None = None) -> int:
    """Gathers a record; 2 where a folder holds no evaluation, or they are of several revisions."""
    parser = options_parser(__doc__)
    parser.add_argument("kind", choices=KINDS, help="what was evaluated")
    parser.add_argument("folders", type=Path, nargs="+", help="what skillc evaluate --out wrote")
    return measurement(parser, lambda options: KINDS[options.kind](options), words)


if __name__ == "__main__":
    sys.exit(main())

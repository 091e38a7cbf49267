"""Records of evaluations that ``skillc evaluate --out`` and others left in folders: the outcome of every task.

python -m benchmarks.evaluations agents runs/agents/* --out benchmarks/records/agents.json
python -m benchmarks.evaluations policies runs/real-valid_unseen ... --out benchmarks/records/real_start.json
python -m benchmarks.evaluations courses runs/night/*-seed* --out benchmarks/records/smollm2_night.json

``agents``: of agents without training, with their tries; ``policies``: of policies, with their weights; ``courses``: of
the folders that ``scripts/smollm2/night.sh`` writes from one start, the runs, success before and after them, and what
each method changed over its seeds. What a record holds is of one clean revision.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.measuring import estimated, measurement, options_parser
from skillc_gym.errors import MissingDataError
from skillc_lab.report import RunRecords
from skillc_lab.tables import read_json
from trainers.config import TrainConfig
from trainers.evaluation import PairedReport, compare_reports, require_evaluation_of
from trainers.stats import mean_difference, mean_over_seeds_and_tasks
from trainers.tracking import one_revision, sha256_of_file
from trainers.warmstart import CARD

_SETTINGS = ("env", "split", "max_episode_steps", "max_reply_tokens", "max_context", "eval_temperature", "seed")
_OF_AN_UPDATE = (
    *("step", "success_with", "success_without", "tokens_generated", "prompt_tokens"),
    *("loss", "grad_norm", "n_plus"),
)


def agents(options: argparse.Namespace) -> dict[str, Any]:
    """Evaluations of agents, with what they did over their tries."""

    def described(folder: Path) -> dict[str, Any]:
        paths = (folder / "agent.json", folder / "trials.json")
        agent, trials = (read_json(path) if path.is_file() else None for path in paths)
        kept = None if agent is None else {name: agent[name] for name in ("options", "figures")}
        return {"env": _read(folder, "config")["env"], "trials": trials, "agent": kept}

    return _gathered(options, described)


def policies(options: argparse.Namespace) -> dict[str, Any]:
    """Evaluations of policies, with their settings and weights."""

    def described(folder: Path) -> dict[str, Any]:
        config = _read(folder, "config")
        policy = Path(TrainConfig(model=config["model"], env=config["env"]).model_path)
        require_evaluation_of(policy, folder)
        weights = policy / "model.safetensors"
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


def courses(options: argparse.Namespace) -> dict[str, Any]:
    """Runs from one warm start, and the evaluations before and after them."""
    first, *_ = options.folders
    before = PairedReport.from_json(_read(first / "before", "report"))
    card, weights = read_json(first / "start" / CARD), first / "start/model.safetensors"
    parts = [folder / part for folder in options.folders for part in ("run", "before", "after")]
    parts += [folder / "run" for folder in options.unevaluated]
    versions = [_read(part, "versions") for part in parts]
    git = one_revision([each["git"] for each in versions], allow_changes=options.allow_changes)
    told = ("parameters", "loss_held_out", "demonstrator_success", "recipe", "versions")
    by_method: dict[str, list[_Course]] = {}
    for course in map(_Course.read, options.folders):
        by_method.setdefault(course.name, []).append(course)
    baseline = next(iter(by_method.values()))
    sha256 = sha256_of_file(weights) if weights.is_file() else card["weights_sha256"]
    return {
        # A start may be older than the runs, as one that comes along is: its hash says which it was. Where weights are
        # too large to be brought along, the card that was written with them says it.
        "start": {name: card[name] for name in told} | {"sha256": sha256},
        "before": before.to_json(),
        "methods": {method: _over_seeds(before, runs, baseline) for method, runs in by_method.items()},
        "unevaluated": {folder.name: _trained(RunRecords.read(folder / "run")) for folder in options.unevaluated},
        "versions": versions[0] | {"git": git},
    }


@dataclass(frozen=True)
class _Course:
    """A run from the start, and what its policy does; ``METHOD@RATE-seedN`` is told by its rate, too."""

    name: str
    run: RunRecords
    after: PairedReport

    @classmethod
    def read(cls, folder: Path) -> _Course:
        run, after = RunRecords.read(folder / "run"), PairedReport.from_json(_read(folder / "after", "report"))
        _, at, rate = folder.name.partition("-seed")[0].partition("@")
        return cls(f"{run.config['method']}{at}{rate}", run, after)

    def to_json(self) -> dict[str, Any]:
        return _trained(self.run) | {"after": self.after.to_json()}


def _trained(run: RunRecords) -> dict[str, Any]:
    """What a run was told and did, but for the evaluation after it."""
    updates = [_update(each) for each in run.train]
    return {
        "seed": run.config["seed"],
        "config": {name: value for name, value in run.config.items() if name not in ("model", "run")},
        "validations": list(run.validations),
        "updates": updates,
        "without_gradient": fmean(each["grad_norm"] == 0 for each in updates),
    }


def _over_seeds(before: PairedReport, runs: Sequence[_Course], baseline: Sequence[_Course]) -> dict[str, Any]:
    """A method's runs, and over its seeds and the tasks together: success, its change, and what it has over the first.

    Seeds are paired with those of the first method that are the same.
    """
    others = {each.run.config["seed"]: each for each in baseline}
    found: dict[str, Any] = {"end": {}, "change": {}, "against_first": {}}
    for arm, skill in (("without", False), ("with", True)):
        start = _won(before, before, skill=skill)
        rows = {each.run.config["seed"]: _won(before, each.after, skill=skill) for each in runs}
        pairs = [(row, _won(before, others[seed].after, skill=skill)) for seed, row in rows.items() if seed in others]
        found["end"][arm] = estimated(mean_over_seeds_and_tasks(list(rows.values())))
        found["change"][arm] = mean_difference([(row, start) for row in rows.values()]).to_json()
        found["against_first"][arm] = mean_difference(pairs).to_json() if pairs else None
    return found | {"runs": [each.to_json() for each in runs]}


def _won(panel: PairedReport, report: PairedReport, *, skill: bool) -> list[float]:
    """Success by task, in the panel's order."""
    compare_reports(panel, report, skill=skill)  # refuses another panel
    return [float(outcome.arm(skill).won) for outcome in report.outcomes]


def _update(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name in _OF_AN_UPDATE or name.startswith("seconds_")}


KINDS: Mapping[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "agents": agents,
    "courses": courses,
    "policies": policies,
}


def main(words: Sequence[str] | None = None) -> int:
    """Gathers a record; 2 where a folder holds no evaluation, or they are of several revisions."""
    parser = options_parser(__doc__)
    parser.add_argument("kind", choices=KINDS, help="what was evaluated")
    parser.add_argument("folders", type=Path, nargs="+", help="what skillc evaluate --out wrote")
    parser.add_argument(
        "--unevaluated", type=Path, nargs="*", default=[], help="courses whose evaluation after training is missing"
    )
    return measurement(parser, lambda options: KINDS[options.kind](options), words)


if __name__ == "__main__":
    sys.exit(main())

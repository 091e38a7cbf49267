"""Whether memories prefer a useful skill to useless ones: planted entries, their utilities and uses over time.

    python -m benchmarks.planted_entries --out benchmarks/records/planted_entries.json
    python -m benchmarks.planted_entries --only-planted --out benchmarks/records/planted_entries_only.json

Every method starts from a bank that holds, for one task type, the library's own skill and texts that do not help:
skills of other types, and advice without content. All have one retrieval key, so likeness cannot tell them apart, and
the useful one stands last, where ties do not favour it. The learning rate is 0: what changes is the memory alone.
Methods may write entries of their own meanwhile, as they do in training; with ``--only-planted`` they write none, and
what would keep planted entries out because they are equally alike is switched off, so that credit alone decides.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measuring import measurement, options_parser
from skill_library import load_library
from skillc_gym.envs.registry import env_spec, short_type
from trainers.config import TrainConfig
from trainers.memory import SkillBank
from trainers.training import run
from trainers.warmstart import small_policy_settings
from trainers.writers import Draft

__all__ = ["main", "measure_planted", "planted_bank"]

METHODS = ("d2skill", "retroagent", "skill1", "evolver", "skillrl")
ONLY_PLANTED: Mapping[str, Mapping[str, Any]] = {"retroagent": {"least_likeness": 0.0}, "skill1": {"candidates": None}}
"""Per method, what lets every planted entry come into question: no least likeness, no short list by likeness."""
EMPTY = "work carefully and do what the task says"
"""Advice without content."""


def planted_bank(env: str, task_type: str, useless: int) -> tuple[SkillBank, str]:
    """A bank for one task type.

    Args:
        env: The environment, whose library has a skill for each type.
        task_type: The type that the entries are for.
        useless: How many entries do not help.

    Returns:
        The bank, and the name of the useful entry.
    """
    library = load_library(str(env_spec(env).library))
    texts = {skill.task_types[0]: skill.text for skill in library.skills if not skill.is_general and skill.task_types}
    others = [texts[kind] for kind in sorted(texts) if kind != task_type]
    bank, key = SkillBank(), short_type(task_type)
    for text in [EMPTY, *others][:useless]:
        bank.add(Draft(text, key, task_type, writer="planted"), 0)
    return bank, bank.add(Draft(texts[task_type], key, task_type, writer="planted"), 0).name


def measure_planted(
    config: TrainConfig, methods: Sequence[str], seeds: Sequence[int], useless: int, *, only_planted: bool = False
) -> dict[str, Any]:
    """Trains every method over every seed from the planted bank.

    Args:
        config: Settings of the runs, with one task type.
        methods: Presets with a bank.
        seeds: Training seeds.
        useless: Entries that do not help.
        only_planted: Whether nothing is written and likeness keeps no entry out.

    Returns:
        Per run and update the utility and the uses so far of every planted entry that the method logs.
    """
    (task_type,) = config.task_types or ("",)
    bank, useful = planted_bank(config.env, task_type, useless)
    names = [entry.name for entry in bank]
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        bank.save(Path(folder) / "planted.jsonl")
        for seed in seeds:
            for method in methods:
                own = {"writer": "none", **ONLY_PLANTED.get(method, {})} if only_planted else {}
                options = {**config.method_options, "bank": str(Path(folder) / "planted.jsonl"), **own}
                place = str(Path(folder) / f"{method}-{seed}")
                metrics = run(config.with_(method=method, method_options=options, seed=seed, run=place)).metrics
                runs.append({"method": method, "seed": seed, "updates": _logged(metrics, names)})
    about = {"env": config.env, "task_type": task_type, "only_planted": only_planted}
    return {**about, "planted": names, "useful": useful, "runs": runs}


def _logged(metrics: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    entries = [record["memory"]["entries"] for record in metrics if record["event"] == "train"]
    return [{name: found[name] for name in names if name in found} for found in entries]


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    settings = {**small_policy_settings(options.env), "learning_rate": 0.0, "panel_per_type": 2, "tasks_per_step": 4}
    own = {"task_types": (options.task_type,), "steps": options.updates, "validate_every": 10**6, "save_every": 10**6}
    config = TrainConfig(model=options.model, **{**settings, **own, "transcripts_every": 0, "method_options": {}})
    only = options.only_planted
    return measure_planted(config, options.methods, options.seeds, options.useless, only_planted=only)


def main(words: Sequence[str] | None = None) -> int:
    """Runs the measurement; returns 2 where it was refused."""
    parser = options_parser(__doc__)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), help="methods with a bank")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--updates", type=int, default=12)
    parser.add_argument("--useless", type=int, default=3, help="entries that do not help")
    parser.add_argument("--only-planted", action="store_true", help="methods write nothing; credit alone decides")
    parser.add_argument("--env", default="alfworld", help="the environment")
    parser.add_argument("--task-type", default="pick_heat_then_place_in_recep")
    parser.add_argument("--model", default="shipped", help="the policy")
    return measurement(parser, _measure, words)


if __name__ == "__main__":
    sys.exit(main())

"""Whether memories prefer a useful skill to useless ones: planted entries, their utilities and uses over time.

    python -m benchmarks.planted_entries --out docs/results/planted_entries
    python -m benchmarks.planted_entries --only-planted --out docs/results/planted_entries_only

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
from statistics import fmean
from typing import Any

from benchmarks.page_record import measure_and_write
from benchmarks.revision import require_clean
from skill_library import load_library
from skillc_gym.envs.registry import env_spec, short_type
from skillc_lab.report import WITH, figure_style, new_figure, rate_axis, title
from trainers.config import TrainConfig
from trainers.memory import SkillBank
from trainers.stats import mean_over_seeds
from trainers.training import run
from trainers.warmstart import small_policy_settings
from trainers.writers import Draft

__all__ = ["main", "measure_planted", "page", "planted_bank", "save_picture"]

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


def use_share(run_: Mapping[str, Any], useful: str) -> list[float | None]:
    """Share of the planted entries' uses that went to the useful one, update by update; None where none was used."""
    shares: list[float | None] = []
    before: Mapping[str, Any] = {}
    for found in run_["updates"]:
        new = {name: entry["uses"] - before.get(name, {}).get("uses", 0) for name, entry in found.items()}
        total = sum(new.values())
        shares.append(new.get(useful, 0) / total if total else None)
        before = found
    return shares


def _final(run_: Mapping[str, Any], useful: str) -> dict[str, float]:
    """Utilities at the end, and the useful entry's share of the uses in the second half; 0 where none was used."""
    last = run_["updates"][-1]
    others = [entry["utility"] for name, entry in last.items() if name != useful]
    later = use_share(run_, useful)[len(run_["updates"]) // 2 :]
    shares = [share for share in later if share is not None]
    return {
        "useful": last.get(useful, {}).get("utility", 0.0),
        "useless": max(others, default=0.0),
        "share": fmean(shares) if shares else 0.0,
    }


def page(record: Mapping[str, Any]) -> str:
    """The record as a page."""
    useful, count, alone = record["useful"], len(record["planted"]), record.get("only_planted", False)
    how = "nothing is written, and likeness keeps no entry out" if alone else "methods write entries of their own, too"
    lines = [
        "# Planted entries" + (" alone" if alone else ""),
        "",
        f"`python -m benchmarks.planted_entries{' --only-planted' if alone else ''}`. One useful entry among {count} "
        f"for `{record['task_type']}`, at a learning rate of 0; {how}. Utility at the end (of the useless ones the "
        "highest), and the useful entry's share of the uses of planted entries in the second half of the updates "
        f"(chance: {1 / count:.2f}; 0 where none was used); means over seeds with 95 % intervals.",
        "",
        "| method | seeds | utility, useful | utility, best useless | share of uses |",
        "|---" * 5 + "|",
    ]
    for method in dict.fromkeys(run_["method"] for run_ in record["runs"]):
        found = [_final(run_, useful) for run_ in record["runs"] if run_["method"] == method]
        cells = [_estimate([each[name] for each in found]) for name in ("useful", "useless")]
        cells.append(_estimate([each["share"] for each in found], least=0.0))
        lines.append(f"| `{method}` | {len(found)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _estimate(values: Sequence[float], least: float = -1.0) -> str:
    estimate = mean_over_seeds(values)
    own = estimate.interval
    return f"{estimate.mean:.2f}" + (f" [{max(own.low, least):.2f}, {min(own.high, 1.0):.2f}]" if own else "")


def save_picture(record: Mapping[str, Any], path: Path) -> None:
    """Draws the useful entry's share of uses and the utilities over updates, a column per method.

    Raises:
        MissingExtraError: Without matplotlib.
    """
    methods = list(dict.fromkeys(run_["method"] for run_ in record["runs"]))
    with figure_style():
        figure = new_figure(2.6 * len(methods) + 0.6, 5.0)
        panels = figure.subplots(2, len(methods), squeeze=False, sharex=True, sharey="row")
        for column, method in enumerate(methods):
            for run_ in (each for each in record["runs"] if each["method"] == method):
                _draw_run(panels[0][column], panels[1][column], run_, record)
            title(panels[0][column], method)
            panels[0][column].axhline(1 / len(record["planted"]), color=WITH["color"], linewidth=0.8, linestyle=":")
            panels[1][column].set_xlabel("update")
            panels[1][column].xaxis.get_major_locator().set_params(integer=True)
        rate_axis(panels[0][0], "share of uses")
        panels[1][0].set_ylabel("utility")
        figure.suptitle("Blue: the useful entry; grey: the useless ones; a line per seed", x=0.01, ha="left")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)


def _draw_run(shares: Any, utilities: Any, run_: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    useful = record["useful"]
    at = [(update, share) for update, share in enumerate(use_share(run_, useful), 1) if share is not None]
    shares.plot([update for update, _ in at], [share for _, share in at], color="#0072B2", alpha=0.7)
    for name in record["planted"]:
        own = [(n, found[name]["utility"]) for n, found in enumerate(run_["updates"], 1) if name in found]
        look = {"color": "#0072B2", "linewidth": 1.6, "zorder": 3} if name == useful else {"color": "#c9cdd4"}
        utilities.plot([n for n, _ in own], [utility for _, utility in own], **look)


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    require_clean(allow_changes=options.allow_changes)
    settings = {**small_policy_settings(options.env), "learning_rate": 0.0, "panel_per_type": 2, "tasks_per_step": 4}
    own = {"task_types": (options.task_type,), "steps": options.updates, "validate_every": 10**6, "save_every": 10**6}
    config = TrainConfig(model=options.model, **{**settings, **own, "transcripts_every": 0, "method_options": {}})
    only = options.only_planted
    record = measure_planted(config, options.methods, options.seeds, options.useless, only_planted=only)
    if options.out:
        save_picture(record, options.out / "uses.png")
    return record


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the measurement; returns 2 where it was refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), help="presets with a bank")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--updates", type=int, default=12)
    parser.add_argument("--useless", type=int, default=3, help="entries that do not help")
    parser.add_argument("--only-planted", action="store_true", help="methods write nothing; credit alone decides")
    parser.add_argument("--env", default="alfworld", help="the environment")
    parser.add_argument("--task-type", default="pick_heat_then_place_in_recep")
    parser.add_argument("--model", default="shipped", help="the policy")
    parser.add_argument("--out", type=Path, help="record and page, without suffix, and the folder of the picture")
    parser.add_argument("--allow-changes", action="store_true", help="measure a changed working tree")
    return 2 if measure_and_write(parser.parse_args(argv), _measure, page) is None else 0


if __name__ == "__main__":
    sys.exit(main())

"""The tables of recorded demonstrations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainers.config import current_settings
from trainers.stats import mean_over_seeds, mean_over_seeds_and_tasks
from trainers.tracking import short_type

__all__ = ["as_markdown"]


def _percent(rate: float, interval: Sequence[float]) -> str:
    return f"{100 * rate:.1f} [{100 * interval[0]:.0f}, {100 * interval[1]:.0f}]"


def _row(record: Mapping[str, Any], split: str) -> list[str]:
    found = record["splits"][split]
    rates = [
        _percent(found[f"sr_{arm}_{when}"], found[f"sr_{arm}_{when}_interval"])
        for arm in ("without", "with")
        for when in ("before", "after")
    ]
    change = found["change_without"]
    by_gap = sorted(short_type(entry["type"]) for entry in record["retired"] if entry["reason"] == "gap")
    return [
        record["preset"],
        str(record["seed"]),
        *rates,
        f"**{change['points']:+.1f}** [{change['interval'][0]:+.1f}, {change['interval'][1]:+.1f}]",
        ", ".join(by_gap) or "none",
        f"{record['seconds']:.0f}",
    ]


HEAD = (
    "method",
    "seed",
    "without, before",
    "without, after",
    "with, before",
    "with, after",
    "change without",
    "retired by gap",
    "seconds",
)


def _table(records: Sequence[Mapping[str, Any]], split: str) -> list[str]:
    found = records[0]["splits"][split]
    rows = [HEAD, ["---"] * len(HEAD), *(_row(record, split) for record in records)]
    return [
        "",
        f"`{split}`: {found['games']} {_tasks(records[0])}, panel `{found['panel_sha256'][:12]}`.",
        "",
        *("| " + " | ".join(row) + " |" for row in rows),
        *_scores(records, split),
    ]


def _scores(records: Sequence[Mapping[str, Any]], split: str) -> list[str]:
    """Mean scores without skills, where the environment gives more than yes or no."""
    lines = []
    for record in records:
        found = record["scores"][split]
        if found:
            cells = [_score(found[when]["mean"], "all") for when in ("before", "after")]
            reachable = [_score(found[when]["mean"], "reachable") for when in ("before", "after")]
            lines.append(f"| {record['preset']} | {record['seed']} | {' | '.join([*cells, *reachable])} |")
    if not lines:
        return []
    head = "| method | seed | all, before | all, after | within reach, before | within reach, after |"
    return ["", "Mean score without skills, per cent:", "", head, "|---" * 6 + "|", *lines]


def _score(found: Mapping[str, Any], which: str) -> str:
    mean = found[which] and found[which]["without"]
    return _percent(mean["mean"], mean["interval"]) if mean else "--"


def as_markdown(whole: Mapping[str, Any], picture: str | None = None) -> str:
    """Puts a record's runs into one table per held-out split.

    Args:
        whole: The record.
        picture: Methods side by side, relative to the text.
    """
    records: Sequence[Mapping[str, Any]] = whole["runs"]
    first, found = records[0], whole["versions"]
    versions = {**found.get("packages", {}), "Python": found.get("python", "?")}
    return "\n".join(
        [
            f"# The demonstration on {first['data']} {_tasks(first)}",
            "",
            f"Success in per cent with 95 % intervals on held-out {_tasks(first)}, each played with and without "
            f"skills, before and after {first['steps']} updates. The change is paired.",
            *(line for split in first["splits"] for line in _table(records, split)),
            *_mean_over_seeds(records),
            *_differences(whole["differences"]),
            *_difference_over_seeds(records),
            *(["", f"![Methods side by side over seeds]({picture})"] if picture else []),
            *_gaps(records),
            *_curves(records),
            "",
            *_settings(first),
            "",
            f"`{whole['command']}`",
            "",
            _revision(whole),
            "",
            "With " + ", ".join(f"{name} {version}" for name, version in sorted(versions.items())) + ".",
            "",
        ]
    )


def _tasks(record: Mapping[str, Any]) -> str:
    """What the environment's tasks are called."""
    return {"alfworld": "games", "webshop": "goals"}[record["env"]]


def _mean_over_seeds(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """The change without skills over the seeds of each method, with Student's interval, on the headline split."""
    lines = []
    for preset in dict.fromkeys(record["preset"] for record in records):
        points = [record["change_without"]["points"] for record in records if record["preset"] == preset]
        mean = mean_over_seeds(points)
        if mean.interval is not None:
            bounds = f"[{mean.interval.low:+.1f}, {mean.interval.high:+.1f}]"
            lines.append(f"- {preset}: {mean.mean:+.1f} points without skills over {len(points)} seeds, 95 % {bounds}")
    return ["", f"Over seeds, `{records[0]['split']}`:", "", *lines] if lines else []


def _differences(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """The first method beside the others after training, without skills, seed by seed, paired by task."""
    lines = [
        f"- {entry['first']} minus {entry['second']}, seed {entry['seed']}: {entry['points']:+.1f} points, 95 % "
        f"[{entry['interval'][0]:+.1f}, {entry['interval'][1]:+.1f}]"
        for entry in found
    ]
    return ["", "After training, without skills, paired by task:", "", *lines] if lines else []


def _difference_over_seeds(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """The first method beside the others over the seeds that both have, on the headline split."""
    methods = list(dict.fromkeys(record["preset"] for record in records))
    lines = []
    for other in methods[1:]:
        found = mean_over_seeds_and_tasks(_paired(records, methods[0], other))
        if found.interval is not None:
            bounds = f"[{100 * found.interval.low:+.1f}, {100 * found.interval.high:+.1f}]"
            lines.append(
                f"- {methods[0]} minus {other}, over {found.n} seeds and all tasks: {100 * found.mean:+.1f} points, "
                f"95 % {bounds}"
            )
    return lines


def _paired(records: Sequence[Mapping[str, Any]], first: str, second: str) -> list[list[float]]:
    """Differences of outcomes without skills after training, a row per seed, a column per task."""
    won = {
        (record["preset"], record["seed"]): record["outcomes"][record["split"]]["after"]["without"]
        for record in records
        if record["preset"] in (first, second)
    }
    seeds = [seed for preset, seed in won if preset == first and (second, seed) in won]
    return [[int(a) - int(b) for a, b in zip(won[first, s], won[second, s], strict=True)] for s in seeds]


def _revision(whole: Mapping[str, Any]) -> str:
    names = ", ".join(name[:12] for name in whole["revisions"])
    return f"Revision {names}{'' if whole['clean'] else ', with changes in the working tree or of several revisions'}."


def _gaps(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Gap (with minus without) per type before and after, on the headline split."""
    split = records[0]["split"]
    kinds = list(records[0]["splits"][split]["gap_before"])
    head = ["method", "seed", *map(short_type, kinds)]
    rows = [
        [
            record["preset"],
            str(record["seed"]),
            *(
                f"{100 * record['splits'][split]['gap_before'][kind]:+.0f} to "
                f"{100 * record['splits'][split]['gap_after'][kind]:+.0f}"
                for kind in kinds
            ),
        ]
        for record in records
    ]
    table = [head, ["---"] * len(head), *rows]
    return [
        "",
        f"Gap per type, with minus without skills, before to after, in points, `{split}`:",
        "",
        *("| " + " | ".join(row) + " |" for row in table),
    ]


def _settings(record: Mapping[str, Any]) -> list[str]:
    """What a reader must know to compare: how long, how many, how sampled, from which policy."""
    config, policy = current_settings(record["config"]), record["policy"]
    options = ", ".join(f"{name} {value}" for name, value in config["method_options"].items()) or "none"
    lines = [
        f"- {config['tasks_per_step']} tasks of {config['group_size']} episodes per update, at most "
        f"{config['max_episode_steps']} steps each; learning rate {config['learning_rate']}, KL {config['kl_coef']}; "
        f"changes to the first method's options: {options}.",
        f"- Evaluation at temperature {config['eval_temperature']}, each of the {_tasks(record)} once per condition.",
    ]
    if policy:
        lines.append(
            f"- Start: a policy of {policy['parameters']:,} parameters (weights {policy['weights_sha256'][:12]}), "
            f"cloned from a scripted demonstrator on the training split. The panel's {_tasks(record)} are held back "
            "from reinforcement learning, not from cloning; held-out splits are held back from both."
        )
    retired = [f"{short_type(r['type'])} after update {r['step']} ({r['reason']})" for r in record["retired"]]
    if retired:
        lines.append(f"- Retired in the first run: {', '.join(retired)}.")
    return lines


def _curves(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Success on the held-back panel after every validation, one column per run, without / with skills."""
    names = [f"{record['preset']} {record['seed']}" for record in records]
    columns = [{found["step"]: found for found in record["validations"]} for record in records]
    rows = [[str(step), *(_pair(column[step]) if step in column else "" for column in columns)] for step in columns[0]]
    size = sum(int(n) for n in records[0]["validations"][0]["n"].values())
    table = [["update", *names], ["---"] * (1 + len(names)), *rows]
    return [
        "",
        f"Success without / with skills on the panel of {size} training {_tasks(records[0])} that steers the "
        "curriculum, per cent:",
        "",
        *("| " + " | ".join(row) + " |" for row in table),
    ]


def _pair(found: Mapping[str, Any]) -> str:
    return f"{100 * found['overall_without']:.0f} / {100 * found['overall_with']:.0f}"

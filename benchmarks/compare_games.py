"""Draws generated games beside real ones: ``python -m benchmarks.compare_games --data FOLDER``.

Counts receptacles, objects and what lies behind doors, the length of shortest plans, the steps of an explorer, and how
often each task type comes, in a sample of the real training games and in as many generated ones of size "real" and of
the real mix.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.revision import write_record
from skillc_gym.envs.alfworld import SHORT_NAMES
from skillc_gym.envs.alfworld.data import GameSet, open_games
from skillc_gym.envs.alfworld.engine import Game, World
from skillc_gym.envs.alfworld.experts import Explorer, Planner
from skillc_gym.envs.alfworld.generate import chosen
from skillc_gym.errors import SkillCError, missing_extra

MEASURES = (
    *("receptacles", "receptacles that open", "places to stand", "objects that lie about", "objects behind doors"),
    *("wanted objects", "shortest plan", "steps of the explorer"),
)
STEPS = ("shortest plan", "steps of the explorer")
LIMIT = 100

Sample = dict[str, list[int]]


def measures(game: Game) -> tuple[int, ...]:
    """The figures of one game, in the order of `MEASURES`."""
    inside, planner = game.start.inside, Planner(game)
    lying = set().union(*inside) & set(game.pickupable)
    hidden = set().union(*(things for index, things in enumerate(inside) if game.openable >> index & 1)) & lying
    return (
        *(len(game.receptacles), game.openable.bit_count(), len({place for of in game.places_of for place in of})),
        *(len(lying), len(hidden), len(planner.things & lying), len(planner.plan()), explorer_steps(game)),
    )


def explorer_steps(game: Game) -> int:
    """Steps of the explorer until it wins, at most `LIMIT`."""
    world = World(game)
    observation, explorer = world.reset(), Explorer(game.task_type, game.goal)
    for steps in range(LIMIT):
        if world.won:
            return steps
        observation, _ = world.step(explorer.act(observation, world.admissible))
    return LIMIT


def sample(games: GameSet, task_ids: Sequence[str]) -> Sample:
    """The figures of several games."""
    found = [measures(games.load(task_id)) for task_id in task_ids]
    return {name: [figures[index] for figures in found] for index, name in enumerate(MEASURES)}


def draw(samples: dict[str, Sample], path: Path) -> None:
    """Histograms side by side.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra("matplotlib", "train") from error
    figure = Figure(figsize=(9, 9), layout="constrained")
    axes = figure.subplots(len(MEASURES) // 2, 2).flat
    for axis, name in zip(axes, MEASURES, strict=True):
        values = [found[name] for found in samples.values()]
        low, high = min(map(min, values)), max(map(max, values))
        bins = np.arange(low, high + 2, max(1, (high - low) // 20)) - 0.5
        shares = [np.full(len(found), 100 / len(found)) for found in values]
        axis.hist(values, bins=bins, weights=shares, label=list(samples), color=["#111418", "#E69F00"])
        axis.set_title(name, fontsize=10.5, loc="left", fontweight="bold")
        axis.set_xlabel("steps" if name in STEPS else "number per game")
        axis.set_ylabel("games, per cent")
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.spines[["top", "right"]].set_visible(False)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def summary(samples: dict[str, Sample]) -> dict[str, Any]:
    """Mean and the 10th and 90th percentile of every measure."""
    return {
        name: {
            kind: [
                round(statistics.mean(found[name]), 1),
                *(int(np.percentile(found[name], share)) for share in (10, 90)),
            ]
            for kind, found in samples.items()
        }
        for name in MEASURES
    }


def _markdown(figures: dict[str, Any], types: dict[str, dict[str, float]], count: int) -> str:
    lines = [
        "# Generated games beside real ones",
        "",
        f"{count} games of ALFWorld's training split and {count} generated ones of size `real`: mean, and 10th to 90th "
        "percentile.",
        "",
        "| | real | generated |",
        "|---|---|---|",
        *(
            f"| {name} | " + " | ".join(f"{mean} ({low} to {high})" for mean, low, high in kinds.values()) + " |"
            for name, kinds in figures.items()
        ),
        "",
        "![Histograms](compare_games/histograms.png)",
        "",
        "| share of task types | real | generated |",
        "|---|---|---|",
        *(f"| {kind} | " + " | ".join(f"{100 * types[s][kind]:.0f} %" for s in types) + " |" for kind in types["real"]),
        "",
        'The generator was asked for `mix="real"`; left alone, it gives equally many games of each type.',
        "",
        f"`python -m benchmarks.compare_games --games {count}`",
        "",
    ]
    return "\n".join(lines)


def _asked(games: int) -> dict[str, Any]:
    return {"size": "real", "games_per_type": -(-games // len(SHORT_NAMES)), "mix": "real"}


def _shares(task_ids: Sequence[str], games: GameSet) -> dict[str, float]:
    counts = Counter(SHORT_NAMES[games.task_type(task_id)] for task_id in task_ids)
    return {kind: counts[kind] / len(task_ids) for kind in SHORT_NAMES.values()}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description="Draw generated games beside real ones.", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--data", help="folder or archive of real games (default: ALFWORLD_DATA)")
    parser.add_argument("--games", type=int, default=300, help="how many of each kind")
    parser.add_argument("--out", type=Path, default=Path("docs/results/compare_games"), help="record, without suffix")
    args = parser.parse_args(argv)
    try:
        real = open_games(args.data, split="train")
        made = open_games("generated", split="train", generator=_asked(args.games))
        names = {"real": chosen(real.task_ids, args.games), "generated": chosen(made.task_ids, args.games)}
        samples = {"real": sample(real, names["real"]), "generated": sample(made, names["generated"])}
        draw(samples, args.out / "histograms.png")
    except SkillCError as error:
        print(f"compare_games: {error}", file=sys.stderr)
        return 2
    types = {"real": _shares(real.task_ids, real), "generated": _shares(made.task_ids, made)}
    figures = summary(samples)
    write_record(args.out.with_suffix(".json"), {"games": args.games, "measures": figures, "types": types})
    text = _markdown(figures, types, args.games)
    args.out.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""``skillc tools make-games``: write generated ALFWorld games in upstream's layout."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillc_gym.envs.alfworld import SHORT_NAMES, SPLITS
from skillc_gym.envs.alfworld.data import GAME_FILE
from skillc_gym.envs.alfworld.generate import GeneratedGames, proved_by_planner, proved_by_upstream
from skillc_lab.cli.command import Command, count_line, require_empty, say

LAYOUT = "json_2.1.1"


@dataclass(frozen=True)
class MakeGamesOptions:
    """Write generated ALFWorld games in upstream's layout; the folder is then played here and with upstream itself."""

    out: Path
    """Folder to write, new or empty."""
    splits: tuple[str, ...] = SPLITS
    """Splits to write."""
    task_types: tuple[str, ...] = tuple(SHORT_NAMES.values())
    """Task types, by full or short name."""
    seed: int = 0
    """Seed of the family of games."""
    games_per_type: int = 50
    """Games of each type in each split."""
    size: str = "small"
    """Size of the houses: small, medium, large or real."""
    mix: str | None = None
    """real: as many games of each type as ALFWorld has; weights are written generator.mix='{"heat": 2, "pick": 1}'."""
    generator_options: Mapping[str, Any] = field(default_factory=dict)
    """Further options of the generator, such as generator.difficulty=0.5; docs/alfworld.md has all of them."""
    prove: bool = False
    """Have every game won by the planner."""
    prove_upstream: int = 0
    """Games of each split to have won in upstream too."""

    def generator(self) -> dict[str, Any]:
        """The generator's options, as ``generator=`` takes them."""
        chosen = {name: getattr(self, name) for name in ("seed", "games_per_type", "size", "mix")}
        return {name: value for name, value in chosen.items() if value is not None} | dict(self.generator_options)


def write_games(games: GeneratedGames, out: Path, split: str) -> None:
    """Writes every game of a set to ``<out>/json_2.1.1/<split>/<task folder>/<trial folder>/game.tw-pddl``."""
    for done, task_id in enumerate(games.task_ids, start=1):
        folder = out / LAYOUT / task_id
        folder.mkdir(parents=True)
        (folder / GAME_FILE).write_text(json.dumps(games.raw(task_id)), encoding="utf-8")
        count_line(split, done, len(games.task_ids))


def report(games: GeneratedGames, options: MakeGamesOptions) -> dict[str, Any]:
    """How many games there are, and how many were won in the proofs that were asked for; an error where one was not."""
    found: dict[str, Any] = {"games": len(games.task_ids)}
    if options.prove:
        found["won_by_planner"] = len(proved_by_planner(games))
    if options.prove_upstream:
        found["won_in_upstream"] = proved_by_upstream(games, options.prove_upstream)
    return found


def make(options: MakeGamesOptions) -> int:
    """Runs the command; nothing is written before everything has been generated and proved."""
    require_empty(options.out)
    sets = {split: GeneratedGames(split, options.task_types, **options.generator()) for split in options.splits}
    proofs = {split: report(games, options) for split, games in sets.items()}
    for split, games in sets.items():
        write_games(games, options.out, split)
    say(json.dumps(proofs, indent=2))
    return 0


COMMAND = Command(MakeGamesOptions, make, "interrupted; the folder may be incomplete.")

"""Sets of generated games, behind the same interface as games from files."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skillc_gym.alfworld.games import GameSet
from skillc_gym.alfworld.generate.game_file import game_file, sentences, task_folder
from skillc_gym.alfworld.generate.house import SCENES, House, sample_house
from skillc_gym.alfworld.generate.sizes import size_named
from skillc_gym.alfworld.tasks import SHORT_NAMES, SPLITS, resolve_task_types
from skillc_gym.errors import ConfigError, unknown_name

__all__ = ["GeneratedGame", "GeneratedGames", "generate_game"]

_SHARES = {
    "train": range(70),
    "valid_seen": range(70, 80),
    "valid_unseen": range(80, 90),
    "valid_train": range(90, 100),
}
"""Split -> which hundredths of all possible houses belong to it; so no seed can put one house into two splits."""


@dataclass(frozen=True)
class GeneratedGame:
    """A generated game.

    Attributes:
        task_id: ``<split>/<task folder>/<trial folder>``.
        raw: The content of its game file.
    """

    task_id: str
    raw: dict[str, Any]


def generate_game(
    task_type: str, *, seed: int, size: str = "small", split: str = "train", index: int = 0, scenes: int = SCENES
) -> GeneratedGame:
    """Generates one game; the same arguments give the same game on every machine.

    Args:
        task_type: Full or short name of the task type.
        seed: Seed of the whole family of games.
        size: "small", "medium", "large" or "real".
        split: Houses of different splits are never the same, whatever their seeds; valid_unseen has its own scenes.
        index: Number of the game in its family.
        scenes: How many scenes (layouts) of a kind of room the other splits are set in; valid_unseen has always the
            same five.

    Raises:
        UnknownNameError: If the task type, the size or the split does not exist.
        ConfigError: If the seed or the index is no number from 0 on, or ``scenes`` none from 1 on.
    """
    kind = SHORT_NAMES[resolve_task_types(task_type)[0]]
    size_named(size)
    if split not in SPLITS:
        raise unknown_name("split", split, SPLITS)
    _check_number("seed", seed, 0)
    _check_number("index", index, 0)
    _check_number("scenes", scenes, 1)
    rng = np.random.default_rng([seed, SPLITS.index(split), list(SHORT_NAMES.values()).index(kind), index])
    while True:
        house = sample_house(kind, size=size, unseen=split == "valid_unseen", rng=rng, scenes=scenes)
        if _hundredth(house) in _SHARES[split]:
            break
    wordings = sentences(house.task)
    raw = game_file(house, wordings[int(rng.integers(len(wordings)))], rng)
    return GeneratedGame(f"{split}/{task_folder(house)}/trial_G{seed:08d}_{index:06d}", raw)


def _check_number(option: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"The generator's {option} is a whole number of at least {least}; got {value!r}.")


def _hundredth(house: House) -> int:
    """A number from 0 to 99 that depends on nothing but what the house is, the order of its things left out."""
    receptacles = [(receptacle.kind, receptacle.location) for receptacle in house.receptacles]
    things = sorted((thing.kind, thing.place) for thing in house.things)
    task = house.task
    content = json.dumps([house.scene, receptacles, things, task.kind, task.thing, task.place])
    return int.from_bytes(hashlib.sha256(content.encode()).digest()[:8], "big") % 100


class GeneratedGames(GameSet):
    """A split of generated games.

    Args:
        split: "train", "valid_seen", "valid_unseen" or "valid_train".
        task_types: Full or short names; None for all six.
        seed: Seed of the family.
        games_per_type: How many games of each type.
        size: "small", "medium", "large" or "real".
        scenes: How many scenes (layouts) of a kind of room the splits other than valid_unseen are set in.

    Raises:
        UnknownNameError: If the split, a task type or the size does not exist.
        ConfigError: If ``games_per_type`` or ``scenes`` is no number from 1 on, or the seed none from 0 on.
    """

    def __init__(
        self,
        split: str = "train",
        task_types: Iterable[str] | str | None = None,
        *,
        seed: int = 0,
        games_per_type: int = 50,
        size: str = "small",
        scenes: int = SCENES,
    ) -> None:
        super().__init__()
        _check_number("games_per_type", games_per_type, 1)
        names = [SHORT_NAMES[name] for name in resolve_task_types(task_types)]
        recipes = {
            generate_game(name, seed=seed, size=size, split=split, index=index, scenes=scenes).task_id: (name, index)
            for name in names
            for index in range(games_per_type)
        }
        self._recipes = dict(sorted(recipes.items()))
        self._seed, self._size, self._split, self._scenes = seed, size, split, scenes

    @property
    def task_ids(self) -> tuple[str, ...]:
        """The ids of all tasks, sorted."""
        return tuple(self._recipes)

    def raw(self, task_id: str) -> dict[str, Any]:
        """Returns the content of a game file."""
        self.require(task_id)
        name, index = self._recipes[task_id]
        return generate_game(
            name, seed=self._seed, size=self._size, split=self._split, index=index, scenes=self._scenes
        ).raw

    @functools.cached_property
    def manifest_sha256(self) -> str:
        """A hash of every task id and of the content of its file."""
        digest = hashlib.sha256()
        for task_id in self.task_ids:
            digest.update(f"{task_id} {json.dumps(self.raw(task_id), sort_keys=True)}\n".encode())
        return digest.hexdigest()

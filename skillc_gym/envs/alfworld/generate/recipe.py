"""From the numbers that name a generated game to its house."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

import numpy as np

from skillc_gym.envs.alfworld.generate.game_file import task_folder
from skillc_gym.envs.alfworld.generate.house import SCENES, House, sample_house
from skillc_gym.envs.alfworld.generate.knobs import PLAIN, Knobs, check_number, check_share, size_named
from skillc_gym.envs.alfworld.tasks import SHORT_NAMES, SPLITS
from skillc_gym.errors import unknown_name

_SHARES = {
    "train": range(70),
    "valid_seen": range(70, 80),
    "valid_unseen": range(80, 90),
    "valid_train": range(90, 100),
}
"""Split -> which hundredths of all possible houses belong to it; so no seed can put one house into two splits."""
_LEVEL = re.compile(r"_D(\d{4})$")


@dataclass(frozen=True)
class Recipe:
    """What a generated game follows from.

    Attributes:
        kind: Short name of the task type.
        seed: Seed of the family.
        index: Number of the game in its family.
        split: The split.
        size: Name of the size.
        scenes: How many scenes of a kind of room the splits other than valid_unseen have.
        difficulty: Sets the knobs that were left alone; None leaves them to the size.
        knobs: What to choose otherwise than the size does.

    Raises:
        UnknownNameError: If the size or the split does not exist.
        ConfigError: If a number is out of range.
    """

    kind: str
    seed: int
    index: int = 0
    split: str = "train"
    size: str = "small"
    scenes: int = SCENES
    difficulty: float | None = None
    knobs: Knobs = PLAIN

    def __post_init__(self) -> None:
        size_named(self.size)
        if self.split not in SPLITS:
            raise unknown_name("split", self.split, SPLITS)
        check_number("seed", self.seed, 0)
        check_number("index", self.index, 0)
        check_number("scenes", self.scenes, 1)
        if self.difficulty is not None:
            check_share("difficulty", self.difficulty)

    def house(self) -> tuple[House, np.random.Generator]:
        """Samples the house; returns it with the generator that goes on to word the task and to name the things."""
        number = list(SHORT_NAMES.values()).index(self.kind)
        rng = np.random.default_rng([self.seed, SPLITS.index(self.split), number, self.index])
        knobs = self.knobs if self.difficulty is None else self.knobs.at(self.difficulty)
        unseen = self.split == "valid_unseen"
        while True:
            house = sample_house(self.kind, size=self.size, unseen=unseen, rng=rng, scenes=self.scenes, knobs=knobs)
            if _hundredth(house) in _SHARES[self.split]:
                return house, rng

    def task_id(self, house: House) -> str:
        """The name of the game that this recipe's house becomes."""
        level = "" if self.difficulty is None else f"_D{thousandths(self.difficulty):04d}"
        return f"{self.split}/{task_folder(house)}/trial_G{self.seed:08d}_{self.index:06d}{level}"


def thousandths(difficulty: float) -> int:
    """A difficulty as the name of a game says it."""
    return round(1000 * difficulty)


def difficulty_of(task_id: str) -> float | None:
    """The difficulty of a generated game as its name says it, to the thousandth; None if none was asked for."""
    found = _LEVEL.search(task_id)
    return int(found[1]) / 1000 if found else None


def _hundredth(house: House) -> int:
    """A number from 0 to 99 that depends on nothing but what the house is, the order of its things left out."""
    receptacles = [(receptacle.kind, receptacle.location) for receptacle in house.receptacles]
    things = sorted((thing.kind, thing.place) for thing in house.things)
    task = house.task
    content = json.dumps([house.scene, receptacles, things, task.kind, task.thing, task.place])
    return int.from_bytes(hashlib.sha256(content.encode()).digest()[:8], "big") % 100

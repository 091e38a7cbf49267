"""Generated games: the numbers that name one, the house that follows, and sets behind the interface of `GameSet`."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skill_library.errors import brief
from skillc_gym.envs.alfworld.data.game_set import GameSet, official_manifests
from skillc_gym.envs.alfworld.generate.game_file import game_file, sentences, task_folder
from skillc_gym.envs.alfworld.generate.house import MAX_TRIES, SCENES, House, no_house, sample_house
from skillc_gym.envs.alfworld.generate.knobs import PLAIN, SIZES, Knobs, check_share, read_knobs
from skillc_gym.envs.alfworld.tasks import SHORT_NAMES, SPLITS, resolve_task_types
from skillc_gym.errors import ConfigError, require_name, unknown_name
from skillc_gym.values import require_whole

_SHARES = {
    "train": range(70),
    "valid_seen": range(70, 80),
    "valid_unseen": range(80, 90),
    "valid_train": range(90, 100),
}
"""Split -> which hundredths of all possible houses belong to it; so no seed can put one house into two splits."""
_MOST_WEIGHT = 1e100
_LEVEL = re.compile(r"_D(\d{4})$")


@dataclass(frozen=True)
class GameSpec:
    """What a generated game follows from; a name that does not exist or a number out of range is an error."""

    kind: str
    seed: int
    index: int = 0
    split: str = "train"
    size: str = "small"
    scenes: int = SCENES
    difficulty: float | None = None
    knobs: Knobs = PLAIN

    def __post_init__(self) -> None:
        require_name("size of a house", self.size, SIZES)
        require_name("split", self.split, SPLITS)
        for name, least in {"seed": 0, "index": 0, "scenes": 1}.items():
            require_whole(f"The generator's {name}", getattr(self, name), least)
        if self.difficulty is not None:
            check_share("difficulty", self.difficulty)

    def house(self) -> tuple[House, np.random.Generator]:
        """Samples the house; returns it with the generator that goes on to word the task and to name the things."""
        number = list(SHORT_NAMES.values()).index(self.kind)
        rng = np.random.default_rng([self.seed, SPLITS.index(self.split), number, self.index])
        knobs = self.knobs if self.difficulty is None else self.knobs.at(self.difficulty)
        unseen = self.split == "valid_unseen"
        for _ in range(MAX_TRIES):
            house = sample_house(self.kind, size=self.size, unseen=unseen, rng=rng, scenes=self.scenes, knobs=knobs)
            if _hundredth(house) in _SHARES[self.split]:
                return house, rng
        raise no_house(f"that belongs to the split {self.split!r}", knobs)

    def content(self) -> dict[str, Any]:
        """The content of the game file; the same on every machine."""
        house, rng = self.house()
        wordings = sentences(house.task, place_said=self.knobs.convention is None)
        return game_file(house, wordings[int(rng.integers(len(wordings)))], rng)

    def task_id(self, house: House) -> str:
        """The name of the game that this spec's house becomes."""
        level = "" if self.difficulty is None else f"_D{round(1000 * self.difficulty):04d}"
        return f"{self.split}/{task_folder(house)}/trial_G{self.seed:08d}_{self.index:06d}{level}"


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


class GeneratedGames(GameSet):
    """A split of generated games; UnknownNameError or ConfigError for an option that is not so.

    Args:
        split: "train", "valid_seen", "valid_unseen" or "valid_train".
        task_types: Full or short names; None for all six.
        seed: Seed of the family.
        games_per_type: How many games of each type; with ``mix``, on average over the types.
        size: "small", "medium", "large" or "real".
        scenes: How many scenes (layouts) of a kind of room the splits other than valid_unseen are set in.
        mix: Weights of the task types, by full or short name, or "real" for those of ALFWorld's training split; None
            for equally many of each.
        difficulty: Sets all knobs at once, from 0 (easiest) to 1 (hardest); a list gives so many games for each of its
            numbers, and the names of the games say which (`difficulty_of`).
        **knobs: receptacles, objects, closed, hidden, spares, rooms, convention: see `knobs.Knobs`.
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
        mix: Mapping[str, float] | str | None = None,
        difficulty: float | Sequence[float] | None = None,
        **knobs: Any,
    ) -> None:
        games_per_type = require_whole("The generator's games_per_type", games_per_type, 1)
        names = [SHORT_NAMES[name] for name in resolve_task_types(task_types)]
        levels = _levels(difficulty)
        turned = read_knobs(**knobs)
        specs = (
            GameSpec(name, seed, index, split, size, scenes, level, turned)
            for name, count in numbers(names, games_per_type * len(names), mix).items()
            for level in levels
            for index in range(count)
        )
        self._specs = {spec.task_id(spec.house()[0]): spec for spec in specs}
        super().__init__(self._specs)

    def raw(self, task_id: str) -> dict[str, Any]:
        """Returns the content of a game file."""
        return self._specs[self.require(task_id)].content()

    @functools.cached_property
    def manifest_sha256(self) -> str:
        """A hash of every task id and of the content of its file."""
        digest = hashlib.sha256()
        for task_id in self.task_ids:
            digest.update(f"{task_id} {json.dumps(self.raw(task_id), sort_keys=True)}\n".encode())
        return digest.hexdigest()


def _levels(difficulty: Any) -> Sequence[float | None]:
    if not isinstance(difficulty, list | tuple):
        return (difficulty,)
    named = [round(1000 * check_share("difficulty", level)) for level in difficulty]
    if not named or len(set(named)) < len(named):
        raise ConfigError(
            "The generator's difficulty is a number or a list of numbers that differ by a thousandth at least; got "
            f"{difficulty!r}."
        )
    return difficulty


def numbers(names: Sequence[str], total: int, mix: Mapping[str, float] | str | None) -> dict[str, int]:
    """Divides games among task types (short names) in proportion to weights, by largest remainders.

    ``mix`` has weights by full or short name; "real" stands for ALFWorld's, None for equal ones. Types without one get
    none. An unknown name, a bad weight or none at all is an error.
    """
    weights = _weights(names, mix)
    shares = {name: total * weight / sum(weights.values()) for name, weight in weights.items()}
    counts = {name: int(share) for name, share in shares.items()}
    by_remainder = sorted(names, key=lambda name: counts[name] - shares[name])
    for name in by_remainder[: total - sum(counts.values())]:
        counts[name] += 1
    return counts


def _weights(names: Sequence[str], mix: Mapping[str, float] | str | None) -> dict[str, float]:
    if isinstance(mix, str) and mix != "real":
        raise unknown_name("mix of task types", mix, ["real"], "A table of weights does as well.")
    real = official_manifests()["train"].by_type
    given = dict.fromkeys(names, 1.0) if mix is None else real if isinstance(mix, str) else mix
    if not isinstance(given, Mapping):
        raise ConfigError(f"The generator's mix is 'real' or weights such as {{'pick': 2, 'heat': 1}}; got {mix!r}.")
    known = {SHORT_NAMES[resolve_task_types(name)[0]]: weight for name, weight in given.items()}
    if len(known) < len(given):
        raise ConfigError(f"The generator's mix names a task type twice: {', '.join(map(str, given))}.")
    weights = {name: known.get(name, 0.0) for name in names}
    for name, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= _MOST_WEIGHT:
            bounds = f"a number from 0 to {_MOST_WEIGHT}"
            raise ConfigError(f"The weight of {name!r} in the generator's mix is {bounds}; got {brief(weight)}.")
    if sum(weights.values()) <= 0:
        raise ConfigError(f"The generator's mix gives no weight to any of {', '.join(names)}.")
    return weights

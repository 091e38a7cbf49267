"""Where the things of a house lie at the start."""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skillc_gym.envs.alfworld.generate.catalogue import CONTAINS, LAMPS
from skillc_gym.envs.alfworld.generate.layout import Receptacle
from skillc_gym.envs.alfworld.generate.real_rooms import places

__all__ = ["Placer", "Thing"]


@dataclass(frozen=True)
class Thing:
    """An object and the index of the receptacle it lies in."""

    kind: str
    place: int


class Placer:
    """Puts things into the receptacles of one house.

    Args:
        receptacles: The receptacles.
        real: Prefer what the real scenes prefer; otherwise everything that is allowed is equally likely.
        rng: Source of the choices.
    """

    def __init__(self, receptacles: Sequence[Receptacle], real: bool, rng: np.random.Generator) -> None:
        self._receptacles, self._real = receptacles, real
        self.rng = rng
        self._counts = Counter(receptacle.kind for receptacle in receptacles)
        self._spots: dict[tuple[str, str], list[int]] = {}

    def fits(self, kind: str, avoid: str = "") -> bool:
        """Whether there is a receptacle, of another kind than the one to avoid, where such an object may begin."""
        return bool(self.spots(kind, avoid))

    def spots(self, kind: str, avoid: str = "") -> list[int]:
        """The receptacles where such an object may begin."""
        known = self._spots.get((kind, avoid))
        if known is None:
            holders = places(kind) if self._real else [place for place in self._counts if kind in CONTAINS[place]]
            known = self._spots[kind, avoid] = [
                index
                for index, receptacle in enumerate(self._receptacles)
                if receptacle.kind in holders and receptacle.kind != avoid
            ]
        return known

    def place(self, kind: str, avoid: str = "") -> Thing:
        """An object somewhere."""
        return Thing(kind, self._choose(kind, self.spots(kind, avoid)))

    def hide(self, kind: str, avoid: str, chance: float | None) -> Thing:
        """An object behind a door with some chance, in the open otherwise, where there is a choice."""
        if chance is None:
            return self.place(kind, avoid)
        behind = bool(self.rng.random() < chance)
        spots = self.spots(kind, avoid)
        preferred = [index for index in spots if self._receptacles[index].opens is behind]
        return Thing(kind, self._choose(kind, preferred or spots))

    def stand(self, lamp: str) -> Thing:
        """A lamp on something that lamps stand on."""
        stands = [index for index, receptacle in enumerate(self._receptacles) if receptacle.kind in LAMPS[lamp]]
        return Thing(lamp, self._choose(lamp, stands))

    def _choose(self, kind: str, spots: Sequence[int]) -> int:
        if not self._real:
            return spots[int(self.rng.integers(len(spots)))]
        weights = places(kind)
        names = [self._receptacles[index].kind for index in spots]
        shares = list(itertools.accumulate(weights[name] / self._counts[name] for name in names))
        return spots[bisect.bisect_right(shares, float(self.rng.random()) * shares[-1])]

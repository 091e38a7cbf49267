"""An expert that knows only what it has read: it explores depth first, and goes back from dead ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skillc_gym.envs.coins.tasks import DIRECTIONS, OPPOSITE


class CoinSeeker:
    """Plays from the commands alone; ``thought`` says why the last one was given.

    One that ``errs`` leaves out what the skill teaches: it stays in the first dead end, and leaves a coin lying there.
    """

    def __init__(self, *, errs: bool = False) -> None:
        self.errs, self.thought = errs, ""
        self._here = (0, 0)
        self._seen = {self._here}
        self._way_back: list[str] = []

    def act(self, observation: str, commands: Sequence[str]) -> str:
        """Gives the next command; the observation is not needed, the commands possible now say it all."""
        if "take coin" in commands:
            return self._say("done", "look") if self.errs else self._say("coin", "take coin")
        exits = [command.removeprefix("go ") for command in commands if command.startswith("go ")]
        new = next((way for way in exits if self._behind(way) not in self._seen), None)
        if new is not None:
            self._way_back.append(OPPOSITE[new])
            return self._go(new, "new exit")
        if self.errs or not self._way_back:
            return self._say("done", "look")
        return self._go(self._way_back.pop(), "dead end")

    def _behind(self, way: str) -> tuple[int, int]:
        return self._here[0] + DIRECTIONS[way][0], self._here[1] + DIRECTIONS[way][1]

    def _go(self, way: str, thought: str) -> str:
        self._here = self._behind(way)
        self._seen.add(self._here)
        return self._say(thought, f"go {way}")

    def _say(self, thought: str, command: str) -> str:
        self.thought = thought
        return command


def demonstrator(info: Mapping[str, Any], errs: bool) -> CoinSeeker:
    """Makes the expert of a demonstration; see `skillc_gym.envs.warm_start.WarmStart`."""
    return CoinSeeker(errs=errs)

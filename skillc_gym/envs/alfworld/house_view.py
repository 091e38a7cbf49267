"""The house as a person would draw it, as text and as a page: what is known of it, the agent and its hand."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from skillc_gym.envs.alfworld.engine.world import NOTHING_HAPPENS, World
from skillc_gym.envs.alfworld.experts.explorer import parse_goal
from skillc_gym.errors import ConfigError
from skillc_gym.pages import page


class Row(NamedTuple):
    """One receptacle as the agent knows it.

    ``state`` is "open", "closed", or "" for one that cannot be opened or was not visited; ``things`` is None for one
    that the agent has not looked into.
    """

    name: str
    here: bool
    state: str
    things: tuple[str, ...] | None


class HouseView:
    """What an agent has seen of a running game, from the start on, with the transcript; drawn as text and as a page."""

    def __init__(self, world: World, first: str) -> None:
        self.world = world
        self.transcript: list[tuple[str, str]] = [("", first)]
        self._seen: set[int] = set()
        self._visited: set[int] = set()

    def saw(self, command: str, answer: str, *, admissible: bool) -> None:
        """Takes in one exchange, after the world has made the step."""
        self.transcript.append((command, answer))
        if not admissible:
            return
        game, state = self.world.game, self.world.state
        self._visited.update(game.here[state.place])
        for receptacle in game.here[state.place]:
            shut = game.openable >> receptacle & 1 and not state.opened >> receptacle & 1
            if not shut and command.strip() in self._looks_at(receptacle):
                self._seen.add(receptacle)

    def _looks_at(self, receptacle: int) -> tuple[str, ...]:
        """The commands whose answer tells what is in a receptacle."""
        game, name = self.world.game, self.world.game.receptacles[receptacle]
        words = game.wording.commands
        looks = [words[action].format(r=name) for action in ("openobject", "examinereceptacle") if action in words]
        return (*looks, *(command for command, ends in game.routes.items() if receptacle in dict(ends)))

    def rows(self) -> Iterator[Row]:
        """The receptacles in the order of their names, then numbers."""
        game, state = self.world.game, self.world.state
        here = game.here[state.place]
        for index in sorted(range(len(game.receptacles)), key=lambda i: _by_number(game.receptacles[i])):
            known = index in self._visited and game.openable >> index & 1
            condition = ("closed", "open")[state.opened >> index & 1] if known else ""
            things = tuple(game.objects[thing] for thing in state.inside[index]) if index in self._seen else None
            yield Row(game.receptacles[index], index in here, condition, things)

    @property
    def hand(self) -> str:
        """What the agent holds, with what was done to it; "empty" for nothing."""
        game, state = self.world.game, self.world.state
        if state.held < 0:
            return "empty"
        flags = {"clean": state.clean, "hot": state.hot, "cool": state.cool, "sliced": state.sliced}
        done = [name for name, things in flags.items() if things >> state.held & 1]
        return game.objects[state.held] + (f" ({', '.join(done)})" if done else "")

    def to_ansi(self) -> str:
        """The house as a table, the hand, and the last exchange."""
        rows = list(self.rows())
        width = max((len(row.name) for row in rows), default=0)
        drawn = [
            f"{'@' if row.here else ' '} {row.name:<{width}}  {row.state:<6}  {_listed(row.things)}".rstrip()
            for row in rows
        ]
        command, answer = self.transcript[-1]
        said = f"> {command}\n{answer}" if command else answer
        return "\n".join([*drawn, f"  hand: {self.hand}   task: {self.world.game.goal}", "", said])

    def to_page(self) -> str:
        """The house by kind of furniture and the transcript, as one self-contained page."""
        thing, places = _kinds_of_goal(self.world.game.task)
        groups = itertools.groupby(self.rows(), key=lambda row: row.name.rpartition(" ")[0])
        return page(
            __package__,
            "house.html",
            view=self,
            kinds=[(kind, list(rows)) for kind, rows in groups],
            places=places,
            wanted=(thing, *places),
            nothing=NOTHING_HAPPENS,
        )


def _listed(things: tuple[str, ...] | None) -> str:
    return "?" if things is None else ", ".join(things) or "(empty)"


def _by_number(name: str) -> tuple[str, int, str]:
    kind, _, number = name.rpartition(" ")
    return (kind, int(number) if number.isdigit() else 0, name)


def _kinds_of_goal(task: str) -> tuple[str, tuple[str, ...]]:
    """The kinds of the wanted object and of the target or lamp; none for a sentence that is not ALFWorld's."""
    try:
        goal = parse_goal(task)
    except ConfigError:
        return "", ()
    return goal.thing, (goal.place, goal.place + "basin")

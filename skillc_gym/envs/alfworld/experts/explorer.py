"""A scripted agent that knows only what it has read: it searches as a person would, then does the task."""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skillc_gym.envs.alfworld.tasks import SHORT_NAMES, resolve_task_types
from skillc_gym.errors import ConfigError

_GOALS = (
    re.compile(r"(?:look at|examine)(?: the| a| an)? (?P<thing>\w+) (?:under|with) the (?P<place>\w+)"),
    re.compile(r"(?:clean|heat|cool) some (?P<thing>\w+) and put it in (?P<place>\w+)"),
    re.compile(r"find two (?P<thing>\w+) and put them in (?P<place>\w+)"),
    re.compile(r"put (?:some|two|an?)(?: clean| hot| cool)? (?P<thing>\w+) (?:in|on) (?P<place>\w+)"),
)
UNSAID = "its place"
"""Stands in a task sentence that leaves the place out."""
_STATED = re.compile(rf"{UNSAID} is the (\w+)")
_NAME = re.compile(r"\ban? (\w+ \d+)")
_TOOLS = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}
# Where a person looks first; whatever is not named comes between the tables and the drawers.
_EASY = "countertop diningtable sidetable coffeetable desk dresser bed shelf sofa stoveburner"
_LATE = "cabinet drawer garbagecan safe laundryhamper"
_STAGES = dict.fromkeys(_EASY.split(), 0) | dict.fromkeys(_LATE.split(), 2)


@dataclass(frozen=True)
class ParsedGoal:
    """What a task sentence asks for, in kinds ("mug", "countertop"), without numbers."""

    thing: str
    """Kind of the wanted object."""
    place: str
    """Kind of the target receptacle, or of the lamp."""


def parse_goal(goal: str) -> ParsedGoal:
    """Reads the task sentence; ConfigError if it has none of the forms of ALFWorld's tasks."""
    for pattern in _GOALS:
        found = pattern.search(goal.lower())
        if found:
            return ParsedGoal(found["thing"], found["place"])
    raise ConfigError(
        f"Cannot read the task sentence {goal!r}; expected one of ALFWorld's, such as 'put a hot apple in fridge.'"
    )


def _kind(name: str) -> str:
    return name.rsplit(" ", 1)[0]


class Explorer:
    """Plays any of the six task types from observations and admissible commands alone.

    Args:
        task_type: Full or short name of the task type.
        goal: The task sentence; ConfigError if it is not one of ALFWorld's.
        seed: Shuffles the order of search among equally likely places; None keeps the order in which the first
            observation lists them.
        skip_essential: Leaves out what makes the task succeed, and then waits: heating, cooling or cleaning is
            skipped; with look and pick the object is only picked up; with pick2 one is brought instead of two.
        skill: What a skill says. Where the task sentence leaves the place out, it is read there; if it is not there, or
            not in this house, kinds of receptacle are tried in random order until one takes the object.

    Attributes:
        thought: Why the last command was given, in a few words: "find mug for cabinet", "done".

    Examples:
        >>> explorer = Explorer("heat", "put a hot mug in cabinet.")
        >>> explorer.act(observation, info["admissible_commands"])
        'go to countertop 1'
    """

    def __init__(
        self, task_type: str, goal: str, *, seed: int | None = 0, skip_essential: bool = False, skill: str = ""
    ) -> None:
        self.task = SHORT_NAMES[resolve_task_types(task_type)[0]]
        self.goal, self._unsaid, stated = parse_goal(goal), UNSAID in goal, _STATED.search(skill)
        if self._unsaid and stated:
            self.goal = replace(self.goal, place=stated[1])
        self._guesses: list[str] = []
        """Kinds of receptacle to try where no known one is the place, the next one last."""
        self.skip_essential = skip_essential
        self.thought = ""
        self._rng = None if seed is None else np.random.default_rng(seed)
        self._contents: dict[str, list[str]] = {}
        self._order: list[str] = []
        self._here: str | None = None
        self._held: str | None = None
        self._before: tuple[str | None, str | None] = (None, None)
        """Where it stood and what it held when it was last asked; what it means to do has moved the fields above."""
        self._treated: set[str] = set()
        self._placed: list[str] = []
        """Objects of the wanted kind at the target, brought or found there: they are left where they are."""
        self._target: str | None = None

    def act(self, observation: str, admissible_commands: Sequence[str]) -> str:
        """Gives the next command, from the last answer (at first the first observation) and what is possible now."""
        self._read(observation, admissible_commands)
        self._before = (self._here, self._held)
        if self._done():
            return self._say("done", "look")
        if self._held is None:
            return self._fetch(admissible_commands)
        return self._bring(self._held, admissible_commands)

    def mistake(self, commands: Sequence[str], rng: np.random.Generator) -> tuple[str, str] | None:
        """Thinks that the wanted thing lies where it does not: an imitator that fell for it takes it again and again.

        Returns:
            The thought and the impossible command; None with full hands, before any place was visited, and where the
            command would be possible.
        """
        here, held = self._before
        command = f"take {self.goal.thing} {int(rng.integers(1, 4))} from {here}"
        if here is None or held is not None or command in commands:
            return None
        return self._aim("take"), command

    # What has been seen ------------------------------------------------------------------------------------------

    def _read(self, observation: str, commands: Sequence[str]) -> None:
        if not self._order:
            # One cannot go where one is, but examine it.
            places = [c.partition(" ")[2].removeprefix("to ") for c in commands if c.startswith(("go to ", "examine "))]
            self._order = self._search_order(places, observation)
            self._guess(observation)
        here = self._here
        answer = observation.rstrip().rpartition("\n")[2]  # a skill or a history may stand in front
        if here is not None and "you see" in answer:
            self._contents[here] = _NAME.findall(answer.split("you see", 1)[1])
        elif here is not None and f"{here} is closed" in answer:
            self._contents.pop(here, None)

    def _search_order(self, places: Collection[str], observation: str) -> list[str]:
        mentioned = {name: position for position, name in enumerate(_NAME.findall(observation))}
        listed = sorted(places, key=lambda place: (mentioned.get(place, len(mentioned)), place))
        if self._rng is not None:
            listed = [listed[index] for index in self._rng.permutation(len(listed))]
        return sorted(listed, key=lambda place: _STAGES.get(_kind(place), 1))

    def _guess(self, observation: str) -> None:
        if self._unsaid and not any(map(self._is_target, self._order)):
            kinds = sorted(set(map(_kind, self._order)))
            drawn = np.random.default_rng(zlib.crc32(observation.encode())).permutation(len(kinds))
            self._guesses = [kinds[index] for index in drawn]

    def _known(self, kind: str) -> list[tuple[str, str]]:
        """Objects of a kind seen so far and where, in the order of search."""
        return [(name, place) for place in self._order for name in self._contents.get(place, ()) if _kind(name) == kind]

    def _is_target(self, place: str) -> bool:
        return _kind(place) in (self.goal.place, self.goal.place + "basin")

    # Steps -------------------------------------------------------------------------------------------------------

    def _aim(self, verb: str) -> str:
        return f"{verb} {self.goal.thing} for {self.goal.place}"

    def _say(self, thought: str, command: str) -> str:
        self.thought = thought
        return command

    def _done(self) -> bool:
        enough = 2 if self.task == "pick2" and not self.skip_essential else 1
        stopped = self.skip_essential and self.task in ("pick", "look") and self._held is not None
        return stopped or len(self._placed) >= enough

    def _fetch(self, commands: Sequence[str]) -> str:
        for name, place in self._known(self.goal.thing):
            there = self.task in ("pick", "pick2") and self._is_target(place)
            if not there and name not in self._placed:
                return self._take(name, place, commands)
        return self._search(self._aim("find"), commands)

    def _take(self, name: str, place: str, commands: Sequence[str]) -> str:
        command = f"take {name} from {place}"
        if command in commands:
            self._held = name
            self._contents[place].remove(name)
            return self._say(self._aim("take"), command)
        return self._approach(self._aim("take"), place, commands)

    def _approach(self, thought: str, place: str, commands: Sequence[str]) -> str:
        if self._here == place and f"open {place}" in commands:
            return self._say(thought, f"open {place}")
        self._here = place
        # Receptacles may share a location; one cannot go where one already stands.
        verb = "go to" if f"go to {place}" in commands else "examine"
        return self._say(thought, f"{verb} {place}")

    def _search(self, thought: str, commands: Sequence[str]) -> str:
        if self._here is not None and self._here not in self._contents and f"open {self._here}" in commands:
            return self._say(thought, f"open {self._here}")
        for place in self._order:
            if place not in self._contents:
                return self._approach(thought, place, commands)
        if not self._order:
            return self._say(thought, "look")
        self._contents.clear()
        return self._approach(thought, self._order[0], commands)

    def _bring(self, held: str, commands: Sequence[str]) -> str:
        if self.task == "look":
            return self._use_lamp(commands)
        if self.task in _TOOLS and held not in self._treated and not self.skip_essential:
            return self._treat(held, commands)
        return self._put(held, commands)

    def _use_lamp(self, commands: Sequence[str]) -> str:
        lamp = self.goal.place
        known = self._known(lamp)
        if not known:
            return self._search(f"find {lamp}", commands)
        name, place = known[0]
        if f"use {name}" in commands and self._here == place:
            return self._say(f"use {lamp}", f"use {name}")
        return self._approach(f"use {lamp}", place, commands)

    def _treat(self, held: str, commands: Sequence[str]) -> str:
        tool = next((place for place in sorted(self._order) if _kind(place) == _TOOLS[self.task]), None)
        thought = self._aim(self.task)
        if tool is None:
            return self._say(thought, "look")
        command = f"{self.task} {held} with {tool}"
        if command in commands:
            self._treated.add(held)
            return self._say(thought, command)
        return self._approach(thought, tool, commands)

    def _put(self, held: str, commands: Sequence[str]) -> str:
        target = self._target = self._target or self._choose_target()
        thought = self._aim("put")
        for command in (f"move {held} to {target}", f"put {held} in/on {target}"):
            if command in commands:
                self._held = None
                self._placed.append(held)
                self._contents.setdefault(target, []).append(held)
                return self._say(thought, command)
        if self._guesses and target == self._here and f"open {target}" not in commands:
            target = self._target = self._choose_target()  # the thing does not go there
        return self._approach(thought, target, commands)

    def _choose_target(self) -> str:
        """A receptacle of the wanted kind: for two objects, one that already holds the first."""
        if self._guesses:
            kind = self._guesses.pop()
            return next(place for place in self._order if _kind(place) == kind)
        targets = [place for place in self._order if self._is_target(place)]
        if not targets:
            return self.goal.place + " 1"
        holding = [
            place for name, place in self._known(self.goal.thing) if place in targets and name not in self._placed
        ]
        if self.task == "pick2" and holding:
            # What lies there already counts as brought: with the one in the hand it makes two.
            self._placed.extend(name for name in self._contents[holding[0]] if _kind(name) == self.goal.thing)
            return holding[0]
        return targets[0]


def demonstrator(info: Mapping[str, Any], errs: bool) -> Explorer:
    """Makes the expert of a demonstration; see `skillc_gym.envs.warm_start.WarmStart`."""
    return Explorer(info["task_type"], info["goal"], seed=None, skip_essential=errs, skill=info.get("skill_text", ""))


class CarelessExplorers:
    """A policy for paired rollouts that needs its skill: without it, explorers leave out a task's essential step.

    It stands where an example would ask a language model.

    Examples:
        >>> for group in collect(groups, CarelessExplorers()):
        ...     print([episode.won for episode in group.with_skill], [episode.won for episode in group.without_skill])
        [True, True] [False, False]
    """

    def __init__(self) -> None:
        self._explorers: dict[int, Explorer] = {}

    def __call__(self, observations: Sequence[str], infos: Sequence[Mapping[str, Any]]) -> list[str]:
        """Gives a command for every member that needs one."""
        return [self._command(text, info) for text, info in zip(observations, infos, strict=True)]

    def _command(self, observation: str, info: Mapping[str, Any]) -> str:
        member, text = info["member"], observation.removeprefix(info["skill_text"])
        if "Your task is to:" in text or member not in self._explorers:
            careless, told = not info["condition"], info["skill_text"]
            explorer = Explorer(info["task_type"], info["goal"], skip_essential=careless, skill=told)
            self._explorers[member] = explorer
        return self._explorers[member].act(text, info["admissible_commands"])

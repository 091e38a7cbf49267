"""Which difficulty to practise: levels that open one after the other, and chances that follow success."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from skillc_gym.errors import CheckpointError, ConfigError, require_name
from skillc_gym.values import require_whole

_VERSION = 1

Levels = Mapping[str, Mapping[float, Sequence[str]]]


@dataclass(frozen=True)
class DifficultyOptions:
    """How a curriculum of difficulties decides.

    Attributes:
        target: The success rate to practise at, in (0, 1).
        width: How far from it a level still comes often, in (0, 1).
        decay: Weight of the past in the running means, in (0, 1); the first episodes count evenly.
        floor: Share of the chance that is spread evenly over the open levels, in [0, 1).
        min_episodes: Episodes a level must have seen before the next one opens.

    Raises:
        ConfigError: If an option is out of range.
    """

    target: float = 0.5
    width: float = 0.2
    decay: float = 0.9
    floor: float = 0.1
    min_episodes: int = 10

    def __post_init__(self) -> None:
        for name in ("target", "width", "decay", "floor"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 <= value < 1 or (value == 0 and name != "floor"):
                raise ConfigError(f"DifficultyCurriculum takes {name} between 0 and 1; got {value!r}.")
        require_whole("DifficultyCurriculum's min_episodes", self.min_episodes, 1)


@dataclass
class Record:
    """How one task type went at one level: the running mean of success is NaN before the first episode."""

    episodes: int = 0
    success: float = math.nan

    def add(self, success: float, decay: float) -> None:
        """Takes in one episode."""
        self.episodes += 1
        share = max(1 / self.episodes, 1 - decay)
        self.success = success if self.episodes == 1 else self.success + share * (success - self.success)


def _recorded(episodes: Any, success: Any, *_slower: Any) -> Record:
    """A record as `state_dict` wrote it; older ones have a slower mean behind the two."""
    record = Record(int(episodes), math.nan if success is None else float(success))
    if record.episodes and not 0 <= record.success <= 1:
        raise ValueError(f"a success of {success}")
    return record


class DifficultyCurriculum:
    """Proposes tasks whose difficulty suits the agent, by task type.

    The levels of a type open one at a time, the easiest first: the next one opens once the hardest open level has seen
    ``min_episodes`` episodes and succeeds at ``target`` or better. Among the open levels the chance of a level is in
    proportion to ``exp(-((success - target) / width)^2 / 2)``, so that what succeeds about as often as the target comes
    most (levels without an episode count as on target). A share ``floor`` of the chance is spread evenly over the open
    levels. Types come equally often. The object is pure state: it draws from the generator it is given, and
    `state_dict` has everything it has learnt.

    Args:
        tasks: Task type -> difficulty -> names of tasks, as `of` finds them.
        **options: The fields of `DifficultyOptions`.

    Raises:
        ConfigError: If an option is out of range, a level has no tasks, or a task stands at two levels.

    Examples:
        >>> curriculum = DifficultyCurriculum({"heat": {0.0: ["easy"], 1.0: ["hard"]}}, min_episodes=1)
        >>> curriculum.propose(2, np.random.default_rng(0))
        ['easy', 'easy']
        >>> curriculum.update("easy", 1.0)
        >>> curriculum.open_levels("heat")
        (0.0, 1.0)
    """

    def __init__(self, tasks: Levels, **options: Any) -> None:
        self.options = DifficultyOptions(**options)
        self.tasks = {kind: {level: tuple(found[level]) for level in sorted(found)} for kind, found in tasks.items()}
        if not self.tasks or not all(found and all(found.values()) for found in self.tasks.values()):
            raise ConfigError(
                f"DifficultyCurriculum needs tasks at every level of every type; got {dict(tasks)!r:.200}."
            )
        self._where = {
            name: (kind, level)
            for kind, found in self.tasks.items()
            for level, names in found.items()
            for name in names
        }
        if len(self._where) < sum(len({*names}) for found in self.tasks.values() for names in found.values()):
            raise ConfigError(f"DifficultyCurriculum needs each task at one level; got {dict(tasks)!r:.200}.")
        self.records = {kind: [Record() for _ in found] for kind, found in self.tasks.items()}
        self._open = dict.fromkeys(self.tasks, 1)

    @classmethod
    def of(cls, env: gymnasium.Env[Any, Any], **options: Any) -> DifficultyCurriculum:
        """A curriculum over the tasks of an environment that tells their difficulty; ConfigError if one has none."""
        core: Any = env.unwrapped
        tasks: dict[str, dict[float, list[str]]] = {}
        for name in core.task_ids:
            level = core.difficulty_of(name)
            if level is None:
                raise ConfigError(
                    f"The task {name!r} has no difficulty; make the tasks with data='generated' and, for instance, "
                    "generator={'difficulty': [0, 0.25, 0.5, 0.75, 1]}."
                )
            tasks.setdefault(core.task_type_of(name), {}).setdefault(level, []).append(name)
        return cls(tasks, **options)

    @property
    def task_types(self) -> tuple[str, ...]:
        """The task types, in their order."""
        return tuple(self.tasks)

    def __contains__(self, task_id: str) -> bool:
        """Whether a task is one of the curriculum's."""
        return task_id in self._where

    def levels(self, task_type: str) -> tuple[float, ...]:
        """The difficulties of a type, from the easiest on."""
        return tuple(self.tasks[require_name("task type", task_type, self.tasks)])

    def open_levels(self, task_type: str) -> tuple[float, ...]:
        """The difficulties that are open now."""
        return self.levels(task_type)[: self._open[task_type]]

    def chances(self, task_type: str) -> tuple[float, ...]:
        """The chance of every open level of a type; they sum to one."""
        records = self.records[require_name("task type", task_type, self.tasks)][: self._open[task_type]]
        weights = [self._weight(record) for record in records]
        total, floor, even = sum(weights), self.options.floor, 1 / len(records)
        if total <= 0:
            return (even,) * len(records)
        return tuple((1 - floor) * weight / total + floor * even for weight in weights)

    def propose(self, count: int, rng: np.random.Generator) -> list[str]:
        """Draws so many tasks, each of a type drawn evenly and of a level by its chance: three draws for each."""
        return [self._one(*rng.random(3).tolist()) for _ in range(count)]

    def update(self, task_id: str, success: float) -> None:
        """Takes in how an episode of a task went, from 0 to 1; UnknownNameError for a task of another curriculum."""
        require_name("task of the curriculum", task_id, self._where)
        if not 0 <= success <= 1:
            raise ConfigError(f"Success is a number between 0 and 1; got {success!r}.")
        kind, level = self._where[task_id]
        index = self.levels(kind).index(level)
        self.records[kind][index].add(float(success), self.options.decay)
        hardest = self.records[kind][self._open[kind] - 1]
        mastered = hardest.episodes >= self.options.min_episodes and hardest.success >= self.options.target
        self._open[kind] = min(self._open[kind] + mastered, len(self.records[kind]))

    def state_dict(self) -> dict[str, Any]:
        """What was learnt, as JSON can hold it."""
        records = {
            kind: [[record.episodes, record.success if record.episodes else None] for record in records]
            for kind, records in self.records.items()
        }
        levels = {kind: list(self.levels(kind)) for kind in self.tasks}
        return {"version": _VERSION, "levels": levels, "open": dict(self._open), "records": records}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from a `state_dict`; CheckpointError if it is damaged, or of another curriculum's types or levels."""
        try:
            opened = {kind: int(state["open"][kind]) for kind in self.tasks}
            records = {kind: [_recorded(*each) for each in found] for kind, found in state["records"].items()}
            got = {kind: list(map(float, found)) for kind, found in state.get("levels", {}).items()}
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise CheckpointError(f"This is no whole state of a curriculum ({error!r}).") from error
        expected = {kind: list(self.levels(kind)) for kind in self.tasks}
        sizes = [{kind: len(found) for kind, found in each.items()} for each in (records, expected)]
        # Earlier states do not name their levels.
        if state.get("version") != _VERSION or sizes[0] != sizes[1] or (got or expected) != expected:
            raise CheckpointError(
                f"This state is of another curriculum: expected levels {expected}, got {got or sizes[0]}."
            )
        if not all(1 <= opened[kind] <= len(expected[kind]) for kind in opened):
            raise CheckpointError(f"This state is damaged: of the levels {expected} it opens {opened}.")
        self._open, self.records = opened, records

    def _weight(self, record: Record) -> float:
        if record.episodes == 0:
            return 1.0
        return math.exp(-(((record.success - self.options.target) / self.options.width) ** 2) / 2)

    def _one(self, first: float, second: float, third: float) -> str:
        kind = self.task_types[int(first * len(self.tasks))]
        sums = list(itertools.accumulate(self.chances(kind)))
        level = self.open_levels(kind)[min(bisect.bisect_right(sums, second), len(sums) - 1)]
        names = self.tasks[kind][level]
        return names[int(third * len(names))]

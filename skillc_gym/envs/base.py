"""TextTaskEnv: what text environments whose tasks have names have in common."""

from __future__ import annotations

import copy
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple, Self

import gymnasium
from gymnasium.error import ResetNeeded

from skillc_gym.errors import ConfigError, require_name
from skillc_gym.spaces import Unicode, require_text

__all__ = [
    "Info",
    "Outcome",
    "Snapshot",
    "TextTaskEnv",
    "leaves_words",
    "rendered",
    "require_render_mode",
    "reset_needed",
    "task_options",
]

Info = dict[str, Any]
LEFT_OPEN = re.compile(r"<\w+>")
"""Words that a listed command leaves to the agent, as in ``search[<query>]``."""


def leaves_words(command: str, info: Mapping[str, Any]) -> bool:
    """Whether a listed command leaves words to the agent; what ``info`` says that one can click is whole as it is."""
    return bool(LEFT_OPEN.search(command)) and command not in {
        f"click[{label}]" for label in info.get("clickables", ())
    }


_HALF = re.compile("[\ud800-\udfff]")
"""Half a surrogate pair, which cannot be written down."""
Outcome = tuple[str, float, bool, bool]
"""What came of an action: observation, reward, whether the episode has ended, whether the action was admissible."""


def rendered(*modes: str, fps: int = 4) -> dict[str, Any]:
    """Gymnasium's metadata of an environment: its render modes, and the steps per second of a film."""
    return {"render_modes": list(modes), "render_fps": fps}


def require_render_mode(mode: str | None, metadata: Mapping[str, Any]) -> str | None:
    """Returns a render mode of an environment's metadata, or None for none; UnknownNameError for any other."""
    known = metadata["render_modes"]
    return None if mode is None else require_name("render mode", mode, known, "Leave it out for none.")


def task_options(env: gymnasium.Env[Any, Any], options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Reset options as `TextTaskEnv.named_by_id` has them, for wrappers that choose tasks.

    Refuses a task that an environment of named tasks does not have: before a reset draws, or ends an episode.
    """
    core = env.unwrapped
    named = core.named_by_id(options) if isinstance(core, TextTaskEnv) else options
    task_id = (named or {}).get("task_id")
    if task_id is not None and hasattr(core, "task_type_of"):
        if not isinstance(task_id, str):
            raise ConfigError(f"A task is named by its id here, which is a text; got {task_id!r}")
        core.task_type_of(task_id)
    return dict(named or {})


class Snapshot(NamedTuple):
    """An environment's moment: small, immutable and picklable if its ``state`` is.

    The step count of a `TimeLimit` and the random generator that chooses tasks are not part of it, nor is what wrappers
    keep of an episode (its skill, chat, history, potential): go back within an episode, and without such wrappers.
    """

    task_id: str
    state: Any
    action: str | None
    observation: str
    action_valid: bool


class TextTaskEnv(gymnasium.Env[str, str], ABC):
    """A text environment whose tasks have names, as the wrappers, vectors and trainers of the suite take it.

    A subclass sets ``observation_space`` and ``action_space`` (`skillc_gym.spaces.Unicode`) in its constructor and
    gives what is abstract here; seeds, options, infos, snapshots, copies and pickling are done for it.
    `skillc_gym.testing` checks the result.

    ``info`` always has: task_id, task_type, goal, admissible_commands, won (1.0 at a score of exactly 1, else 0.0),
    task_score and action_valid (True at reset).

    Two environments made with the same arguments must behave alike: a pickled environment is made again from them and
    goes back to its moment. The page "My own environment" of the documentation shows one whole.
    """

    goal: str
    """What the task asks for; set by `_start`."""
    _arguments: tuple[tuple[Any, ...], dict[str, Any]]
    _task_id: str = ""
    _task_type: str = ""
    _action: str | None = None
    _observation: str = ""
    _action_valid: bool = True

    action_space: Unicode

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Remembers the arguments, from which a pickled environment is made again, whatever the caller changes."""
        env = super().__new__(cls)
        env._arguments = _containers_copied((args, kwargs))
        return env

    # What a subclass gives.

    @cached_property  # not a property, so that a constructor may set it
    def task_ids(self) -> tuple[str, ...]:
        """The ids of all tasks, sorted: set in the constructor, an attribute of the class, or a property."""
        kind = type(self).__name__
        raise ConfigError(f"{kind} has no task_ids, a sorted tuple of the ids of all tasks: set self.task_ids")

    @abstractmethod
    def task_type_of(self, task_id: str) -> str:
        """Returns a task's type.

        Raises:
            UnknownNameError: There is no such task.
        """

    def identify(self, task_ids: Iterable[str]) -> Info:
        """Returns what identifies tasks besides their names, JSON-able, for a panel's hash: nothing, unless overridden.

        Two environments that give the same for the same task ids play the same tasks.
        """
        return {}

    def difficulty_of(self, task_id: str) -> float | None:
        """Returns how hard a task is, from 0 to 1; None where the environment does not say."""
        return None

    def all_commands(self) -> tuple[str, ...]:
        """Returns every command of any task, sorted, for numbered actions; nothing where they cannot be listed."""
        return ()

    @abstractmethod
    def _start(self, task_id: str) -> str:
        """Begins a task that there is, sets `goal` and returns the first observation.

        Whatever is drawn is drawn from ``self.np_random``.
        """

    @abstractmethod
    def _act(self, action: str) -> Outcome:
        """Carries out an action; whatever the text, it never raises. A too long one arrives as the empty text."""

    @abstractmethod
    def _commands(self) -> list[str]:
        """Returns what can be done now, in a list of its own."""

    @abstractmethod
    def _score(self) -> float:
        """Returns how well the task is done now, in [0, 1]."""

    @abstractmethod
    def _state(self) -> Any:
        """Returns what `_restore_state` needs: a value that later steps leave as it is."""

    @abstractmethod
    def _restore_state(self, state: Any) -> None:
        """Goes to a state of the current task; raises, if at all, before anything has changed."""

    def named_by_id(self, options: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Returns reset options in which ``task_id`` names the task, whatever else may: the same, unless overridden."""
        return options

    def _draw(self) -> str:
        """Chooses a task: evenly, unless overridden."""
        return self.task_ids[int(self.np_random.integers(len(self.task_ids)))]

    def _return_to(self, task_id: str, state: Any) -> None:
        """Begins the task of a snapshot and goes to its state; to override where beginning costs or draws."""
        self._start(task_id)
        self._restore_state(state)

    def _separate(self) -> None:
        """Parts a copy from its original: drops what belongs to the original's episode alone."""

    # What everybody calls.

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, Info]:
        """Starts a task.

        Args:
            seed: Seeds the choice of tasks and whatever else is drawn.
            options: ``{"task_id": ...}`` names the task (in WebShop ``{"session": 3}``, too, as upstream has it);
                without it, the environment's generator chooses one.

        Raises:
            UnknownNameError: If the task id is not one of `task_ids`.
            ConfigError: If there is an option that is not known here.
        """
        named = _task_option(self.named_by_id(options))
        kind = None if named is None else self.task_type_of(named)
        super().reset(seed=seed)
        self._task_id = ""  # whatever raises from here on: the episode before is over
        # Drawn in any case: what else is drawn follows from the seed, whether the task was named or not.
        drawn = self._draw()
        task_id = drawn if named is None else named
        self._task_type = self.task_type_of(task_id) if kind is None else kind
        self._observation = self._start(task_id)
        self._task_id, self._action, self._action_valid = task_id, None, True
        return self._observation, self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, Info]:
        """Carries out an action.

        Args:
            action: Text. What is not admissible gets a text answer and is never an error; neither is a text longer
                than the action space has it or one that no file can hold, both of which count as not admissible.

        Returns:
            observation, reward, terminated, truncated (always False), info.

        Raises:
            InvalidActionError: The action is no text.
        """
        if not self._task_id:
            raise reset_needed()
        if type(action) is not str:
            require_text(action)
        if len(action) > self.action_space.max_length or (not action.isascii() and _HALF.search(action)):
            action = ""
        self._action = action
        self._observation, reward, terminated, self._action_valid = self._act(action)
        return self._observation, reward, terminated, False, self._info()

    def snapshot(self) -> Snapshot:
        """Returns the moment, to come back to with `restore`, in this environment or another one with its tasks."""
        if not self._task_id:
            raise reset_needed()
        return Snapshot(self._task_id, self._state(), self._action, self._observation, self._action_valid)

    def restore(self, snapshot: Snapshot) -> tuple[str, Info]:
        """Goes back to a snapshot.

        Returns:
            The observation and the info of that moment.
        """
        kind = self.task_type_of(snapshot.task_id)
        if self._task_id != snapshot.task_id:
            self._task_id = ""
        self._return_to(snapshot.task_id, snapshot.state)
        self._task_id, _, self._action, self._observation, self._action_valid = snapshot
        self._task_type = kind
        return self._observation, self._info()

    def copy(self) -> Self:
        """Returns another environment with the same tasks, which shares what can be shared; it is not reset yet."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._np_random, other._np_random_seed, other._task_id = None, None, ""
        other.action_space, other.observation_space = _unseeded(self.action_space), _unseeded(self.observation_space)
        other._separate()
        return other

    def _info(self) -> Info:
        score = self._score()
        return {
            "task_id": self._task_id,
            "task_type": self._task_type,
            "goal": self.goal,
            "admissible_commands": self._commands(),
            "won": 1.0 if score == 1.0 else 0.0,
            "task_score": score,
            "action_valid": self._action_valid,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        args, kwargs = self._arguments
        return _make_again, (type(self), args, kwargs, self._moment())

    def __copy__(self) -> Self:
        # Two environments that draw from one generator would disturb each other.
        return copy.deepcopy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        other = self.copy()
        memo[id(self)] = other
        other._go_to(copy.deepcopy(self._moment(), memo))
        return other

    def _moment(self) -> dict[str, Any]:
        """Everything beyond the constructor's arguments: spaces with their generators, the generator, the episode."""
        own = ("spec", "action_space", "observation_space", "_np_random", "_np_random_seed")
        kept = {name: self.__dict__[name] for name in own if name in self.__dict__}
        return {"attributes": kept, "snapshot": self.snapshot() if self._task_id else None}

    def _go_to(self, moment: Mapping[str, Any]) -> None:
        self.__dict__.update(moment["attributes"])  # first: what begins anew may keep the generator
        if moment["snapshot"] is not None:
            drawn = None if self._np_random is None else self._np_random.bit_generator.state
            self.restore(moment["snapshot"])
            if self._np_random is not None and drawn is not None:
                self._np_random.bit_generator.state = drawn


def reset_needed() -> ResetNeeded:
    """The error of what is asked while no task is being played."""
    return ResetNeeded("No task is being played: call reset() first.")


def _containers_copied(value: Any) -> Any:
    if type(value) is dict:
        return {key: _containers_copied(entry) for key, entry in value.items()}
    return type(value)(map(_containers_copied, value)) if type(value) in (list, tuple, set) else value


def _unseeded(space: Any) -> Any:
    """The same space, which draws samples from a generator of its own."""
    other = copy.copy(space)
    other._np_random = None
    return other


def _make_again(
    kind: type[TextTaskEnv], args: tuple[Any, ...], kwargs: Mapping[str, Any], moment: Mapping[str, Any]
) -> TextTaskEnv:
    env = kind(*args, **kwargs)
    env._go_to(moment)
    return env


def _task_option(options: Mapping[str, Any] | None) -> str | None:
    if not options:
        return None
    for name in options:
        if name not in ("task_id", "skill"):
            raise ConfigError(f"Unknown reset option {name!r}; this environment knows 'task_id'.")
    if options.get("skill"):
        raise ConfigError("The option 'skill' needs an environment wrapped in skillc_gym.wrappers.SkillInjection.")
    task_id = options.get("task_id")
    if task_id is not None and not isinstance(task_id, str):
        raise ConfigError(f"The option 'task_id' is a string such as env.unwrapped.task_ids[0]; got {task_id!r}.")
    return None if task_id is None else str(task_id)  # NumPy's texts are no JSON

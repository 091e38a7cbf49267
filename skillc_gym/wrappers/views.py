"""Views for agents that read no chat: numbered commands, words in a vector, a history in text, statistics."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from skillc_gym.envs.base import LEFT_OPEN, leaves_words
from skillc_gym.errors import ConfigError
from skillc_gym.spaces import Unicode, text_space
from skillc_gym.values import require_several, require_whole
from skillc_gym.wrappers.skill_injection import SkillInjection, find_wrapper, require_no_autoreset


class DiscreteCommands(gymnasium.Wrapper[str, Any, str, Any], RecordConstructorArgs):
    """Numbers a fixed list of commands; the action is an index into it.

    ``info["action_mask"]`` (int8 of shape (n,), 1 for admissible) follows Gymnasium's convention;
    :meth:`action_masks` (bool) is what SB3-contrib's MaskablePPO asks for. Choosing a masked command is answered like
    any command that is not admissible. ``info["executed_action"]`` has its text, "" at reset.

    Args:
        env: A text environment whose ``info`` has ``admissible_commands``.
        commands: The commands in the order of their numbers; by default the environment's ``all_commands()``, for which
            ALFWorld loads every task once: name a small game set, or give your own list. Where the environment leaves
            words to the agent (``search[<query>]``), all that fit are admissible.

    Raises:
        ConfigError: The list is empty or repeats itself; at a reset or a step, if it holds such a pattern, or none of
            its commands is admissible while the episode goes on; at a step, if the action is none of their numbers.

    Examples:
        >>> env = DiscreteCommands(gymnasium.make("skillc/ALFWorld-v0", data="generated", task_types="pick",
        ...                                       generator={"games_per_type": 5}))
        >>> observation, info = env.reset(seed=0)
        >>> int(info["action_mask"].sum()) == len(info["admissible_commands"])
        True
    """

    def __init__(self, env: gymnasium.Env[str, Any], commands: Iterable[str] | None = None) -> None:
        require_several("commands", commands)
        given = None if commands is None else tuple(commands)
        RecordConstructorArgs.__init__(self, commands=given)
        gymnasium.Wrapper.__init__(self, env)
        self.commands: tuple[str, ...] = getattr(env.unwrapped, "all_commands", tuple)() if given is None else given
        if not self.commands or len(set(self.commands)) < len(self.commands):
            raise ConfigError(
                f"DiscreteCommands needs different commands, at least one; got {len(self.commands)}. {env} does not "
                "list its own where these are none: give DiscreteCommands(env, commands=[...])"
            )
        self._index = {command: index for index, command in enumerate(self.commands)}
        self._mask = np.zeros(len(self.commands), np.int8)
        self.action_space = Discrete(len(self.commands))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Starts an episode; ``info`` gains ``action_mask``."""
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, self._masked(info, "", ended=False)

    def step(self, action: int) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Carries out the command of that number."""
        command = self.commands[require_whole("An action", action, 0, len(self.commands) - 1)]
        observation, reward, terminated, truncated, info = self.env.step(command)
        return observation, reward, terminated, truncated, self._masked(info, command, terminated or truncated)

    def action_masks(self) -> NDArray[np.bool_]:
        """Which commands are admissible now: bool of shape (n,)."""
        return self._mask.astype(bool)

    def _masked(self, info: dict[str, Any], executed: str, ended: bool) -> dict[str, Any]:
        self._mask = np.zeros(len(self.commands), np.int8)
        listed = info["admissible_commands"]
        self._mask[[self._index[name] for name in listed if name in self._index]] = 1
        for pattern in (name for name in listed if leaves_words(name, info)):
            if pattern in self._index:
                raise ConfigError(f"DiscreteCommands needs whole commands, and {pattern!r} leaves words to the agent")
            left = LEFT_OPEN.split(pattern, maxsplit=1)
            self._mask[[name.startswith(left[0]) and name.endswith(left[-1]) for name in self.commands]] = 1
        if not ended and not self._mask.any():
            raise ConfigError(f"None of the {len(self.commands)} commands is admissible in {info.get('task_id')!r}")
        return {**info, "action_mask": self._mask.copy(), "executed_action": executed}


_WORD = re.compile(r"[a-z]+ \d+|[a-z]+")


class WordPresence(gymnasium.Wrapper[Any, Any, str, Any], RecordConstructorArgs):
    """Turns text into float32 of shape (n,): 1 where a word occurs, else 0. A name with its number is one word.

    Without ``words``, they are those of the numbered commands of a :class:`DiscreteCommands` further in, else of every
    command that the environment's tasks have.
    """

    def __init__(self, env: gymnasium.Env[str, Any], words: Iterable[str] | None = None) -> None:
        require_several("words", words)
        given = None if words is None else tuple(dict.fromkeys(word.lower() for word in words))
        if odd := [word for word in given or () if not _WORD.fullmatch(word)]:
            raise ConfigError(f"WordPresence finds words of a to z, a number behind them or not; got {odd[0]!r}")
        RecordConstructorArgs.__init__(self, words=given)
        gymnasium.Wrapper.__init__(self, env)
        if given is None:
            numbered = find_wrapper(env, DiscreteCommands)
            listed = getattr(env.unwrapped, "all_commands", tuple)() if numbered is None else numbered.commands
        self.words = words_of(listed) if given is None else given
        if not self.words:
            raise ConfigError("WordPresence needs at least one word: give WordPresence(env, words=[...])")
        self._index = {word: index for index, word in enumerate(self.words)}
        self.observation_space = Box(0.0, 1.0, (len(self.words),), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode; the text that the vector is of stays in ``info["observation"]``."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self.observation(observation), {"observation": observation, **info}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Acts; as :meth:`reset`."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self.observation(observation), reward, terminated, truncated, {"observation": observation, **info}

    def observation(self, observation: str) -> NDArray[np.float32]:
        """The vector of a text."""
        vector = np.zeros(len(self.words), np.float32)
        vector[[self._index[word] for word in _WORD.findall(observation.lower()) if word in self._index]] = 1.0
        return vector


def words_of(texts: Iterable[str]) -> tuple[str, ...]:
    """The words of some texts, sorted: "take mug 1 from desk 2" has "desk 2", "from", "mug 1", "take"."""
    return tuple(sorted({word for text in texts for word in _WORD.findall(text.lower())}))


class TextHistory(gymnasium.Wrapper[str, Any, str, Any], RecordConstructorArgs):
    """Puts the first observation and the last few exchanges in front of the newest observation.

    The first observation is kept because it holds the task. Actions are shown as ``> command``. ``length`` says how
    many past exchanges (observation and action) are shown, 1 or more. A ConfigError around a SkillInjection that writes
    into observations: its text would stand in every exchange.
    """

    def __init__(self, env: gymnasium.Env[str, Any], length: int = 4) -> None:
        length = require_whole("length", length, 1)
        RecordConstructorArgs.__init__(self, length=length)
        gymnasium.Wrapper.__init__(self, env)
        require_no_autoreset(env, "TextHistory")
        injection = find_wrapper(env, SkillInjection)
        if injection is not None and injection.where == "observation":
            raise ConfigError(
                f"TextHistory stands around the SkillInjection of {env}, whose text every exchange would repeat; put "
                "it inside: SkillInjection(TextHistory(env)), or a function that makes TextHistory(env) for a vector"
            )
        space = text_space(env, "observation_space", "TextHistory")
        room = (length + 2) * (space.max_length + 1) + length * _ROOM_FOR_ACTION
        self.observation_space = Unicode(room, min_length=space.min_length)
        self._first = self._last = ""
        self._exchanges: deque[str] = deque(maxlen=length)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Starts an episode; the first observation is unchanged."""
        self._first, info = self.env.reset(seed=seed, options=options)
        self._last = ""
        self._exchanges.clear()
        return self._first, info

    def step(self, action: Any) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Acts; the observation is the history and what is new."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        # A wrapper further in may number the commands; one of a user's may not say which was carried out.
        shown = info.get("executed_action")  # "" for a reply in which no command was found
        if shown is None:
            shown = action if isinstance(action, str) else str(self.env.get_wrapper_attr("commands")[int(action)])
        # Halves of surrogate pairs, which no file or model can take, are shown as "?".
        shown = shown[: _ROOM_FOR_ACTION - 4].encode("utf-8", "replace").decode()
        self._exchanges.append("\n".join(part for part in (self._last, f"> {shown}") if part))
        self._last = observation
        return "\n".join([self._first, *self._exchanges, observation]), reward, terminated, truncated, info


_ROOM_FOR_ACTION = 4_100


class TypeStatistics(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Counts finished episodes by task type and condition, the latest ``window`` of each kind; changes nothing else."""

    def __init__(self, env: gymnasium.Env[Any, Any], window: int = 100) -> None:
        window = require_whole("window", window, 1)
        RecordConstructorArgs.__init__(self, window=window)
        gymnasium.Wrapper.__init__(self, env)
        require_no_autoreset(env, "TypeStatistics")
        self._episodes: dict[tuple[str, int], deque[tuple[float, int]]] = defaultdict(partial(deque, maxlen=window))
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode; one that was not finished is not counted."""
        begun = self.env.reset(seed=seed, options=options)
        self._steps = 0  # not before: a refused reset leaves the episode under way
        return begun

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Acts; counts the episode when it ends."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._steps += 1
        if terminated or truncated:
            kind = (str(info["task_type"]), int(info.get("condition", 0)))
            self._episodes[kind].append((float(info["won"]), self._steps))
        return observation, reward, terminated, truncated, info

    def by_type(self) -> dict[tuple[str, int], dict[str, float]]:
        """Per (task type, condition): ``episodes``, ``success`` (rate) and ``steps`` (mean length)."""
        return {
            kind: {
                "episodes": float(len(ended)),
                "success": sum(won for won, _ in ended) / len(ended),
                "steps": sum(steps for _, steps in ended) / len(ended),
            }
            for kind, ended in sorted(self._episodes.items())
        }

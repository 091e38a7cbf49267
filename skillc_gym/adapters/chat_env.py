"""ChatEnv: one episode as a chat, from which every adapter is made, and rows that say which episodes to play."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded

from skillc_gym.chat import ChatFormat, Message
from skillc_gym.envs.base import task_options
from skillc_gym.envs.registry import env_spec, make_env
from skillc_gym.episodes import Episode, EpisodeRecorder
from skillc_gym.errors import ConfigError, SkillCError
from skillc_gym.values import require_several, require_switch, require_whole
from skillc_gym.wrappers import ActionFormat, ChatPrompt, SkillInjection


@dataclass(frozen=True)
class EpisodeRequest:
    """One episode to play."""

    task_id: str
    seed: int
    """Seed of the environment; equal within a group."""
    condition: int
    """1 with the skill in the prompt, 0 without."""
    group_id: int
    """Number of the group; its episodes share task and seed."""

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> EpisodeRequest:
        """Reads a request from a row that may have other columns too; ConfigError if one is missing or not its type."""
        try:
            numbers = [_whole(row[name]) for name in ("seed", "condition", "group_id")]
            return cls(str(row["task_id"]), *numbers)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ConfigError(
                f"A row needs task_id (text), seed, condition and group_id (integers); got {dict(row)!r:.200}. "
                "Make rows with paired_requests(...)"
            ) from error

    def to_row(self) -> dict[str, Any]:
        """The request as JSON-able columns."""
        return asdict(self)


def _whole(value: Any) -> int:
    """A whole number, also as 3.0 or "3", as tables have it."""
    number = int(value)
    if number != value and not isinstance(value, str):
        raise ValueError(f"{value!r} is no whole number")
    return number


def paired_requests(
    task_ids: Iterable[str], *, seed: int = 0, group_size: int = 2, n_plus: int | None = None
) -> list[EpisodeRequest]:
    """One group of episodes after the other, one per task: first ``n_plus`` with the skill, then those without.

    Args:
        task_ids: The tasks; a task named twice is played from another seed the second time.
        seed: With a group's number it decides the group's seed (31 bits).
        group_size: Episodes per group.
        n_plus: How many of them see the skill; half of them by default.

    Returns:
        ``len(task_ids) * group_size`` requests, group by group.

    Raises:
        ConfigError: A group without members, or more with the skill than there are.
    """
    require_several("task_ids", task_ids)
    require_whole("group_size", group_size, 1)
    require_whole("seed", seed, 0)
    with_skill = group_size // 2 if n_plus is None else require_whole("n_plus", n_plus, 0, group_size)
    return [
        EpisodeRequest(task_id, _group_seed(seed, group), int(member < with_skill), group)
        for group, task_id in enumerate(task_ids)
        for member in range(group_size)
    ]


def _group_seed(seed: int, group: int) -> int:
    # Environments take seeds of 31 bits.
    return int(np.random.SeedSequence((seed, group)).generate_state(1)[0] >> 1)


EPISODE_OVER = "The episode is over."
"""What adapters answer an agent that acts after the end; it changes nothing."""


@dataclass(frozen=True)
class ChatStep:
    """What came of one reply."""

    messages: list[Message]
    """What the agent reads next: one user message; its words count at the end of an episode too."""
    reward: float
    terminated: bool
    """The environment ended the episode."""
    truncated: bool
    """A step limit ended it."""
    info: dict[str, Any]

    @property
    def done(self) -> bool:
        """Whether the episode is over, for whatever reason."""
        return self.terminated or self.truncated


class ChatEnv:
    """Plays one episode after another, in messages.

    Args:
        env: Short name, id or ``module:id`` of an environment.
        library: Skill library by name or path; by default the environment's own, if it has one.
        chat: The wording of the prompts: a name, a format or its ``to_dict()``. Must be of the conversation form.
        tags: Replies are ``<think>...</think><action>...</action>``; False for bare commands, as a tool call brings
            them, and prompts that say nothing on the form of replies.
        **env_kwargs: Arguments of the environment.

    Raises:
        ConfigError: The wording is of the window form, which rewrites what was said; or the environment cannot be made.

    Examples:
        >>> env = ChatEnv("alfworld", data="generated")
        >>> [message["role"] for message in env.reset(env.task_ids[0], seed=0, condition=1)]
        ['system', 'user']
        >>> env.step("<think>Look around.</think><action>look</action>").reward
        0.0
    """

    def __init__(
        self,
        env: str = "alfworld",
        *,
        library: str | None = None,
        chat: ChatFormat | Mapping[str, Any] | str = "default",
        tags: bool = True,
        **env_kwargs: Any,
    ) -> None:
        spec = env_spec(env)
        chat_format = _chat_format(spec.chat_format(chat) if isinstance(chat, str) else chat, tags)
        layers: gymnasium.Env[Any, Any] = make_env(spec.id, **env_kwargs)
        library = library or spec.library
        if library:
            layers = SkillInjection(layers, library, enabled=False, where="info")
        self._env = ChatPrompt(ActionFormat(layers, tail=chat_format.reply_tail) if tags else layers, chat_format)
        self._switchable = library is not None
        self._recorder: EpisodeRecorder | None = None
        self._seeds: np.random.Generator | None = None
        self._done = True
        self._cut = False

    @property
    def task_ids(self) -> tuple[str, ...]:
        """The tasks there are, sorted."""
        return tuple(getattr(self._env.unwrapped, "task_ids", ()))

    @property
    def done(self) -> bool:
        """Whether there is no episode under way."""
        return self._done

    def reset(
        self, task_id: str | None = None, *, seed: int | None = None, condition: int = 0, group_id: int = 0
    ) -> list[Message]:
        """Starts an episode.

        Args:
            task_id: The task; None lets the seed pick one.
            seed: Seed of the environment, from 0. Without it, as in Gymnasium, it follows from the seed given last, and
                is random if none was; the record tells it.
            condition: 1 puts the skill into the system message.
            group_id: Recorded with the episode.

        Returns:
            The prompt: a system message (unless the wording has none) and the first user message.

        Raises:
            UnknownNameError: There is no such task.
            ConfigError: The skill is asked for where there is no library, ``condition`` is not 0 or 1, the seed is no
                whole number from 0 up, or ``group_id`` is none. The episode under way goes on.
        """
        options: dict[str, Any] = {} if task_id is None else {"task_id": task_id}
        shown, group_id = require_switch("condition", condition), require_whole("group_id", group_id)
        if self._switchable:
            options["skill"] = shown
        elif shown:
            raise ConfigError(
                f"{condition=} asks for a skill, and {self._env.spec} has no library: ChatEnv(library=...)"
            )
        options = task_options(self._env, options)  # refused here, the episode under way and the seeds stay
        before = copy.deepcopy(self._seeds)
        seed = self._seed(seed)
        self.cut()  # whatever raises from here on: the episode before is over
        try:
            observation, info = self._env.reset(seed=seed, options=options or None)
        except SkillCError:
            self._seeds = before
            raise
        self._recorder = EpisodeRecorder(observation, info, seed=seed, group_id=group_id)
        self._done = self._cut = False
        messages: list[Message] = info["messages"]
        return messages

    def _seed(self, seed: int | None) -> int:
        seed = None if seed is None else require_whole("seed", seed, 0)
        if seed is not None or self._seeds is None:
            self._seeds = np.random.default_rng(seed)
        return int(self._seeds.integers(1 << 31)) if seed is None else seed

    def begin(self, request: EpisodeRequest | Mapping[str, Any]) -> list[Message]:
        """Starts the episode that a request, or a row with its columns, asks for."""
        wanted = request if isinstance(request, EpisodeRequest) else EpisodeRequest.from_row(request)
        return self.reset(wanted.task_id, seed=wanted.seed, condition=wanted.condition, group_id=wanted.group_id)

    def step(self, reply: str) -> ChatStep:
        """Carries out a reply; one that makes no sense gets a text answer and costs a step.

        Raises:
            ResetNeeded: No episode is under way.
        """
        if self._recorder is None or self._done:
            raise ResetNeeded("No episode is under way: call reset() first.")
        outcome = self._env.step(reply)
        self._recorder.add(reply, outcome)
        _, reward, terminated, truncated, info = outcome
        self._done = bool(terminated or truncated)
        cut = bool(truncated and not terminated)
        return ChatStep(info["new_messages"], float(reward), bool(terminated), cut, info)

    def cut(self) -> None:
        """Ends an episode that somebody else's limit has cut: it counts as truncated. After its end this is nothing."""
        self._cut, self._done = self._cut or not self._done, True

    def episode(self) -> Episode:
        """The latest episode as played so far; ResetNeeded if none was started."""
        if self._recorder is None:
            raise ResetNeeded("No episode was started: call reset() first.")
        episode = self._recorder.episode()
        return replace(episode, truncated=True) if self._cut else episode

    def record(self) -> dict[str, Any]:
        """The latest episode's identity, provenance and outcome: JSON-able, one level deep.

        Returns:
            ``task_id``, ``task_type``, ``seed``, ``group_id``; ``condition``, ``skill``, ``skill_sha256``; ``won``,
            ``task_score``, ``episode_return``, ``steps``, ``terminated``, ``truncated``, and how many replies were
            ``malformed`` or named an ``inadmissible`` action.
        """
        episode = self.episode()
        named = ("task_id", "task_type", "seed", "group_id", "condition", "skill", "skill_sha256")
        outcome = ("task_score", "episode_return", "terminated", "truncated")
        return {
            **{name: getattr(episode, name) for name in named},
            "won": float(episode.won),
            **{name: getattr(episode, name) for name in outcome},
            "steps": len(episode),
            "malformed": sum(not turn.format_valid for turn in episode.turns),
            "inadmissible": sum(not turn.action_valid for turn in episode.turns),
        }

    def numbers(self) -> dict[str, float]:
        """The outcome in the record, for metrics: ``condition``, ``won``, ``terminated``, ``truncated``, ``steps``."""
        record = self.record()
        return {name: float(record[name]) for name in ("condition", "won", "terminated", "truncated", "steps")}

    def close(self) -> None:
        """Closes the environment; what was played can still be asked for."""
        self._env.close()


def tasks_of(make: Callable[[], ChatEnv]) -> tuple[str, ...]:
    """The tasks of what ``make`` makes; it is closed again."""
    with closing(make()) as env:
        return env.task_ids


def _chat_format(chat: ChatFormat | Mapping[str, Any], tags: bool) -> ChatFormat:
    chat_format = chat if isinstance(chat, ChatFormat) else ChatFormat.from_dict(chat)
    if chat_format.form != "conversation":
        raise ConfigError(f"ChatEnv grows one chat and needs the form 'conversation', got {chat_format.form!r}")
    return chat_format if tags else replace(chat_format, reply="")

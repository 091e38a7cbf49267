"""Plays groups of episodes in words, every episode by itself: none waits for the slow reply of another."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import gymnasium

from skillc_gym.episodes import Episode, EpisodeRecorder
from skillc_gym.wrappers import ActionFormat, ChatPrompt, SkillInjection
from trainers.base import Sampling
from trainers.config import TrainConfig
from trainers.engines.text import ContextFullError, TextEngine, TextRequest
from trainers.evaluation.journal import Journal
from trainers.evaluation.usage import Usage
from trainers.evaluation.waiting import first_error, wait_for
from trainers.rollout.collect import derive_seed
from trainers.session import chat_format

__all__ = ["PlayedEpisode", "TextRollouts", "decisive_settings", "text_env", "text_rollouts"]

Env = gymnasium.Env[str, str]


@dataclass(frozen=True)
class PlayedEpisode:
    """An episode and what it used."""

    episode: Episode
    usage: Usage


@dataclass(frozen=True)
class _Job:
    """One episode to play, with every seed of it."""

    task_id: str
    group: int
    condition: int
    env_seed: int
    reply_seed: int

    def key(self, sampling: Sampling, label: str) -> str:
        """Names the job in the journal, whatever else is played."""
        named = [asdict(self), asdict(sampling), *([label] if label else [])]
        return hashlib.sha256(json.dumps(named).encode()).hexdigest()


class TextRollouts:
    """Plays groups like :class:`trainers.rollout.collect.GroupRollouts`, with the same tasks and seeds, in words.

    Args:
        make_env: Makes an environment with chat prompts; called once per episode under way.
        engine: Answers.
        max_reply_tokens: Longest reply.
        max_parallel: Most episodes under way.
        switchable: Whether the environment has skills to switch.
        journal: Where finished episodes are kept, and found again; None for nowhere.
        label: Sets episodes apart in the journal that are asked for alike, but shown other things.
    """

    def __init__(
        self,
        make_env: Callable[[], Env],
        engine: TextEngine,
        *,
        max_reply_tokens: int = 512,
        max_parallel: int = 32,
        switchable: bool = True,
        journal: Journal | None = None,
        label: str = "",
    ) -> None:
        self.engine = engine
        self.on_progress: Callable[[int, int], object] | None = None
        self._make_env = make_env
        self._max_reply_tokens, self._max_parallel = max_reply_tokens, max_parallel
        self._switchable, self._journal, self._label = switchable, journal, label
        self._played: list[PlayedEpisode] = []

    def collect(
        self,
        task_ids: Sequence[str],
        n_plus: Sequence[int],
        group_size: int,
        *,
        seed: int,
        sampling: Sampling,
        numbers: Sequence[int] | None = None,
        first_attempt: int = 0,
    ) -> list[PlayedEpisode]:
        """Plays one group per task to its end; works in a notebook's event loop too.

        Args:
            task_ids: The task of each group.
            n_plus: How many members of each group see the skill: the first ones.
            group_size: Members per group.
            seed: With the group's number it decides the environment's seed, with the member's number within its
                condition and the turn the seed of each reply.
            sampling: Temperature, or greedy.
            numbers: The groups' numbers, where this is a part of a larger collection; 0, 1, ... otherwise.
            first_attempt: As of the rollouts in tokens.

        Returns:
            Results in the order of the tasks, then by member.

        Raises:
            ServerError: The engine gave up; finished episodes are in the journal.
        """
        numbers = range(len(task_ids)) if numbers is None else numbers
        jobs = list(_jobs(zip(numbers, task_ids, n_plus, strict=True), group_size, seed, first_attempt))
        played = wait_for(self._collect(jobs, sampling))
        self._played += played
        return played

    @property
    def used(self) -> list[tuple[int, Usage]]:
        """Condition and usage of every episode so far."""
        return [(played.episode.condition, played.usage) for played in self._played]

    def close(self) -> None:
        """Nothing is left open after :meth:`collect`."""

    async def _collect(self, jobs: Sequence[_Job], sampling: Sampling) -> list[PlayedEpisode]:
        results: dict[_Job, PlayedEpisode] = {}
        left = iter(jobs)

        async def work() -> None:
            env = self._make_env()
            try:
                for job in left:  # shared: each worker takes the next job
                    results[job] = await self._recorded(env, job, sampling)
                    if self.on_progress is not None:
                        self.on_progress(len(results), len(jobs))
            finally:
                env.close()

        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(min(self._max_parallel, len(jobs))):
                    workers.create_task(work())
        except BaseExceptionGroup as group:
            raise first_error(group) from group
        finally:
            await self.engine.aclose()
        return [results[job] for job in jobs]

    async def _recorded(self, env: Env, job: _Job, sampling: Sampling) -> PlayedEpisode:
        key = job.key(sampling, self._label)
        if self._journal is not None and key in self._journal.entries:
            entry = self._journal.entries[key]
            return PlayedEpisode(Episode.from_dict(entry["episode"]), Usage(**entry["usage"]))
        played = await self._play(env, job, sampling)
        if self._journal is not None:
            self._journal.add(key, {"episode": played.episode.to_dict(), "usage": asdict(played.usage)})
        return played

    async def _play(self, env: Env, job: _Job, sampling: Sampling) -> PlayedEpisode:
        options: dict[str, Any] = {"task_id": job.task_id}
        if self._switchable:
            options["skill"] = bool(job.condition)
        _, info = env.reset(seed=job.env_seed, options=options)
        recorder = EpisodeRecorder(info["observation"], info, seed=job.env_seed, group_id=job.group)
        usage, over = Usage(), False
        while not over:
            try:
                reply = await self.engine.reply(self._request(info["messages"], job, usage.requests, sampling))
            except ContextFullError:
                return PlayedEpisode(replace(recorder.episode(), truncated=True, cut="context"), usage)
            usage.count(reply.prompt_tokens, reply.completion_tokens)
            text = reply.text.strip()
            outcome = env.step(text)
            recorder.add(text, outcome)
            info, over = outcome[4], bool(outcome[2] or outcome[3])
        return PlayedEpisode(recorder.episode(), usage)

    def _request(self, messages: Sequence[Any], job: _Job, turn: int, sampling: Sampling) -> TextRequest:
        temperature = 0.0 if sampling.greedy else sampling.temperature
        return TextRequest(messages, derive_seed(job.reply_seed, turn) % 2**31, self._max_reply_tokens, temperature)


def text_rollouts(
    config: TrainConfig,
    engine: TextEngine,
    *,
    journal: Journal | None = None,
    wrappers: Sequence[Callable[[Env], Env]] = (),
    label: str = "",
) -> TextRollouts:
    """The configured environment, played by an engine.

    Args:
        config: The settings.
        engine: Answers.
        journal: Where finished episodes are kept; None for nowhere.
        wrappers: Put around the environment with its skills, inside the reading of replies.
        label: As of :class:`TextRollouts`.
    """
    return TextRollouts(
        partial(text_env, config, wrappers),
        engine,
        max_reply_tokens=config.max_reply_tokens,
        max_parallel=config.max_parallel,
        switchable=config.skill_library is not None,
        journal=journal,
        label=label,
    )


def text_env(config: TrainConfig, wrappers: Sequence[Callable[[Env], Env]] = ()) -> Env:
    """The configured environment with the switch, the format of replies and chat prompts."""
    env: Env = gymnasium.make(config.env_id, **config.env_kwargs)
    if config.skill_library is not None:
        env = SkillInjection(env, library=config.skill_library, enabled=False, where="info", grade=config.skill_grade)
    for wrapper in wrappers:
        env = wrapper(env)
    return ChatPrompt(ActionFormat(env, require_think=config.require_think), chat_format=chat_format(config))


def decisive_settings(config: TrainConfig) -> dict[str, Any]:
    """The settings that decide what is asked and answered; patience, price and place do not."""
    settings = {name: config.to_json()[name] for name in _DECISIVE}
    options = {name: value for name, value in config.engine_options.items() if name not in _PATIENCE}
    return {**settings, "engine_options": options}


_DECISIVE = (
    *("model", "engine", "env", "data", "split", "task_types", "env_options", "max_episode_steps", "library"),
    "skill_grade",
    *("chat", "form", "chat_options", "require_think", "max_reply_tokens"),
)
_PATIENCE = (
    *("base_url", "key_variable", "timeout", "deadline", "retries", "first_wait", "longest_wait", "stream"),
    *("requests_per_minute", "token_budget", "input_price", "output_price"),
)


def _jobs(groups: Iterable[tuple[int, str, int]], group_size: int, seed: int, first_attempt: int) -> Iterator[_Job]:
    """One job per member of each group, given as its number, its task and how many see the skill."""
    for group, task_id, injected in groups:
        env_seed = derive_seed(seed, group) % 2**31  # environments take seeds of 31 bits
        for member in range(group_size):
            attempt = first_attempt + (member if member < injected else member - injected)
            yield _Job(task_id, group, int(member < injected), env_seed, derive_seed(seed, group, attempt))

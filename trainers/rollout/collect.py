"""Groups of episodes played by an engine: from task ids to token-exact training rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from skillc_gym.episodes import EpisodeRecorder
from skillc_gym.errors import ConfigError
from trainers.engines.types import Engine, Request, Sampling
from trainers.rollout.chat_tokens import ChatTokens
from trainers.rollout.rows import ConversationRows, RowBuilder, WindowRows
from trainers.trajectory import Trajectory

if TYPE_CHECKING:
    from skillc_gym.chat import ChatFormat
    from skillc_gym.vector import PairedVectorEnv

__all__ = ["GroupRollouts", "Sampling", "derive_seed"]


@dataclass
class _Member:
    """An episode in progress."""

    index: int
    group: int
    seed: int
    rows: RowBuilder
    recorder: EpisodeRecorder
    limit: int = 0
    """Longest row: the same room after the first prompt for all members of a group, with the skill and without."""
    prompt: list[int] = field(default_factory=list)
    turn: int = 0
    out_of_context: bool = False

    def finished(self) -> Trajectory:
        episode = self.recorder.episode()
        if self.out_of_context:
            episode = replace(episode, truncated=True, cut="context")
        return Trajectory(episode, self.rows.rows(), self.group)


@dataclass(frozen=True)
class _Plan:
    """What is to be played, and every seed of it."""

    task_ids: tuple[str, ...]
    n_plus: tuple[int, ...]
    numbers: tuple[int, ...]
    group_size: int
    seed: int
    skills: tuple[Any, ...] | None = None

    def group_seed(self, group: int) -> int:
        # Environments take seeds of 31 bits.
        return derive_seed(self.seed, self.numbers[group]) % 2**31

    def member_seed(self, group: int, place: int) -> int:
        """Counts members within their condition, so that pairs of the two conditions share their draws."""
        injected = self.n_plus[group]
        return derive_seed(self.seed, self.numbers[group], place if place < injected else place - injected)


class GroupRollouts:
    """Plays groups of episodes that share a task, some members with the skill and some without.

    Args:
        env_id: A registered environment whose infos follow the suite's contract.
        engine: Generates the replies.
        chat: Turns messages into tokens.
        chat_format: How observations become messages; its form decides between one growing row per episode and one
            row per turn.
        library: Skill library, by name or path; None where no skill is ever injected.
        skill_grade: How much of a skill is shown: "full", "minimal" or "none".
        env_kwargs: Arguments of the environment.
        max_reply_tokens: Longest reply.
        max_context: Longest row; an episode that would exceed it ends, truncated. Members of a group have the same room
            after their first prompts, so that the two conditions are cut alike.
        max_parallel: Most episodes at once; more groups are played in turn, with the same result.
        require_think: Whether a reply without thoughts is ill-formed.
        wrappers: Put around every environment, inside the reading of replies; for reward shaping, for instance.
        on_progress: Called after every turn with the numbers of finished and of all episodes.

    Raises:
        ConfigError: If the limits leave no room for a reply.
    """

    def __init__(
        self,
        env_id: str,
        *,
        engine: Engine,
        chat: ChatTokens,
        chat_format: ChatFormat,
        library: str | None = "alfworld",
        skill_grade: str = "full",
        env_kwargs: Mapping[str, Any] | None = None,
        max_reply_tokens: int = 64,
        max_context: int = 4096,
        max_parallel: int = 128,
        require_think: bool = True,
        wrappers: Sequence[Callable[[Any], Any]] = (),
        on_progress: Callable[[int, int], object] | None = None,
    ) -> None:
        if max_reply_tokens < 1 or max_context <= max_reply_tokens:
            raise ConfigError(
                f"max_context ({max_context}) must exceed max_reply_tokens ({max_reply_tokens}), and both be positive."
            )
        self.env_id = env_id
        self.engine = engine
        self.chat = chat
        self.chat_format = chat_format
        self.library = library
        self.skill_grade = skill_grade
        self.env_kwargs = dict(env_kwargs or {})
        self.max_reply_tokens = max_reply_tokens
        self.max_context = max_context
        self.max_parallel = max_parallel
        self.require_think = require_think
        self.wrappers = tuple(wrappers)
        self.on_progress = on_progress
        self._envs: dict[tuple[int, int], PairedVectorEnv] = {}

    def collect(
        self,
        task_ids: Sequence[str],
        n_plus: Sequence[int],
        group_size: int,
        *,
        seed: int,
        sampling: Sampling,
        numbers: Sequence[int] | None = None,
        skills: Sequence[Any] | None = None,
    ) -> list[Trajectory]:
        """Plays one group per task to its end.

        Args:
            task_ids: The task of each group.
            n_plus: How many members of each group see the skill: the first ones.
            group_size: Members per group.
            seed: With the group's number and the member's number within its condition it determines every draw, so the
                first member with the skill and the first without it draw the same random numbers.
            sampling: How tokens are drawn.
            skills: Per group, what its members see instead of the library's text; as ``skills`` in
                :meth:`skillc_gym.vector.PairedVectorEnv.reset`.
            numbers: The groups' numbers, where this is a part of a larger collection; 0, 1, ... otherwise.

        Returns:
            Trajectories in the order of the tasks, then by member.
        """
        if len(n_plus) != len(task_ids):
            raise ConfigError(f"Every group needs its n_plus: {len(task_ids)} tasks, {len(n_plus)} numbers.")
        numbers = range(len(task_ids)) if numbers is None else numbers
        shown = None if skills is None else tuple(skills)
        plan = _Plan(tuple(task_ids), tuple(int(n) for n in n_plus), tuple(numbers), group_size, seed, shown)
        per_wave = max(1, self.max_parallel // group_size)
        played: list[Trajectory] = []
        for start in range(0, len(task_ids), per_wave):
            played += self._wave(plan, range(start, min(start + per_wave, len(task_ids))), sampling)
        return played

    def close(self) -> None:
        """Closes the environments; they are made again when needed."""
        for env in self._envs.values():
            env.close()
        self._envs.clear()

    def _wave(self, plan: _Plan, groups: range, sampling: Sampling) -> list[Trajectory]:
        env = self._env(len(groups), plan.group_size)
        options: dict[str, Any] = {
            "task_ids": [plan.task_ids[g] for g in groups],
            "n_plus": [plan.n_plus[g] for g in groups],
        }
        if plan.skills is not None:
            options["skills"] = [plan.skills[g] for g in groups]
        env.reset(seed=[plan.group_seed(g) for g in groups], options=options)
        members = [
            self._member(env, plan, group, place, i)
            for i, (group, place) in enumerate((g, m) for g in groups for m in range(plan.group_size))
        ]
        _share_room(members, self.max_context)
        self.engine.reset()
        while ready := self._ready(env, members):
            self._turn(env, ready, sampling)
            if self.on_progress is not None:
                self.on_progress(sum(self._done(env, member) for member in members), len(members))
        self.engine.reset()
        return [member.finished() for member in members]

    def _member(self, env: PairedVectorEnv, plan: _Plan, group: int, place: int, index: int) -> _Member:
        info = env.member_info(index)
        growing = self.chat_format.form == "conversation"
        number = plan.numbers[group]
        return _Member(
            index=index,
            group=number,
            seed=plan.member_seed(group, place),
            rows=(ConversationRows if growing else WindowRows)(self.chat, info["messages"]),
            recorder=EpisodeRecorder(info["observation"], info, seed=plan.group_seed(group), group_id=number),
        )

    def _done(self, env: PairedVectorEnv, member: _Member) -> bool:
        return member.out_of_context or not env.active[member.index]

    def _ready(self, env: PairedVectorEnv, members: Sequence[_Member]) -> list[_Member]:
        """Members that can still act; those whose context is full end here."""
        ready = []
        active = env.active
        for member in members:
            if member.out_of_context or not active[member.index]:
                continue
            member.prompt = member.rows.prompt()
            member.out_of_context = len(member.prompt) >= member.limit
            if not member.out_of_context:
                ready.append(member)
        return ready

    def _turn(self, env: PairedVectorEnv, ready: Sequence[_Member], sampling: Sampling) -> None:
        requests = [
            Request(m.index, m.prompt, m.seed, min(self.max_reply_tokens, m.limit - len(m.prompt)), m.turn)
            for m in ready
        ]
        generations = self.engine.generate(requests, sampling)
        texts = [self.chat.reply_text(generation.token_ids) for generation in generations]
        observations, rewards, terminations, truncations, _ = env.step(
            {member.index: text for member, text in zip(ready, texts, strict=True)}
        )
        for member, generation, text in zip(ready, generations, texts, strict=True):
            i, info = member.index, env.member_info(member.index)
            outcome = (observations[i], rewards[i], bool(terminations[i]), bool(truncations[i]), info)
            member.recorder.add(text, outcome)
            member.turn += 1
            member.rows.reply(generation)
            member.rows.observe(info)
        self.engine.release([member.index for member in ready if self._done(env, member)])

    def _env(self, groups: int, group_size: int) -> PairedVectorEnv:
        key = (groups, group_size)
        if key not in self._envs:
            from skillc_gym.vector import PairedVectorEnv
            from skillc_gym.wrappers import ActionFormat, ChatPrompt

            self._envs[key] = PairedVectorEnv(
                self.env_id,
                groups,
                group_size,
                library=self.library,
                where="info",
                skill_grade=self.skill_grade,
                wrappers=(
                    *self.wrappers,
                    partial(ActionFormat, require_think=self.require_think),
                    partial(ChatPrompt, chat_format=self.chat_format),
                ),
                **self.env_kwargs,
            )
        return self._envs[key]


def _share_room(members: Sequence[_Member], max_context: int) -> None:
    """Gives every member of a group the room that its longest first prompt leaves, so that all are cut alike."""
    longest: dict[int, int] = {}
    lengths = [len(member.rows.prompt()) for member in members]
    for member, length in zip(members, lengths, strict=True):
        longest[member.group] = max(longest.get(member.group, 0), length)
    for member, length in zip(members, lengths, strict=True):
        member.limit = max_context - (longest[member.group] - length)


def derive_seed(*numbers: int) -> int:
    """A 64-bit seed that depends on all of the given non-negative numbers and on their order."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])

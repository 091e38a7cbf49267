"""The rollout loop: which group plays where, and what each member is asked next, whoever answers.

Tokens or words, a model in training, a server, an agent in an evaluation: all episodes are played here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np

from skillc_gym.episodes import EpisodeRecorder
from skillc_gym.vector import PairedVectorEnv
from trainers.base import Sampling, Trajectory
from trainers.engines.random import derive_seed
from trainers.rollout.policies import Conversation, Policy


@dataclass(frozen=True)
class Plan:
    """What a collection plays, and every seed of it: the arguments of :meth:`GroupRollouts.collect`."""

    task_ids: tuple[str, ...]
    n_plus: tuple[int, ...]
    numbers: tuple[int, ...]
    group_size: int
    seed: int
    sampling: Sampling
    skills: tuple[Any, ...] | None = None
    first_attempt: int = 0
    shared_draws: bool = True

    def group_seed(self, group: int) -> int:
        """Seed of a group's task. Environments take seeds of 31 bits."""
        return derive_seed(self.seed, self.numbers[group]) % 2**31

    def member_seed(self, group: int, place: int) -> int:
        """Counts members within their condition, so that pairs share their draws, or else through the group."""
        injected = self.n_plus[group] if self.shared_draws else self.group_size
        attempt = place if place < injected else place - injected
        return derive_seed(self.seed, self.numbers[group], self.first_attempt + attempt)

    def job(self, group: int, place: int) -> dict[str, Any]:
        """What decides a member's episode beside the policy: by it a journal knows the episode again."""
        return {
            "task_id": self.task_ids[group],
            "group": self.numbers[group],
            "condition": int(place < self.n_plus[group]),
            "env_seed": self.group_seed(group),
            "reply_seed": self.member_seed(group, place),
        }


@dataclass(eq=False)
class _Member:
    index: int
    """Its environment's number."""
    group: int
    """Its group's place in the plan."""
    place: int
    """Its own place in the group."""
    key: int
    """Names its conversation; never used again."""
    talk: Conversation
    recorder: EpisodeRecorder
    started: float = field(default_factory=perf_counter)
    turn: int = 0
    done: bool = False
    out_of_context: bool = False


class RolloutLoop:
    """Plays as many episodes at once as there is room for.

    With a policy that streams, a finished member's room is at once the next one's. Otherwise groups play in waves: an
    engine that computes all rows together is slowed down by rows of different lengths. ``vector`` gives environments
    for so many groups, or more, of so many members; ``tell`` is told how many episodes of all are done.
    """

    def __init__(
        self,
        policy: Policy,
        plan: Plan,
        vector: Callable[[int, int], PairedVectorEnv],
        max_parallel: int,
        tell: Callable[[int, int], object] | None,
    ) -> None:
        self.policy, self.plan, self._vector, self._told = policy, plan, vector, tell
        self._streams = self.policy.streams
        self._played: dict[int, dict[int, Trajectory]] = {group: {} for group in range(len(plan.task_ids))}
        self._recall()
        # A group is played, environments and all, as long as one of its members is not known from before.
        self._left = deque(group for group, played in self._played.items() if len(played) < plan.group_size)
        # Members of a group end at different times: their room is others' while their environments wait for the last.
        size = plan.group_size
        fitting = 2 * -(-max_parallel // size) if self._streams else max_parallel // size
        self._places = max(1, min(len(self._left), fitting))
        self._room = max_parallel if self._streams else self._places * size
        self._waiting: deque[Any] = deque()
        self._playing: list[list[_Member]] = [[] for _ in range(self._places)]
        self._members: dict[Hashable, _Member] = {}

    def run(self) -> list[Trajectory]:
        """Plays everything; returns the trajectories in the order of the tasks, then by member."""
        self.policy.play(self._fill, self._answer, self.plan.sampling)
        return [played[place] for played in self._played.values() for place in range(self.plan.group_size)]

    @cached_property
    def _env(self) -> PairedVectorEnv:
        return self._vector(self._places, self.plan.group_size)

    def _recall(self) -> None:
        """Takes over the episodes that the policy remembers from an evaluation that was interrupted."""
        plan = self.plan
        for group, played in self._played.items():
            for place in range(plan.group_size):
                known = self.policy.recall(plan.job(group, place), plan.sampling)
                if known is not None:
                    played[place] = Trajectory(known[0], [], plan.numbers[group], known[1])

    def _answer(self, replies: Sequence[tuple[Any, Any]]) -> list[Any]:
        """Lets members act; returns what is asked next, of them and of the groups that take finished ones' places."""
        spoken = [(self._members[request.key], reply) for request, reply in replies]
        texts = {member.index: member.talk.reply(reply) for member, reply in spoken if reply is not None}
        results = self._env.step(texts) if texts else ()
        for member, reply in spoken:
            if reply is None:
                member.out_of_context = member.done = True
            else:
                self._record(member, texts[member.index], results)
        requests = [request for member, _ in spoken if (request := self._request(member)) is not None]
        self.policy.release([member.key for member, _ in spoken if member.done])
        self._room += len(spoken) - len(requests)
        for member, _ in spoken:
            self._finish(member)
        requests += self._fill()
        if self._told is not None:
            self._told(sum(map(len, self._played.values())), len(self._played) * self.plan.group_size)
        return requests

    def _record(self, member: _Member, text: str, results: tuple[Any, ...]) -> None:
        i, info = member.index, self._env.member_info(member.index)
        observations, rewards, terminations, truncations, _ = results
        outcome = (observations[i], rewards[i], bool(terminations[i]), bool(truncations[i]), info)
        member.recorder.add(text, outcome)
        member.turn += 1
        member.done = bool(terminations[i] or truncations[i])
        member.talk.observe(info)

    def _request(self, member: _Member) -> Any | None:
        """What a member asks of the policy; one whose context is full ends here."""
        if member.done:
            return None
        request = member.talk.request(member.key, member.turn, self._env.member_info(member.index))
        member.out_of_context = member.done = request is None
        return request

    # Groups ------------------------------------------------------------------------------------------------------

    def _fill(self) -> list[Any]:
        """Puts finished groups away, starts others in their places, and lets in the members that there is room for."""
        while True:
            free = [place for place, members in enumerate(self._playing) if all(each.done for each in members)]
            if not free or (not self._streams and len(free) < len(self._playing)):
                break
            for place in free:
                for member in self._playing[place]:
                    self._finish(member)
                    del self._members[member.key]
                self._playing[place] = []
            if not self._left:
                break
            starting = {place: self._left.popleft() for place in free[: len(self._left)]}
            self._waiting += self._start(starting)
        admitted = [self._waiting.popleft() for _ in range(min(self._room, len(self._waiting)))]
        self._room -= len(admitted)
        for request in admitted:
            self._members[request.key].started = perf_counter()
        return admitted

    def _finish(self, member: _Member) -> None:
        played = self._played[member.group]
        if member.done and member.place not in played:
            episode = member.recorder.episode()
            episode = replace(episode, truncated=True, cut="context") if member.out_of_context else episode
            rows, seconds = member.talk.rows(), perf_counter() - member.started
            group = self.plan.numbers[member.group]
            played[member.place] = Trajectory(episode, rows, group, member.talk.usage, seconds)
            self.policy.keep(self.plan.job(member.group, member.place), self.plan.sampling, member.talk, episode)

    def _start(self, groups: dict[int, int]) -> list[Any]:
        self._reset(groups)
        for place, group in groups.items():
            self._playing[place] = self._begin(group, self._env.members(place))
            self._members |= {member.key: member for member in self._playing[place]}
        everyone = (member for place in groups for member in self._playing[place])
        return [request for member in everyone if (request := self._request(member)) is not None]

    def _reset(self, groups: dict[int, int]) -> None:
        plan, places = self.plan, range(self._env.num_groups)
        # Entries of groups that are not reset are ignored.
        chosen = [groups.get(place, next(iter(groups.values()))) for place in places]
        options: dict[str, Any] = {
            "task_ids": [plan.task_ids[group] for group in chosen],
            "n_plus": [plan.n_plus[group] for group in chosen],
            "reset_mask": np.repeat([place in groups for place in places], plan.group_size),
        }
        if plan.skills is not None:
            options["skills"] = [plan.skills[group] for group in chosen]
        self._env.reset(seed=[plan.group_seed(group) for group in chosen], options=options)

    def _begin(self, group: int, indices: Sequence[int]) -> list[_Member]:
        """The members of a group; those that are known from before have ended already."""
        plan = self.plan
        infos = [self._env.member_info(index) for index in indices]
        seeds = [plan.member_seed(group, place) for place in range(plan.group_size)]
        talks = self.policy.begin(infos, seeds, plan.sampling)
        start = {"seed": plan.group_seed(group), "group_id": plan.numbers[group]}
        return [
            _Member(
                index=index,
                group=group,
                place=place,
                key=group * plan.group_size + place,
                talk=talks[place],
                recorder=EpisodeRecorder(infos[place]["observation"], infos[place], **start),
                done=place in self._played[group],
            )
            for place, index in enumerate(indices)
        ]

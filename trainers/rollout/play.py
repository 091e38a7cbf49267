"""A collection in progress: which group plays where, and what each member says next."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from skillc_gym.chat import Message
from skillc_gym.episodes import EpisodeRecorder
from trainers.base import Trajectory
from trainers.engines.types import Engine, Generation, Request, StreamingEngine
from trainers.rollout.chat_tokens import ChatTokens
from trainers.rollout.choices import choices
from trainers.rollout.plan import Plan
from trainers.rollout.rows import ConversationRows, RowBuilder, WindowRows
from trainers.rollout.thoughts import RowsWithoutThoughts

if TYPE_CHECKING:
    from skillc_gym.chat import ChatFormat
    from skillc_gym.vector import PairedVectorEnv

__all__ = ["Play", "Stage"]


class Stage(Protocol):
    """Where groups are played: :class:`trainers.rollout.collect.GroupRollouts`."""

    engine: Engine
    chat: ChatTokens
    chat_format: ChatFormat
    max_reply_tokens: int
    max_context: int
    max_parallel: int
    on_progress: Callable[[int, int], object] | None

    def vector(self, groups: int, group_size: int) -> PairedVectorEnv:
        """The environments of so many groups."""
        ...


@dataclass(eq=False)
class _Member:
    """An episode in progress."""

    index: int
    """Its environment's number."""
    group: int
    """Its group's place in the plan."""
    number: int
    """Its group's number in the larger collection."""
    key: int
    """Names its conversation; never used again."""
    seed: int
    rows: RowBuilder
    recorder: EpisodeRecorder
    limit: int = 0
    """Longest row: the same room after the first prompt for all members of a group, with the skill and without."""
    prompt: list[int] = field(default_factory=list)
    turn: int = 0
    done: bool = False
    out_of_context: bool = False

    def finished(self) -> Trajectory:
        episode = self.recorder.episode()
        if self.out_of_context:
            episode = replace(episode, truncated=True, cut="context")
        return Trajectory(episode, self.rows.rows(), self.number)


class Play:
    """Plays as many episodes at once as there is room for.

    With an engine that streams, a finished member's room is taken at once by the next member, of the same group or of
    the next one. Otherwise groups play in waves: an engine that computes all rows together is slowed down by rows of
    different lengths.

    Args:
        stage: Environments, engine and limits.
        plan: What is to be played.
    """

    def __init__(self, stage: Stage, plan: Plan) -> None:
        self.stage = stage
        self.plan = plan
        self._streams = isinstance(stage.engine, StreamingEngine)
        # Members of a group end at different times: their room is others' while their environments wait for the last.
        fitting = (
            2 * -(-stage.max_parallel // plan.group_size) if self._streams else stage.max_parallel // plan.group_size
        )
        places = max(1, min(len(plan.task_ids), fitting))
        self._room = stage.max_parallel if self._streams else places * plan.group_size
        self._waiting: deque[Request] = deque()
        self._env = stage.vector(places, plan.group_size)
        self._playing: list[list[_Member]] = [[] for _ in range(places)]
        self._members: dict[Hashable, _Member] = {}
        self._begun = 0
        self._played: dict[int, list[Trajectory]] = {}

    def begin(self) -> list[Request]:
        """Starts the first groups; returns what is asked of the engine."""
        return self._fill()

    def answer(self, replies: Sequence[tuple[Request, Generation]]) -> list[Request]:
        """Lets members act; returns what is asked next, of them and of the groups that take finished ones' places."""
        said = [(self._members[request.key], generation) for request, generation in replies]
        texts = [self.stage.chat.reply_text(generation.token_ids) for _, generation in said]
        results = self._env.step({member.index: text for (member, _), text in zip(said, texts, strict=True)})
        for (member, generation), text in zip(said, texts, strict=True):
            self._record(member, generation, text, results)
        requests = [request for member, _ in said if (request := self._request(member)) is not None]
        self.stage.engine.release([member.key for member, _ in said if member.done])
        self._room += len(said) - len(requests)
        requests += self._fill()
        self._tell()
        return requests

    def trajectories(self) -> list[Trajectory]:
        """All of them, in the order of the tasks, then by member."""
        return [each for group in sorted(self._played) for each in self._played[group]]

    def _record(self, member: _Member, generation: Generation, text: str, results: tuple[Any, ...]) -> None:
        i, info = member.index, self._env.member_info(member.index)
        observations, rewards, terminations, truncations, _ = results
        outcome = (observations[i], rewards[i], bool(terminations[i]), bool(truncations[i]), info)
        member.recorder.add(text, outcome)
        member.turn += 1
        member.done = bool(terminations[i] or truncations[i])
        member.rows.reply(generation)
        member.rows.observe(info)

    def _request(self, member: _Member) -> Request | None:
        """What a member asks of the engine; one whose context is full ends here."""
        if member.done:
            return None
        member.prompt = member.rows.prompt()
        member.out_of_context = member.done = len(member.prompt) >= member.limit
        if member.done:
            return None
        room = member.limit - len(member.prompt)
        return Request(
            member.key,
            member.prompt,
            member.seed,
            min(self.stage.max_reply_tokens, room),
            turn=member.turn,
            choices=choices(self.stage.engine, self.stage.chat, self._env.member_info(member.index)),
        )

    # Groups ------------------------------------------------------------------------------------------------------

    def _fill(self) -> list[Request]:
        """Puts away finished groups, starts others in their places, and lets in the members that there is room for."""
        while (free := self._free()) and (self._streams or len(free) == len(self._playing)):
            for place in free:
                self._put_away(place)
            left = range(self._begun, min(self._begun + len(free), len(self.plan.task_ids)))
            if not left:
                break
            self._waiting += self._start(dict(zip(free, left, strict=False)))
        admitted = [self._waiting.popleft() for _ in range(min(self._room, len(self._waiting)))]
        self._room -= len(admitted)
        return admitted

    def _free(self) -> list[int]:
        return [place for place, members in enumerate(self._playing) if all(member.done for member in members)]

    def _put_away(self, place: int) -> None:
        for member in self._playing[place]:
            self._played.setdefault(member.group, []).append(member.finished())
            del self._members[member.key]
        self._playing[place] = []

    def _start(self, groups: dict[int, int]) -> list[Request]:
        """Starts groups of the plan, by the places that they take."""
        self._begun += len(groups)
        self._reset(groups)
        for place, group in groups.items():
            indices = self._env.members(place)
            members = [self._member(group, k, index) for k, index in enumerate(indices)]
            _share_room(members, self.stage.max_context)
            self._playing[place] = members
            self._members |= {member.key: member for member in members}
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

    def _member(self, group: int, place: int, index: int) -> _Member:
        info, plan = self._env.member_info(index), self.plan
        growing = self.stage.chat_format.form == "conversation"
        number, seed = plan.numbers[group], plan.group_seed(group)
        return _Member(
            index=index,
            group=group,
            number=number,
            key=group * plan.group_size + place,
            seed=plan.member_seed(group, place),
            rows=_rows(growing, self.stage.chat, info["messages"]),
            recorder=EpisodeRecorder(info["observation"], info, seed=seed, group_id=number),
        )

    def _tell(self) -> None:
        if self.stage.on_progress is not None:
            done = sum(map(len, self._played.values())) + sum(member.done for member in self._members.values())
            self.stage.on_progress(done, self.plan.episodes)


def _share_room(members: Iterable[_Member], max_context: int) -> None:
    """Gives every member of a group the room that its longest first prompt leaves, so that all are cut alike."""
    lengths = {member: len(member.rows.prompt()) for member in members}
    longest = max(lengths.values())
    for member, length in lengths.items():
        member.limit = max_context - (longest - length)


def _rows(growing: bool, chat: ChatTokens, opening: Sequence[Message]) -> RowBuilder:
    if not growing:
        return WindowRows(chat, opening)
    return RowsWithoutThoughts(chat, opening) if chat.thoughts == "drop" else ConversationRows(chat, opening)

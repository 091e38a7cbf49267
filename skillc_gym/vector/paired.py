"""PairedVectorEnv: groups of episodes of one task, some with the skill and some without."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Text
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array
from numpy.typing import NDArray

from skillc_gym.errors import ConfigError
from skillc_gym.values import require_switch, require_whole
from skillc_gym.vector.columns import InfoColumns, conditions_of, group_columns
from skillc_gym.vector.members import (
    AnyEnv,
    GroupStart,
    ResetOptions,
    StepResult,
    checked_seed,
    group_seeds,
    member_actions,
    member_error,
    member_maker,
    start_group,
    step_at_once,
)
from skillc_gym.wrappers.curricula import ProceduralCurriculum
from skillc_gym.wrappers.skill_injection import SkillInjection, find_wrapper


class PairedVectorEnv(VectorEnv[Any, Any, NDArray[Any]]):
    """Plays ``num_groups`` groups of ``group_size`` episodes in one process.

    The members of a group share task and seed; the first ``n_plus`` of them see the skill (condition 1), the others do
    not (condition 0). Member ``i`` belongs to group ``i // group_size``. A member that has finished is **held** until
    the next reset of its group: same observation, reward 0, both flags False after their one True, its action ignored.
    ``active`` says who needs an action.

    ``infos`` is Gymnasium's dict of arrays, built when it is first looked at; besides the members' own keys it always
    has ``group_id``, ``condition``, ``episode_seed`` and ``held``. :meth:`member_info` gives one member's dict. Members
    may be stepped alone, as soon as each is ready: ``step({i: action})``. Where the environment has an attribute
    ``concurrent_steps``, so many members step at once, each in a thread of its own.

    Args:
        env_or_id: An id, an environment made from one (its whole stack is rebuilt for every member), or a function that
            makes one (called with ``env_kwargs``).
        num_groups: Number of groups.
        group_size: Members per group.
        library: Skill library for a SkillInjection around every member; None for none, or if members bring their own.
        where: Where the SkillInjection puts skills: ``"observation"`` or ``"info"``.
        skill_grade: How much of a skill it shows: ``"full"``, ``"minimal"`` or ``"none"``.
        wrappers: Applied to every member outside the SkillInjection, in this order. Statistics of episodes belong here:
            a wrapper around the vector would count held steps.
        autoreset: Whether a group whose members have all finished starts a new task by itself at the next step. Off,
            it is held until :meth:`reset`, which is what collecting groups to completion wants.
        **env_kwargs: Arguments of the environment.

    Raises:
        ConfigError: Sizes below 1, a grade without a library, an ``autoreset`` that is no switch, or an environment
            that cannot be made again for every member.

    Examples:
        >>> groups = PairedVectorEnv("skillc/ALFWorld-v0", 2, 4, library="alfworld", data="generated")
        >>> observations, infos = groups.reset(seed=0, options={"n_plus": [2, 1]})
        >>> infos["condition"]
        array([1, 1, 0, 0, 1, 0, 0, 0])
    """

    def __init__(
        self,
        env_or_id: str | AnyEnv | Callable[..., AnyEnv],
        num_groups: int,
        group_size: int,
        library: str | os.PathLike[str] | None = None,
        *,
        where: str = "observation",
        skill_grade: str = "full",
        wrappers: Sequence[Callable[[Any], AnyEnv]] = (),
        autoreset: bool = False,
        **env_kwargs: Any,
    ) -> None:
        self.num_groups = num_groups = require_whole("num_groups", num_groups, 1)
        self.group_size = group_size = require_whole("group_size", group_size, 1)
        self._autoreset = require_switch("autoreset", autoreset)
        if library is None and skill_grade != "full":
            raise ConfigError(
                f"{skill_grade=} says how much of a skill is shown, and there is no library; pass library=..., or give "
                "the grade to the members' own SkillInjection"
            )
        wrappers = tuple(wrappers)
        if library is not None:
            injection = partial(SkillInjection, library=library, enabled=False, where=where, grade=skill_grade)
            wrappers = (injection, *wrappers)
        make = member_maker(env_or_id, env_kwargs)
        self.num_envs = num_groups * group_size
        self.envs: list[AnyEnv] = [reduce(lambda env, wrap: wrap(env), wrappers, make()) for _ in range(self.num_envs)]
        if len({id(env.unwrapped) for env in self.envs}) < self.num_envs:
            raise ConfigError("Members share one environment; pass a function that makes a new one at every call")
        curricula = [found.curriculum for env in self.envs if (found := find_wrapper(env, ProceduralCurriculum))]
        if group_size > 1 and len(set(map(id, curricula))) > 1:
            raise ConfigError(
                "Members of a group play one task, and each has a curriculum of its own to choose it; give "
                "ProceduralCurriculum one DifficultyCurriculum for all"
            )
        self._describe()
        self._switchable = find_wrapper(self.envs[0], SkillInjection) is not None
        self._text = isinstance(self.single_observation_space, Text)
        self._at_once: int = getattr(self.envs[0].unwrapped, "concurrent_steps", 1)
        self._n_plus = np.full(num_groups, group_size // 2 if self._switchable else 0)
        self._seeds = np.zeros(num_groups, dtype=np.uint64)
        self._observations: list[Any] = [None] * self.num_envs
        self._infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        self._done = np.ones(self.num_envs, dtype=np.bool_)
        self._held = self._done
        self._lengths, self._returns = [0] * self.num_envs, [0.0] * self.num_envs
        self._failed = np.zeros(self.num_envs, dtype=np.bool_)
        self._started = [False] * num_groups

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which members need an action: bool of shape (num_envs,)."""
        return ~self._done

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Which members raised in a step, so that their episodes have no end: bool of shape (num_envs,)."""
        return self._failed.copy()

    @property
    def n_plus(self) -> NDArray[np.int64]:
        """How many members of each group see the skill: int of shape (num_groups,)."""
        return self._n_plus.copy()

    @property
    def conditions(self) -> NDArray[np.int64]:
        """Condition of every member: int of shape (num_envs,), 1 with the skill."""
        return conditions_of(self._n_plus, self.group_size)

    @property
    def observations(self) -> tuple[Any, ...]:
        """The latest observation of every member."""
        return tuple(self._observations)

    @property
    def episode_lengths(self) -> NDArray[np.int64]:
        """Steps of every member in its episode, held ones not counted."""
        return np.array(self._lengths, dtype=np.int64)

    @property
    def episode_returns(self) -> NDArray[np.float64]:
        """Summed reward of every member in its episode."""
        return np.array(self._returns)

    def members(self, group_id: int) -> range:
        """The members of a group."""
        return range(group_id * self.group_size, (group_id + 1) * self.group_size)

    def member_info(self, member: int) -> dict[str, Any]:
        """The latest info of one member, with its number (``member``) and its group's metadata."""
        group = member // self.group_size
        return {
            **self._infos[member],
            "member": member,
            "group_id": group,
            "condition": int(member % self.group_size < self._n_plus[group]),
            "episode_seed": int(self._seeds[group]),
            "held": bool(self._held[member]),
        }

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts every group, or those that a mask names.

        Args:
            seed: An integer, from which every group's seed is drawn; or the seeds themselves, one per group (or per
                member, equal within a group); or None to go on drawing.
            options: ``task_ids``: one per group (None: the group's seed picks). ``n_plus``: one per group (default: as
                before, at first half of the group). ``skills``: per group another text than the library's for members
                with the skill on, one for all or a list with one per member, see
                :data:`~skillc_gym.wrappers.skill_injection.SkillChoice`. ``reset_mask``: bool per member; whole groups
                only. In the lists, entries of groups that are not reset are ignored.

        Returns:
            observations, infos.

        Raises:
            UnknownNameError: An option or a task id that does not exist.
            ConfigError: A list of another length, an ``n_plus`` out of range, a mask that splits a group.

        Whatever a member raises ends the episodes of all groups that were to be reset: none of them plays before a
        reset has succeeded. Nothing else has changed then, the generator of seeds included.
        """
        asked = ResetOptions(dict(options or {}), self.num_groups, self.group_size, self._switchable)
        wanted = asked.groups()
        if not any(self._started) and not wanted.all():
            raise ConfigError("The first reset must be of all groups; leave reset_mask out")
        tasks = asked.tasks(wanted, self.envs[0].unwrapped)
        n_plus = asked.n_plus(wanted) or self._n_plus.tolist()
        skills = asked.skills(wanted)
        with self._all_or_nothing():
            seeds = self._draw_seeds(seed, whole=bool(wanted.all()))
            starts = list(map(GroupStart, seeds, tasks, n_plus, skills))
            self._start_all({group: starts[group] for group in np.flatnonzero(wanted).tolist()})
        self._held = self._done
        return self._batch(), self._columns()

    def step(self, actions: Sequence[Any] | Mapping[int, Any]) -> StepResult:
        """Steps active members.

        Args:
            actions: One per member, in which those of held members are ignored and may be None; or
                ``{member: action}``, which steps these and leaves the others where they are.

        Returns:
            observations, rewards (float64), terminations, truncations (bool), infos. Members that were not stepped have
            their last observation and info, reward 0 and False flags.

        Raises:
            MemberError: As :meth:`advance` has it. What a member raises in a reset by ``autoreset`` is raised as it is,
                before anybody is stepped; as after a failed :meth:`reset`, these groups need another.
        """
        if waiting := [group for group, started in enumerate(self._started) if not started]:
            raise ResetNeeded(f"Groups {waiting} were not reset, or a member raised in their reset: call reset() first")
        due = member_actions(actions, self._done)
        if self._autoreset:
            self._restart_finished()  # whose members are held, and so not due
        return self.advance(due)

    def advance(self, due: Sequence[tuple[int, Any]]) -> StepResult:
        """Steps the given active members, (member, action), without checks and without autoreset.

        Raises:
            MemberError: Members raised. The others have been stepped all the same, and the error carries what came of
                it; those that raised are held and marked in `failed` until their group is reset.
        """
        self._held = self._done
        # What is shown again of those that are not stepped was no reward of this step.
        self._infos = [{**info, "shaping": 0.0} if info.get("shaping") else info for info in self._infos]
        rewards = np.zeros(self.num_envs)
        terminations, truncations = np.zeros(self.num_envs, np.bool_), np.zeros(self.num_envs, np.bool_)
        raised: dict[int, Exception] = {}
        waited = step_at_once(self.envs, due, self._at_once) if self._at_once > 1 else None
        for place, (member, action) in enumerate(due):
            try:
                outcome = self.envs[member].step(action) if waited is None else waited[place].result()
                observation, reward, terminated, truncated, info = outcome
                reward, info = float(reward), dict(info)
            except Exception as error:  # noqa: BLE001 - it is raised again once everybody has been stepped
                raised[member] = error
                continue
            self._observations[member], self._infos[member], rewards[member] = observation, info, reward
            self._lengths[member] += 1
            self._returns[member] += reward
            if terminated or truncated:
                terminations[member], truncations[member] = terminated, truncated
                self._hold([member])
        result = self._batch(), rewards, terminations, truncations, self._columns()
        if raised:
            self._failed[list(raised)] = True
            self._hold(list(raised))
            raise member_error(raised, result, self._infos, self.group_size) from next(iter(raised.values()))
        return result

    def render(self) -> tuple[Any, ...]:
        """What every member renders; ResetNeeded before the first reset."""
        if not any(self._started):
            raise ResetNeeded("Nothing is being played: call reset() first")
        return tuple(env.render() for env in self.envs)

    def close_extras(self, **kwargs: Any) -> None:
        """Closes every member."""
        for env in self.envs:
            env.close()

    def _describe(self) -> None:
        first = self.envs[0]
        mode = AutoresetMode.NEXT_STEP if self._autoreset else AutoresetMode.DISABLED
        self.metadata = {**first.metadata, "autoreset_mode": mode}
        self.render_mode = first.render_mode
        self.single_observation_space, self.single_action_space = first.observation_space, first.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Puts the generator of seeds back if a member raises in a reset."""
        before, seed = copy.deepcopy(self._np_random), self._np_random_seed
        try:
            yield
        except BaseException:
            self._np_random, self._np_random_seed = before, seed
            raise

    def _draw_seeds(self, seed: Any, *, whole: bool) -> list[int]:
        if not isinstance(seed, Iterable):
            super().reset(seed=None if seed is None else checked_seed(seed))
            drawn: list[int] = self.np_random.integers(2**31, size=self.num_groups).tolist()
            return drawn
        seeds = group_seeds(seed, self.num_groups, self.group_size)
        if whole or self._np_random is None:  # what is drawn later follows from the seeds of the last whole reset
            super().reset(seed=int(np.random.SeedSequence(seeds).generate_state(1)[0]))
        return seeds

    def _start_all(self, episodes: Mapping[int, GroupStart]) -> None:
        """Starts groups: all of them, or none if a member raises."""
        self.closed = False  # members start again after close()
        for group in episodes:
            self._started[group] = False
            self._hold(self.members(group))
        begun = {group: start_group(self.envs, group, start, self._switchable) for group, start in episodes.items()}
        # Infos that were not looked at yet hold these two arrays as they were.
        self._n_plus, self._seeds = self._n_plus.copy(), self._seeds.copy()
        for group, episode in episodes.items():
            span = slice(group * self.group_size, (group + 1) * self.group_size)
            self._observations[span], self._infos[span] = begun[group]
            self._n_plus[group], self._seeds[group], self._started[group] = episode.n_plus, episode.seed, True
            self._hold(span, held=False)
            self._failed[span] = False
            self._lengths[span], self._returns[span] = [0] * self.group_size, [0.0] * self.group_size

    def _restart_finished(self) -> None:
        nothing = [None] * self.group_size
        finished = np.flatnonzero(self._done.reshape(self.num_groups, self.group_size).all(axis=1)).tolist()
        self._start_all(
            {group: GroupStart(self._following(group), None, int(self._n_plus[group]), nothing) for group in finished}
        )

    def _following(self, group: int) -> int:
        """The seed after a group's last one: whoever else has finished, and when, has no part in it."""
        return int(np.random.SeedSequence((int(self._seeds[group]), group)).generate_state(1)[0] >> 1)

    def _hold(self, members: Sequence[int] | slice, held: bool = True) -> None:
        """Marks members as finished, or as under way; the array before stays as it was, for the infos before."""
        self._done = self._done.copy()
        self._done[members] = held

    def _batch(self) -> Any:
        if self._text:
            return tuple(self._observations)
        batch: Any = create_empty_array(self.single_observation_space, n=self.num_envs)
        return concatenate(self.single_observation_space, self._observations, batch)

    def _columns(self) -> InfoColumns:
        """The infos as they are now: what a later step or reset changes, it replaces."""
        return InfoColumns(group_columns, tuple(self._infos), self._n_plus, self._seeds, self._held)

"""The members of a vector: made with the same wrappers, asked for as a caller asks, started by group, stepped."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from skillc_gym.envs.base import TextTaskEnv
from skillc_gym.errors import ConfigError, MemberError, require_name
from skillc_gym.values import require_whole

AnyEnv = gymnasium.Env[Any, Any]
StepResult = tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


def member_maker(env: str | AnyEnv | Callable[..., AnyEnv], env_kwargs: Mapping[str, Any]) -> Callable[[], AnyEnv]:
    """Turns an id, an environment made from one, or a function into a function that makes one member."""
    if not isinstance(env, str | gymnasium.Env):
        return partial(env, **env_kwargs)
    spec = gymnasium.registry.get(env, env) if isinstance(env, str) else env.spec
    if spec is None:
        raise ConfigError(f"{env} was not made from an id, so its members cannot be; pass a function that makes one")
    # Without Gymnasium's check of the order of calls, two calls a step: the vector makes that check itself.
    unordered = spec if isinstance(spec, str) else replace(spec, order_enforce=False)
    return partial(gymnasium.make, unordered, **env_kwargs)


def step_at_once(envs: Sequence[AnyEnv], due: Sequence[tuple[int, Any]], at_once: int) -> list[Future[Any]]:
    """Steps members in so many threads, for those that wait for another process; outcomes as in ``due``."""
    with ThreadPoolExecutor(at_once) as threads:
        return [threads.submit(envs[member].step, action) for member, action in due]


_KNOWN = ("task_ids", "n_plus", "skills", "reset_mask")
_SEED_BOUND = 2**64
_WHOLE = (int, np.integer)


@dataclass(frozen=True)
class ResetOptions:
    """Options of a reset, lists of one entry per group; UnknownNameError for one that does not exist."""

    given: Mapping[str, Any]
    num_groups: int
    group_size: int
    switchable: bool
    """Whether the members have skills."""

    def __post_init__(self) -> None:
        for name in self.given:
            require_name("reset option", name, _KNOWN, "Options are per group: lists of num_groups entries.")

    def groups(self) -> NDArray[np.bool_]:
        """Which groups to reset, by a mask of members or all: bool of shape (num_groups,)."""
        if self.given.get("reset_mask") is None:
            return np.ones(self.num_groups, dtype=np.bool_)
        members, count = np.asarray(self.given["reset_mask"]), self.num_groups * self.group_size
        if members.dtype != np.bool_ or members.shape != (count,):
            raise ConfigError(
                f"reset_mask is one bool per member, shape ({count},); got dtype {members.dtype}, shape {members.shape}"
            )
        by_group = members.reshape(self.num_groups, self.group_size)
        split = np.flatnonzero(by_group.any(axis=1) & ~by_group.all(axis=1))
        if split.size:
            raise ConfigError(
                f"reset_mask splits group {split[0]}: its members share a task and start together, so reset all or none"
            )
        whole: NDArray[np.bool_] = by_group[:, 0].copy()
        return whole

    def tasks(self, wanted: NDArray[np.bool_], core: Any) -> list[str | None]:
        """The task of ``core`` for each group that is to be reset; None leaves the choice to the group's seed."""
        tasks = self._values("task_ids") or [None] * self.num_groups
        for task_id in itertools.compress(tasks, wanted):
            if task_id is not None:
                _require_task(core, task_id)
        return tasks

    def n_plus(self, wanted: NDArray[np.bool_]) -> list[Any] | None:
        """How many members of each group see the skill, for the groups to be reset; None where it was not said."""
        counts = self._values("n_plus")
        if counts is None:
            return None
        for group in np.flatnonzero(wanted):
            count = counts[group]
            require_whole(f"n_plus of group {group}", count, 0, self.group_size)
            if count and not self.switchable:
                raise ConfigError(
                    f"n_plus of group {group} is {count}, but the environment has no skills to switch; "
                    "pass library=..., or 0 for every group"
                )
        return counts

    def skills(self, wanted: NDArray[np.bool_]) -> list[list[Any]]:
        """What each member of each group sees where its skill is on; None for the library's text.

        An entry is None, one choice for all members of its group, or a list with one per member of a group to be reset.
        """
        if self.given.get("skills") is not None and not self.switchable:
            raise ConfigError('options["skills"] needs skills to replace; pass library=...')
        given = self._values("skills") or [None] * self.num_groups
        members = [list(entry) if isinstance(entry, (list, tuple)) else [entry] * self.group_size for entry in given]
        for group in np.flatnonzero(wanted):
            if (count := len(members[group])) != self.group_size:
                raise ConfigError(f"skills of group {group} are one per member ({self.group_size}), got {count}")
        return members

    def _values(self, name: str) -> list[Any] | None:
        """A list with one entry per group; None where the option was not given."""
        values, count = self.given.get(name), self.num_groups
        if values is None:
            return None
        if isinstance(values, str) or not isinstance(values, (Sequence, np.ndarray)):
            raise ConfigError(f'options["{name}"] is a list with one entry per group ({count}), got {values!r}')
        if len(values) != count:
            raise ConfigError(f'options["{name}"] needs one entry per group: expected {count}, got {len(values)}')
        return list(values)


def _require_task(core: Any, task_id: Any) -> None:
    """UnknownNameError for a task that an environment does not have."""
    if isinstance(core, TextTaskEnv):
        if isinstance(task_id, str):  # what else a reset takes, such as the number of a goal, the members check
            core.task_type_of(task_id)  # which need not list them: there may be millions
    else:
        require_name("task id", task_id, getattr(core, "task_ids", (task_id,)), "See the environment's task_ids.")


def group_seeds(seed: Any, num_groups: int, group_size: int) -> list[int]:
    """One seed per group, from a list per group or per member."""
    seeds = list(seed)
    if len(seeds) == num_groups * group_size and len(seeds) != num_groups:
        pairs = [seeds[start : start + group_size] for start in range(0, len(seeds), group_size)]
        for group, members in enumerate(pairs):
            if len(set(members)) > 1:
                raise ConfigError(f"Members of a group share their seed; group {group} got {members}")
        seeds = [members[0] for members in pairs]
    if len(seeds) != num_groups:
        raise ConfigError(f"seed is an integer or one seed per group ({num_groups}), got a list of {len(seeds)}")
    return [checked_seed(value) for value in seeds]


def checked_seed(value: Any) -> int:
    """Returns a seed of 64 bits; ConfigError for anything else."""
    if not isinstance(value, _WHOLE) or not 0 <= value < _SEED_BOUND:
        raise ConfigError(f"A seed is an integer from 0 to 2**64 - 1, got {value!r}")
    return int(value)


def member_actions(actions: Any, held: NDArray[np.bool_]) -> list[tuple[int, Any]]:
    """The actions of active members as (member, action), sorted; those of held members (None as well) are dropped."""
    if not isinstance(actions, (dict, Mapping)):
        actions = dict(enumerate(_one_each(actions, held)))
    due = []
    for i, action in actions.items():
        if not (isinstance(i, _WHOLE) and 0 <= i < len(held)):
            raise ConfigError(f"There is no member {i!r}; members are numbered 0 to {len(held) - 1}")
        if held[i]:
            continue
        if action is None:
            raise ConfigError(f"Member {i} is active but its action is None; pass {{member: action}} to step only some")
        due.append((int(i), action))
    due.sort()
    return due


def _one_each(actions: Any, held: NDArray[np.bool_]) -> Sequence[Any] | NDArray[Any]:
    if isinstance(actions, str) or not isinstance(actions, (Sequence, np.ndarray)):
        raise ConfigError(f"Expected a list of {len(held)} actions or a dict {{member: action}}, got {actions!r:.80}")
    if len(actions) != len(held):
        raise ConfigError(
            f"Expected one action per member ({len(held)}), got {len(actions)}; "
            "pass None for held members, or a dict {member: action} to step only some"
        )
    return actions


class GroupStart(NamedTuple):
    """How a group begins."""

    seed: int
    task_id: str | None
    n_plus: int
    skills: Sequence[Any]
    """Per member, None for the library's text."""


def start_group(
    envs: Sequence[AnyEnv], group: int, start: GroupStart, switchable: bool
) -> tuple[list[Any], list[dict[str, Any]]]:
    """Resets a group's members; returns their observations and infos."""
    answers, size = [], len(start.skills)
    for place, env in enumerate(envs[group * size : (group + 1) * size]):
        options: dict[str, Any] = {} if start.task_id is None else {"task_id": start.task_id}
        if switchable:
            options["skill"] = place < start.n_plus
        if start.skills[place] is not None:
            options["skill_text"] = start.skills[place]
        answers.append(env.reset(seed=start.seed, options=options or None))
    played = {info.get("task_id") for _, info in answers}
    if len(played) > 1:
        raise ConfigError(
            f"Members of group {group} got different tasks from seed {start.seed}: {sorted(map(str, played))}"
        )
    return [observation for observation, _ in answers], [dict(info) for _, info in answers]


def member_error(
    raised: Mapping[int, Exception], result: StepResult, infos: Sequence[Mapping[str, Any]], group_size: int
) -> MemberError:
    """What members raised in a step, and what came of it for the others."""
    first, error = next(iter(raised.items()))
    group, task = first // group_size, infos[first].get("task_id")
    others = f" (and {len(raised) - 1} others)" if len(raised) > 1 else ""
    return MemberError(
        f"Member {first} of group {group}, task {task!r},{others} raised {type(error).__name__}: {error}. What the "
        "step returned for the others is in this error's result; reset those that raised.",
        raised,
        result,
    )

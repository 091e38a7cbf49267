"""A curriculum decides, episode by episode: which type with or without its skill, or which difficulty."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict
from typing import Any, Protocol, Self

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from skillc_gym.curricula.difficulty import DifficultyCurriculum
from skillc_gym.curricula.skills import InternalizationCurriculum
from skillc_gym.envs.base import task_options
from skillc_gym.errors import ConfigError, SkillCError
from skillc_gym.panels import tasks_by_type
from skillc_gym.wrappers.skill_injection import SkillInjection, find_wrapper, require_no_autoreset


class Curriculum(Protocol):
    """What the wrapper asks of a curriculum; :class:`~skillc_gym.curricula.skills.InternalizationCurriculum` is one."""

    @property
    def task_types(self) -> Collection[str]:
        """All task types, in a fixed order."""

    @property
    def active(self) -> Collection[str]:
        """The types that still have a skill."""

    def rho_with(self, task_type: str, /) -> float:
        """The share of episodes with the skill, for an active type."""


class _Recorded(dict[str, Any]):
    """A curriculum as a spec has it: what makes it anew from JSON, and the one to share, if one was given.

    Wherever the spec is copied, as every wrapper around copies it, this stays the same one; a copy of the wrapper has
    one of its own.
    """

    curriculum: Any = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def hold(self, given: Any) -> None:
        """Takes another curriculum, or the arguments of one; one of another kind is no JSON."""
        self.curriculum = None if isinstance(given, Mapping) else given
        arguments = dict(given) if isinstance(given, Mapping) else {"curriculum": given}
        if isinstance(given, InternalizationCurriculum):
            arguments = {"task_types": list(given.task_types), **given.config}
        self.clear()
        self.update(arguments)


def _copied(wrapper: Any, memo: dict[int, Any]) -> Any:
    """A deep copy of a wrapper whose specs hold a record of its own, of the copied curriculum."""
    other, recorded = object.__new__(type(wrapper)), _Recorded()
    memo |= {id(wrapper): other, id(wrapper._recorded): recorded}  # where deepcopy looks first
    vars(other).update(deepcopy(vars(wrapper), memo))
    shared = wrapper._recorded.curriculum is not None
    recorded.hold(other._curriculum if shared else deepcopy({**wrapper._recorded}, memo))
    return other


def _given(curriculum: Any) -> Any:
    shared = isinstance(curriculum, _Recorded) and curriculum.curriculum is not None
    return curriculum.curriculum if shared else curriculum


class SkillCurriculum(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """At each reset draws a task type, a task of that type and a condition, as a curriculum has it.

    Every type of the curriculum comes equally often, retired ones too (they go on without their skill); the skill is on
    with probability ``curriculum.rho_with(type)`` for active types and never for retired ones. A ``task_id`` or
    ``skill`` given in ``options`` is respected. The curriculum is yours: update it between episodes and the next reset
    follows; processes of a vector have copies, to be set anew: ``envs.set_attr("curriculum", curriculum)``. All draws
    come from the environment's seed.

    Args:
        env: A stack with a :class:`~skillc_gym.wrappers.SkillInjection` in it, over an environment with ``task_ids``
            and ``task_type_of(task_id)``.
        curriculum: The curriculum, or the keyword arguments of an ``InternalizationCurriculum`` to make one.

    Raises:
        ConfigError: There is no SkillInjection to switch, or a type of the curriculum has no task.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], curriculum: Curriculum | Mapping[str, Any]) -> None:
        curriculum = _given(curriculum)
        self._recorded = _Recorded()
        RecordConstructorArgs.__init__(self, _disable_deepcopy=True, curriculum=self._recorded)
        gymnasium.Wrapper.__init__(self, env)
        _check_stack(env)
        self.curriculum = curriculum
        self._draws: np.random.Generator | None = None

    @property
    def curriculum(self) -> Curriculum:
        """The curriculum at work; another, or the arguments of one, may be set between episodes."""
        return self._curriculum

    @curriculum.setter
    def curriculum(self, curriculum: Curriculum | Mapping[str, Any]) -> None:
        made = InternalizationCurriculum(**curriculum) if isinstance(curriculum, Mapping) else curriculum
        self._tasks = _tasks_by_type(self.env.unwrapped, made.task_types)
        self._type_of = {task_id: kind for kind, task_ids in self._tasks.items() for task_id in task_ids}
        self._curriculum: Curriculum = made
        self._recorded.hold(curriculum)

    __deepcopy__ = _copied

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode of the curriculum's choice, as far as ``options`` leave it one."""
        options = task_options(self, options)
        with _drawing(self, seed, 1) as draws:
            # Always the same three draws, so that an option given once does not shift the episodes after it.
            task_ids = list(self._tasks.values())[int(draws.integers(len(self._tasks)))]
            task_id, coin = task_ids[int(draws.integers(len(task_ids)))], float(draws.random())
            chosen = _with_task(options, task_id)
            kind = self._type_of.get(chosen["task_id"], "")
            chosen.setdefault("skill", kind in self.curriculum.active and coin < self.curriculum.rho_with(kind))
            return self.env.reset(seed=seed, options=chosen)


def _check_stack(env: gymnasium.Env[Any, Any]) -> None:
    require_no_autoreset(env, "SkillCurriculum")
    if find_wrapper(env, SkillInjection) is None:
        raise ConfigError("SkillCurriculum switches skills; put a SkillInjection below it: SkillInjection(env, ...)")
    if find_wrapper(env, ProceduralCurriculum) is not None:
        raise ConfigError(
            "SkillCurriculum names every task, so that the ProceduralCurriculum within would choose none; put that "
            "outside: ProceduralCurriculum(SkillCurriculum(env, ...))"
        )


def _with_task(options: Mapping[str, Any], drawn: str) -> dict[str, Any]:
    """Reset options with a task: the one that they name, else the drawn one."""
    named = {key: value for key, value in options.items() if key != "task_id" or value is not None}
    return {"task_id": drawn, **named}


@contextmanager
def _drawing(wrapper: Any, seed: int | None, stream: int) -> Iterator[np.random.Generator]:
    """The draws of a reset, from a stream of the wrapper's own; one that is refused moves none."""
    if seed is None and wrapper._draws is None:
        wrapper._draws = np.random.default_rng(int(wrapper.np_random.integers(2**63)))
    # The environment's stream starts over at a seed and would repeat these draws.
    draws = wrapper._draws if seed is None else np.random.default_rng([seed, stream])
    before = draws.bit_generator.state
    try:
        yield draws
    except SkillCError:
        draws.bit_generator.state = before
        raise
    wrapper._draws = draws


def _tasks_by_type(env: Any, task_types: Collection[str]) -> dict[str, list[str]]:
    if not hasattr(env, "task_ids") or not hasattr(env, "task_type_of"):
        raise ConfigError(f"SkillCurriculum needs an environment with task_ids and task_type_of(task_id), got {env}")
    tasks = tasks_by_type({task_id: env.task_type_of(task_id) for task_id in env.task_ids})
    empty = [kind for kind in task_types if kind not in tasks]
    if empty:
        raise ConfigError(
            f"The curriculum has types without a task: {', '.join(empty)}; {env} has tasks of: {', '.join(tasks)}"
        )
    return {kind: tasks[kind] for kind in task_types}


class ProceduralCurriculum(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """At each reset plays a task that a `DifficultyCurriculum` proposes, and tells it at the end how it went.

    A ``task_id`` given in ``options`` is respected, and counted if it is one of the curriculum's. An episode that is
    left unfinished does not count. All draws come from the environment's seed; the curriculum itself continues over
    seeds.

    Args:
        env: An environment with generated games of several difficulties.
        curriculum: The curriculum, which all environments of one spec then share (such a spec is no JSON), or the
            keyword arguments of one over the environment's games.

    Raises:
        ConfigError: If the games tell no difficulty, or an option is out of range.

    Examples:
        >>> env = gymnasium.make("skillc/ALFWorld-v0", data="generated", generator={"difficulty": [0, 0.5, 1]})
        >>> env = ProceduralCurriculum(env, {"target": 0.6})
        >>> observation, info = env.reset(seed=0)
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], curriculum: DifficultyCurriculum | Mapping[str, Any] | None = None
    ) -> None:
        given = _given(curriculum)
        require_no_autoreset(env, "ProceduralCurriculum")
        self._recorded = _Recorded()
        RecordConstructorArgs.__init__(self, _disable_deepcopy=True, curriculum=self._recorded)
        gymnasium.Wrapper.__init__(self, env)
        if isinstance(given, DifficultyCurriculum):
            self.curriculum = given
        else:
            self._curriculum = DifficultyCurriculum.of(env, **(given or {}))
            self._recorded.hold(asdict(self._curriculum.options))
        self._draws: np.random.Generator | None = None

    @property
    def curriculum(self) -> DifficultyCurriculum:
        """The curriculum at work. Another may be set between episodes; one of skills goes to the wrapper within."""
        return self._curriculum

    @curriculum.setter
    def curriculum(self, curriculum: Any) -> None:
        if isinstance(curriculum, DifficultyCurriculum):
            self._curriculum = curriculum
            self._recorded.hold(curriculum)
            return
        # A vector's set_attr finds this wrapper first, whichever curriculum is meant.
        skills = find_wrapper(self.env, SkillCurriculum)
        if skills is None:
            raise ConfigError(f"A ProceduralCurriculum plays by a DifficultyCurriculum, got {curriculum!r:.80}")
        skills.curriculum = curriculum

    __deepcopy__ = _copied

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode of the curriculum's choice, unless ``options`` name the task."""
        options = task_options(self, options)
        with _drawing(self, seed, 2) as draws:
            proposed = self.curriculum.propose(1, draws)[0]
            return self.env.reset(seed=seed, options=_with_task(options, proposed))

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Steps; the curriculum learns how an episode ended."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if (terminated or truncated) and info["task_id"] in self.curriculum:
            self.curriculum.update(info["task_id"], float(info["won"]))
        return observation, reward, terminated, truncated, info

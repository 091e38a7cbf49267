"""SkillInjection: the switch that puts a skill in front of an agent's eyes, or takes it away, per episode."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from skill_library import GRADES, SkillText, load_library
from skillc_gym.chat import ChatFormat
from skillc_gym.envs.base import reset_needed
from skillc_gym.errors import ConfigError, require_name
from skillc_gym.spaces import Unicode, text_space
from skillc_gym.values import require_switch

WrapperT = TypeVar("WrapperT", bound=gymnasium.Wrapper)
SkillChoice = SkillText | Callable[[dict[str, Any]], SkillText | None]
"""A text, or a function that chooses one when it sees the info of the reset (task, type, goal); None: the library's."""

_PLACES = ("observation", "info")
"""Where a skill can stand."""
_OPTIONS = ("skill", "skill_grade", "skill_text")
_GAP = "\n\n"


def find_wrapper(env: gymnasium.Env[Any, Any], kind: type[WrapperT]) -> WrapperT | None:
    """The outermost wrapper of a class in an environment's stack, or None."""
    return next((layer for layer in _wrappers(env) if isinstance(layer, kind)), None)


def _wrappers(env: gymnasium.Env[Any, Any]) -> Iterator[gymnasium.Wrapper[Any, Any, Any, Any]]:
    """The wrappers of a stack, from the outside in."""
    while isinstance(env, gymnasium.Wrapper):
        yield env
        env = env.env


class SkillInjection(gymnasium.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Shows the skill of the episode's task type, or does not; the environment never knows.

    Switched on, the general and the task's skill text stand before **every** observation, the first included
    (``where="observation"``), or only in ``info["skill_text"]`` for a prompt built further out (``where="info"``,
    what :class:`~skillc_gym.wrappers.ChatPrompt` reads). Switched off, observations are byte-identical to the
    environment's. The observation space is the same either way.

    ``info`` always gains ``condition`` (1 on, 0 off), ``skill`` (name), ``skill_sha256``, ``skill_text`` ("" off) and
    ``skill_grade`` ("none" off).

    Args:
        env: A text environment whose ``info`` has ``task_type``.
        library: Name of a built-in skill library, or a folder; see :func:`skill_library.load_library`.
        enabled: Whether skills are on, for episodes that do not say. Can be set; it counts from the next reset on.
            ``reset(options={"skill": bool})`` decides for one episode and is not passed on. So does
            ``options={"skill_text": ...}``: another text than the library's for an episode with the skill on.
        where: ``"observation"`` or ``"info"``.
        grade: How much is shown where skills are on: ``"full"``; ``"minimal"``, the first line and the key step (see
            :attr:`skill_library.Skill.minimal_text`); or ``"none"``, nothing although ``condition`` is 1. It is for
            episodes that do not say by ``reset(options={"skill_grade": ...})``.

    Raises:
        SkillFileError: The library cannot be read; at a reset with skills on: the task type has no skill in it.
        ConfigError: The environment is not a text environment, or already has a SkillInjection or a ChatPrompt.

    Examples:
        >>> env = SkillInjection(gymnasium.make("skillc/ALFWorld-v0", data="generated"), library="alfworld")
        >>> observation, info = env.reset(seed=0, options={"skill": False})
        >>> info["condition"], info["skill"]
        (0, '')
    """

    def __init__(
        self,
        env: gymnasium.Env[str, str],
        library: str | os.PathLike[str] = "alfworld",
        enabled: bool = True,
        where: str = "observation",
        grade: str = "full",
    ) -> None:
        # A path is never the name of a library, so its record must not read as one.
        named = library if isinstance(library, str) else str(Path(library).absolute())
        RecordConstructorArgs.__init__(self, library=named, enabled=bool(enabled), where=where, grade=grade)
        gymnasium.Wrapper.__init__(self, env)
        require_name("place for skills", where, _PLACES)
        if find_wrapper(env, SkillInjection) is not None:
            raise ConfigError(f"{env} already has a SkillInjection; two would show the skill twice")
        _require_no_prompt(env)
        require_no_autoreset(env, "SkillInjection")
        self.library = load_library(library)
        self.where = where
        self.enabled = enabled
        self.grade = require_name("grade of a skill", grade, GRADES)
        # A control may have nothing to show at a grade, which counts where that is asked for.
        self._graded = {grade: self.library.graded(grade)}
        space = text_space(env, "observation_space", "SkillInjection")
        self._prefix = ""
        self._provenance: dict[str, Any] | None = _off(0)
        if where == "observation":
            room = self.library.longest + len(_GAP)
            self.observation_space = Unicode(space.max_length + room, min_length=space.min_length)

    @property
    def enabled(self) -> bool:
        """Whether skills are on for episodes that do not say otherwise."""
        return self._enabled

    @enabled.setter
    def enabled(self, value: bool) -> None:
        self._enabled = require_switch("enabled", value)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: Passed on.
            options: ``skill`` (bool) overrides :attr:`enabled` for this episode, ``skill_grade`` the grade;
                ``skill_text`` (a :data:`SkillChoice`) is shown instead of the library's text where the skill is on, in
                full unless the grade is "none".
        """
        mine = {key: value for key, value in (options or {}).items() if key in _OPTIONS}
        rest = {key: value for key, value in (options or {}).items() if key not in mine} or None
        switched_on = require_switch('options["skill"]', mine.get("skill", self._enabled))
        grade = require_name("grade of a skill", mine.get("skill_grade", self.grade), GRADES)
        observation, info = self.env.reset(seed=seed, options=rest if mine else options)
        self._provenance = None  # should no skill fit, the episode before is over all the same
        if switched_on and grade != "none":
            provenance = self._shown(info, mine.get("skill_text"), grade)
        else:
            provenance = _off(int(switched_on))
        text = provenance["skill_text"] if self.where == "observation" else ""
        self._prefix, self._provenance = text + _GAP if text else "", provenance
        return self._prefix + observation, {**info, **provenance}

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Passes the action on; the skill stays in front of what comes back. ResetNeeded after a reset that raised."""
        if self._provenance is None:
            raise reset_needed()
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._prefix + observation, reward, terminated, truncated, {**info, **self._provenance}

    def _shown(self, info: dict[str, Any], choice: SkillChoice | None, grade: str) -> dict[str, Any]:
        chosen = choice(info) if callable(choice) else choice
        if chosen is not None:
            # A memory chooses from a library that was made shorter; which grade a text of one's own has, nobody knows.
            return _provenance(self._checked(chosen), "full" if grade == "full" else "")
        if "task_type" not in info:
            raise ConfigError(f'SkillInjection chooses by info["task_type"], which {self.env} does not give at reset')
        if grade not in self._graded:
            self._graded[grade] = self.library.graded(grade)
        return _provenance(self._graded[grade].for_task(info["task_type"]), grade)

    def _checked(self, chosen: object) -> SkillText:
        if not isinstance(chosen, SkillText):
            raise ConfigError(
                f'options["skill_text"] is a skill_library.SkillText, or a function of info; got {chosen!r}'
            )
        if self.where == "observation" and len(chosen.text) > self.library.longest:
            raise ConfigError(
                f"The text {chosen.name!r} has {len(chosen.text)} characters, and the observation space has room for "
                f"{self.library.longest}, the library's longest; use SkillInjection(env, where='info')"
            )
        return chosen


def require_no_autoreset(env: gymnasium.Env[Any, Any], wrapper: str) -> None:
    """Refuses (ConfigError) to stand around resets that a wrapper never sees: it would stay in the first episode."""
    if find_wrapper(env, gymnasium.wrappers.Autoreset) is not None:
        raise ConfigError(f"{wrapper} stands around an Autoreset, whose resets it never sees; put Autoreset outside")


def has_prompt(env: gymnasium.Env[Any, Any]) -> bool:
    """Whether a stack has a ChatPrompt: by its attribute, as its module imports this one."""
    return any(isinstance(vars(layer).get("chat_format"), ChatFormat) for layer in _wrappers(env))


def _require_no_prompt(env: gymnasium.Env[Any, Any]) -> None:
    if has_prompt(env):
        raise ConfigError(
            f"SkillInjection stands around the ChatPrompt of {env}, whose prompts would never hold the skill; put it "
            "inside: ChatPrompt(ActionFormat(SkillInjection(env, where='info'))), or "
            "PairedVectorEnv(..., where='info', wrappers=(ActionFormat, ChatPrompt))"
        )
    if any(hasattr(type(layer), "by_type") for layer in _wrappers(env)):
        raise ConfigError(
            f"SkillInjection stands around the TypeStatistics of {env}, which would count all episodes as skill-free; "
            "put it inside, or give PairedVectorEnv(..., wrappers=(TypeStatistics,))"
        )


def _off(condition: int) -> dict[str, Any]:
    return {"condition": condition, "skill": "", "skill_sha256": "", "skill_text": "", "skill_grade": "none"}


def _provenance(skill: SkillText, grade: str) -> dict[str, Any]:
    shown = {"skill": skill.name, "skill_sha256": skill.sha256, "skill_text": skill.text}
    return {"condition": 1, **shown, "skill_grade": grade}

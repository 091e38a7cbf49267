"""Conventions: tasks that do not say where a thing belongs, and skills that do.

The other skills say how a task is done, which an agent could find out by itself; these say what is agreed, which it
cannot read anywhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from skill_library import Skill, SkillText, load_library
from skillc_gym.envs.alfworld.experts.explorer import UNSAID
from skillc_gym.envs.alfworld.generate.catalogue import TREATMENTS
from skillc_gym.envs.alfworld.tasks import SHORT_NAMES, named_kinds
from skillc_gym.values import require_whole

_PLACES = ("CounterTop", "SinkBasin", "Microwave", "Fridge", "Cabinet")
"""What every kitchen has."""


def agreed_place(convention: int | str | None, kind: str | None) -> str | None:
    """The kind of receptacle where a convention has the things of a task type (short name); None if it is not fixed."""
    if kind in (None, "look") or not isinstance(convention, int):
        return None
    tool = TREATMENTS[kind].tool if kind in TREATMENTS else ""
    places = [place for place in _PLACES if place != tool]
    rng = np.random.default_rng([convention, list(SHORT_NAMES.values()).index(kind)])
    return places[int(rng.integers(len(places)))]


def convention_skills(convention: int) -> tuple[Skill, ...]:
    """ALFWorld's library for games of a convention, a number: its skills say last where things belong.

    Where each game draws its own, `skill_of_game` says it. A ConfigError for what is no number from 0 up.
    """
    convention = require_whole("A convention", convention, 0)
    return tuple(_agreed(skill, convention) for skill in load_library("alfworld").skills)


def _agreed(skill: Skill, convention: int) -> Skill:
    place = agreed_place(convention, SHORT_NAMES.get(skill.task_types[0]))
    return replace(skill, text=_told(skill.text, place)) if place else skill


def skill_of_game(info: Mapping[str, Any]) -> SkillText | None:
    """The skill for one game by the info of its reset, whatever convention it is of; None if its task says the place.

    For ``reset(options={"skill_text": skill_of_game})`` of a ``SkillInjection(where="info")``.
    """
    kinds = named_kinds(info["task_id"])
    if UNSAID not in info["goal"] or kinds is None:
        return None
    own = load_library("alfworld").for_task(info["task_type"])
    return SkillText(f"{own.name}.place", _told(own.text, kinds[1]))


def _told(text: str, place: str) -> str:
    return f"{text}\nKey step: {UNSAID} is the {place.lower()}."

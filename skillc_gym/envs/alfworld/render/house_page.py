"""The house as a page: furniture by kind, what lies on it, the agent, its hand, and the transcript."""

from __future__ import annotations

import itertools

from skillc_gym.envs.alfworld.engine.world import NOTHING_HAPPENS
from skillc_gym.envs.alfworld.experts.explorer import parse_goal
from skillc_gym.envs.alfworld.render.house_view import HouseView
from skillc_gym.errors import ConfigError
from skillc_gym.pages import page, resource

__all__ = ["to_page"]


def to_page(view: HouseView) -> str:
    """The house and the transcript, as one self-contained page."""
    thing, places = _kinds_of_goal(view.world.game.task)
    groups = itertools.groupby(view.rows(), key=lambda row: row.name.rpartition(" ")[0])
    return page(
        __package__,
        "house.html",
        style=resource(__package__, "house.css"),
        view=view,
        kinds=[(kind, list(rows)) for kind, rows in groups],
        places=places,
        wanted=(thing, *places),
        nothing=NOTHING_HAPPENS,
    )


def _kinds_of_goal(task: str) -> tuple[str, tuple[str, ...]]:
    """The kinds of the wanted object and of the target or lamp; none for a sentence that is not ALFWorld's."""
    try:
        goal = parse_goal(task)
    except ConfigError:
        return "", ()
    return goal.thing, (goal.place, goal.place + "basin")

"""What is otherwise than upstream: every fix by name, and what upstream's arguments and sessions are here.

A value of an option that is also a button's label, such as ``< prev``, navigates with and without the fixes.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from skillc_gym.errors import ConfigError, require_name, unknown_name
from skillc_gym.values import require_switch


@dataclass(frozen=True, slots=True)
class Fixes:
    """Which fixes are in force.

    Attributes:
        plain_queries: <r>, <a>, <c> and <q> in front of a query are ordinary text. Upstream lists random products, a
            category or a query's products, or raises.
        page_by_state: '< prev' and 'next >' know the page they leave. Upstream guesses it from the URL, which contains
            the query: "search_results" makes '< prev' on a product lead to an empty page 0.
        real_selections: text_rich marks the options that are chosen. Upstream marks those whose value stands in double
            quotes in the URL: a query "red" marks red, a value that is not ASCII is never marked.
        bracketed_values: An option whose value contains [, ] or a line break can be clicked.
        every_group: A value that occurs in several groups is chosen in the first one in which it is not chosen yet.
            Upstream chooses it in the last group only.
        any_case_asins: A product opens whose id has lower-case letters or is the label of another page's button.
            Upstream raises.
        long_queries: Of a query's different terms, the first 1,024 count, and an action of more than 4,096 characters
            changes nothing. Upstream raises if there are more terms, and takes any length (here up to 262,144).
        fair_draws: Tasks are drawn by their weights. Upstream draws one place late: goal 0 never, the last too often.
        purchase_ends: A purchase ends the episode. Upstream's shop can be searched, and bought from, again.
    """

    plain_queries: bool
    page_by_state: bool
    real_selections: bool
    bracketed_values: bool
    every_group: bool
    any_case_asins: bool
    long_queries: bool
    fair_draws: bool
    purchase_ends: bool


FIXES = tuple(field.name for field in fields(Fixes))
FIXED = Fixes(**dict.fromkeys(FIXES, True))
UPSTREAM = Fixes(**dict.fromkeys(FIXES, False))
COMPAT = {"fixed": FIXED, "upstream": UPSTREAM}


def fixes(compat: str | Fixes) -> Fixes:
    """Returns the fixes of "fixed" or "upstream"; a choice of your own is returned as it is."""
    if isinstance(compat, Fixes):
        return compat
    return COMPAT[require_name("compat", compat, COMPAT)]


REPLACED = {
    "filter_goals": "choose tasks by name: reset(options={'task_id': ...}) with ids from env.unwrapped.task_ids, whose "
    "goals are env.unwrapped.goals.goal(index)",
    "limit_goals": "choose tasks by split=, or by name: reset(options={'task_id': ...})",
    "num_prev_obs": "wrap the environment: skillc_gym.wrappers.TextHistory(env, length=...)",
    "num_prev_actions": "wrap the environment: skillc_gym.wrappers.TextHistory(env, length=...)",
    "file_path": "name the files: data={'products': ..., 'attributes': ..., 'human_goals': ...}",
    "attr_path": "name the files: data={'products': ..., 'attributes': ..., 'human_goals': ...}",
    "get_image": "name a file of features, image_features=..., and ask env.unwrapped.get_image()",
    "server": "nothing is needed: environments of a process share one catalogue by themselves",
    "session": "choose a task at each reset: reset(options={'session': 3}), or 'task_id'",
    "session_prefix": "nothing is needed: episodes share no session",
    "seed": "reset(seed=...) seeds the choice of tasks, seed_prices= the prices, goal_order='verl-agent' orders the "
    "goals as its seed 42 does",
}
"""Upstream's arguments that are other things here, with what replaces them."""
_UNUSED = {"limit_goals": (-1,), "num_prev_obs": (0,), "num_prev_actions": (0,), "get_image": (None, 0), "seed": ()}
_KNOWN = ("num_products", "human_goals", "show_attrs")


def read_upstream(given: Mapping[str, Any]) -> dict[str, Any]:
    """Turns upstream's arguments into those of `WebShopEnv`; ``num_products`` stays as it is, None is left out.

    ConfigError says what replaces an argument that is another thing here, UnknownNameError that it is neither's.
    """
    ours: dict[str, Any] = {}
    for name, value in given.items():
        if name in _KNOWN and value is None:
            continue
        if name == "human_goals":
            ours["goals"] = "human" if require_switch(name, value) else "synthetic"
        elif name == "show_attrs":
            ours["show_attributes"] = require_switch(name, value)
        elif name == "num_products":
            ours["num_products"] = value
        elif name not in REPLACED:
            raise unknown_name(
                "argument", name, (*_KNOWN, *REPLACED), "These are upstream's; docs/webshop.md has ours."
            )
        elif value not in _UNUSED.get(name, (None,)):
            raise ConfigError(f"{name}= is upstream's name; instead, {REPLACED[name]}.")
    return ours


def goal_of_session(options: Mapping[str, Any] | None, kind: str) -> dict[str, Any] | None:
    """Turns upstream's sessions and numbers into task ids: ``{"session": 3}`` or ``{"task_id": 3}`` is goal 3."""
    if options is None:
        return None
    ours = dict(options)
    if "session" in ours:
        if "task_id" in ours or not _is_index(ours["session"]):
            raise ConfigError(
                "The option 'session' is the number of a goal, and stands in for 'task_id'; got "
                f"{options!r}. A text as a session draws a task: leave the option out."
            )
        ours["task_id"] = ours.pop("session")
    if _is_index(ours.get("task_id")):
        ours["task_id"] = f"{kind}/{int(ours['task_id'])}"
    return ours


def _is_index(value: Any) -> bool:
    try:
        operator.index(value)
    except TypeError:
        return False
    return not isinstance(value, bool)

"""The arguments and methods that users know from upstream's environment, and what they are here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillc_gym.errors import ConfigError, unknown_name

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
_UNUSED = {"filter_goals": (None,), "limit_goals": (-1,), "num_prev_obs": (0,), "num_prev_actions": (0,), "seed": ()}
_KNOWN = ("num_products", "human_goals", "show_attrs")


def read_upstream(given: Mapping[str, Any]) -> dict[str, Any]:
    """Turns upstream's arguments into those of `skillc_gym.envs.webshop.env.WebShopEnv`.

    Args:
        given: Upstream's names; ``num_products`` stays as it is.

    Raises:
        ConfigError: What the argument asks for is another thing here; the message says which.
        UnknownNameError: There is no such argument here or there.
    """
    ours: dict[str, Any] = {}
    for name, value in given.items():
        if name == "human_goals":
            ours["goals"] = "human" if value else "synthetic"
        elif name == "show_attrs":
            ours["show_attributes"] = bool(value)
        elif name == "num_products":
            ours.update({} if value is None else {"num_products": value})
        elif name not in REPLACED:
            raise unknown_name(
                "argument", name, (*_KNOWN, *REPLACED), "These are upstream's; docs/webshop.md has ours."
            )
        elif value not in _UNUSED.get(name, (None, False)):
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
    return hasattr(value, "__index__") and not isinstance(value, bool)

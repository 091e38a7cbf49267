"""The worlds a tiny policy can be warm-started in: who demonstrates there, and in which language."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from skillc_gym.chat import ChatFormat
from skillc_gym.envs.alfworld.experts.explorer import Explorer
from skillc_gym.envs.webshop.experts.shopper import Shopper
from skillc_gym.errors import unknown_name
from trainers.config import ENVIRONMENTS
from trainers.warmstart.tokenizer import HOUSEHOLD, SHOP, Spelling

__all__ = ["WORLDS", "Demonstrator", "World", "world"]


class Demonstrator(Protocol):
    """Somebody who plays and says why."""

    thought: str

    def act(self, observation: str, commands: Sequence[str], /) -> str:
        """Returns the next command."""


@dataclass(frozen=True)
class World:
    """An environment, as far as warm-starting a policy needs to know it."""

    env_id: str
    """The registered id."""
    library: str
    """The skill library."""
    demonstrator: Callable[[Mapping[str, Any], bool], Demonstrator]
    """Makes a demonstrator from the first info; True for one that leaves out the essential step."""
    chat_format: ChatFormat
    """The wording of the prompts."""
    spelling: Spelling
    """What the language's words are."""
    careless: Mapping[str, float]
    """Probability per task type of leaving out the essential step when no skill is in the prompt."""
    min_count: int = 1
    """Words that demonstrations hold more seldom are unknown to the policy."""


def _explorer(info: Mapping[str, Any], careless: bool) -> Demonstrator:
    return Explorer(info["task_type"], info["goal"], seed=None, skip_essential=careless)


def _shopper(info: Mapping[str, Any], careless: bool) -> Demonstrator:
    return Shopper(info["goal"], skip_options=careless)


WORLDS: Mapping[str, World] = {
    "alfworld": World(
        *ENVIRONMENTS["alfworld"],
        demonstrator=_explorer,
        chat_format=ChatFormat.compact(),
        spelling=HOUSEHOLD,
        careless={
            "pick_and_place_simple": 0.15,
            "look_at_obj_in_light": 0.75,
            "pick_clean_then_place_in_recep": 0.85,
            "pick_heat_then_place_in_recep": 0.90,
            "pick_cool_then_place_in_recep": 0.90,
            "pick_two_obj_and_place": 0.80,
        },
    ),
    "webshop": World(
        *ENVIRONMENTS["webshop"],
        demonstrator=_shopper,
        chat_format=replace(ChatFormat.compact(), role="customer"),
        spelling=SHOP,
        careless={"shopping": 0.90},
        min_count=20,
    ),
}
"""By the environment's short name."""


def world(name: str) -> World:
    """Returns a world by the environment's short name.

    Raises:
        UnknownNameError: If nobody demonstrates there.
    """
    if name not in WORLDS:
        raise unknown_name("environment", name, WORLDS)
    return WORLDS[name]

"""The ALFWorld domain that the native engine plays, recognised action by action."""

from __future__ import annotations

import functools
import hashlib
import json

from skillc_gym.envs.alfworld.engine.pddl import parse_expression, sections_of
from skillc_gym.errors import InvalidGameError

__all__ = ["PREDICATES", "domain_actions"]

PREDICATES: dict[str, int] = {
    "atlocation": 2,
    "cancontain": 2,
    "checked": 1,
    "cleanable": 1,
    "coolable": 1,
    "examined": 1,
    "full": 1,
    "heatable": 1,
    "holds": 2,
    "holdsany": 1,
    "holdsanyreceptacleobject": 1,
    "inreceptacle": 2,
    "inreceptacleobject": 2,
    "isclean": 1,
    "iscool": 1,
    "ishot": 1,
    "ison": 1,
    "isreceptacleobject": 1,
    "isreceptacleobjectfull": 1,
    "issliced": 1,
    "istoggled": 1,
    "moveable": 1,
    "objectatlocation": 2,
    "objecttype": 2,
    "openable": 1,
    "opened": 1,
    "pickupable": 1,
    "receptacleatlocation": 2,
    "receptacletype": 2,
    "sliceable": 1,
    "toggleable": 1,
    "wasinreceptacle": 2,
}
"""ALFWorld's predicates and how many things each joins."""

_FINGERPRINTS: dict[str, str] = {
    "look": "c5001e4dd3ee0792",
    "inventory": "ec4138a9b7d27fac",
    "examinereceptacle": "a0631b439aa7ca8f",
    "examineobject": "d8ca3f5fba2a25cb",
    "gotolocation": "7fcc14a8bde83368",
    "openobject": "7e65ce549bef676c",
    "closeobject": "b8ae58994e452cc0",
    "pickupobject": "d40e33a984174948",
    "putobject": "f6d6270041400da7",
    "cleanobject": "2a23b3d41c710c61",
    "heatobject": "2bbe3a918f20eb05",
    "coolobject": "0f67ba3a37e940f2",
    "toggleobject": "f3e4427d2c60d990",
    "sliceobject": "c62ab614accd18c2",
    "help": "ec4138a9b7d27fac",
}
"""Action -> digest of its definition (parameters, condition, effect), free of layout and comments."""


@functools.lru_cache(maxsize=8)
def domain_actions(domain: str) -> frozenset[str]:
    """Returns the actions of a PDDL domain, having checked that they are ALFWorld's.

    Older game files have no ``help``; every other action must be there and mean what it means in ALFWorld.

    Raises:
        InvalidGameError: If the domain has other actions, or defines one of them differently.
    """
    definition = parse_expression(domain)
    sections_of(definition, "domain", repeated=(":action",))
    actions = [part for part in definition if part[:1] == [":action"]]
    if any(len(part) < 2 or not isinstance(part[1], str) for part in actions):
        raise InvalidGameError("The game's PDDL domain has an action without a name.")
    found = {part[1]: fingerprint(part[2:]) for part in actions}
    if len(found) < len(actions):
        raise InvalidGameError("The game's PDDL domain defines an action twice.")
    other = sorted(name for name, digest in found.items() if _FINGERPRINTS.get(name) != digest)
    missing = sorted(_FINGERPRINTS.keys() - found.keys() - {"help"})
    if other or missing:
        raise InvalidGameError(
            "The game's PDDL domain is not ALFWorld's: "
            f"unknown or changed actions {other}, missing actions {missing}. Play this game with engine='textworld'."
        )
    return frozenset(found)


def fingerprint(definition: list[object]) -> str:
    """Returns the digest of an action's definition."""
    return hashlib.sha256(json.dumps(definition).encode()).hexdigest()[:16]

"""The ALFWorld domain that the native engine plays, recognised action by action.

``domain.pddl`` is the whole domain in this project's own layout. What the engine does by hand (`world`, `views`) is
what stands there, and a game whose file says anything else is left to upstream's engine.
"""

from __future__ import annotations

import functools
import hashlib
import json
from importlib import resources

from skillc_gym.envs.alfworld.engine.pddl import parse_expression, sections_of
from skillc_gym.errors import InvalidGameError

__all__ = ["domain_actions", "domain_text", "predicates"]


@functools.cache
def domain_text() -> str:
    """The PDDL domain of every ALFWorld game."""
    return (resources.files(__package__) / "domain.pddl").read_text(encoding="utf-8")


@functools.cache
def predicates() -> dict[str, int]:
    """ALFWorld's predicates and how many things each joins."""
    listed = sections_of(parse_expression(domain_text()), "domain", repeated=(":action",))[":predicates"]
    return {name: sum(word.startswith("?") for word in words) for name, *words in listed}


@functools.lru_cache(maxsize=8)
def domain_actions(domain: str) -> frozenset[str]:
    """Returns the actions of a PDDL domain, having checked that they are ALFWorld's.

    Older game files have no ``help``; every other action must be there and mean what it means in ALFWorld.

    Raises:
        InvalidGameError: If the domain has other actions, or defines one of them differently.
    """
    # A digest of the parsed definition, since files differ in layout, comments and the case of words.
    found, known = _fingerprints(domain), _fingerprints(domain_text())
    other = sorted(name for name, digest in found.items() if known.get(name) != digest)
    missing = sorted(known.keys() - found.keys() - {"help"})
    if other or missing:
        raise InvalidGameError(
            "The game's PDDL domain is not ALFWorld's: "
            f"unknown or changed actions {other}, missing actions {missing}. Play this game with engine='textworld'."
        )
    return frozenset(found)


@functools.lru_cache(maxsize=8)
def _fingerprints(domain: str) -> dict[str, str]:
    """Action -> digest of its definition (parameters, condition, effect), free of layout and comments."""
    definition = parse_expression(domain)
    sections_of(definition, "domain", repeated=(":action",))
    actions = [part for part in definition if part[:1] == [":action"]]
    if any(len(part) < 2 or not isinstance(part[1], str) for part in actions):
        raise InvalidGameError("The game's PDDL domain has an action without a name.")
    found = {part[1]: hashlib.sha256(json.dumps(part[2:]).encode()).hexdigest()[:16] for part in actions}
    if len(found) < len(actions):
        raise InvalidGameError("The game's PDDL domain defines an action twice.")
    return found

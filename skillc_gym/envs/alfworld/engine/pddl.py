"""A small, bounded reader of PDDL, which evaluates nothing, and ALFWorld's domain, recognised action by action.

``domain.pddl`` is the whole domain in this project's own layout. What the engine does by hand (`world`, `views`) is
what stands there, and a game whose file says anything else is left to upstream's engine.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from skillc_gym.errors import InvalidGameError
from skillc_gym.pages import resource

Expression = list[Any]
"""A nested list of lower-case words, as written between brackets."""

Fact = tuple[str, ...]
"""Predicate and arguments: ``("inreceptacle", "mug_bar_1", "desk_bar_1")``."""

MAX_CHARACTERS = 1_000_000
MAX_DEPTH = 60
MAX_OBJECTS = 5_000
MAX_NAME = 120
"""Bounds that no game of ALFWorld comes near: its largest has 101,000 characters, 361 names, the longest of 87."""

_COMMENT = re.compile(r";[^\n]*")
_TOKEN = re.compile(r"[()]|[^\s()]+")


@dataclass(frozen=True)
class Problem:
    """A PDDL problem in lower case, as the planner reads it; facts have arguments by predicate, in the file's order."""

    types: dict[str, str]
    facts: dict[str, dict[Fact, None]]
    goal: Expression

    def holding(self, predicate: str) -> dict[Fact, None]:
        """Returns the argument tuples of a predicate's first facts."""
        return self.facts.get(predicate, {})


def parse_expression(text: str) -> Expression:
    """Reads one bracketed expression; InvalidGameError if brackets do not match, or it is too long or too deep."""
    if len(text) > MAX_CHARACTERS:
        raise InvalidGameError(f"PDDL text has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read.")
    plain = _COMMENT.sub("", text)
    if not plain.isascii():
        raise InvalidGameError("PDDL text has a character outside ASCII; the planner's format allows none.")
    stack: list[Expression] = [[]]
    # The planner reads names without regard to case, and "?o" may follow a word without a blank.
    for token in _TOKEN.findall(plain.replace("?", " ?").lower()):
        if token == "(":
            stack.append([])
            if len(stack) > MAX_DEPTH:
                raise InvalidGameError(f"PDDL text is nested more than {MAX_DEPTH} deep.")
        elif token == ")":
            if len(stack) == 1:
                raise InvalidGameError("PDDL text has a ')' without its '('.")
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    if len(stack) != 1 or len(stack[0]) != 1 or not isinstance(stack[0][0], list):
        raise InvalidGameError("PDDL text is not one complete bracketed expression; the file may be cut off.")
    return stack[0][0]


def parse_problem(text: str) -> Problem:
    """Reads the objects, the first facts and the goal of a problem; InvalidGameError if the text is none."""
    sections = sections_of(parse_expression(text), "problem")
    for name in (":objects", ":init", ":goal"):
        if name not in sections:
            raise InvalidGameError(f"PDDL problem has no ({name} ...) section.")
    if len(sections[":goal"]) != 1 or not isinstance(sections[":goal"][0], list):
        raise InvalidGameError("PDDL problem's goal is not one condition.")
    types = typed_names(sections[":objects"], "PDDL problem's objects")
    _check_names(types)
    return Problem(types, _facts(sections[":init"], types), sections[":goal"][0])


def sections_of(expression: Expression, what: str, *, repeated: Collection[str] = ()) -> dict[str, Expression]:
    """Returns what stands in each section of a definition, without its name; those of ``repeated`` are left out.

    Of sections given twice, readers differ in which one counts: a second goal could win a game that was never played.
    """
    sections: dict[str, Expression] = {}
    for part in expression:
        if not isinstance(part, list) or not part or not isinstance(part[0], str) or part[0] in repeated:
            continue
        if part[0] in sections:
            raise InvalidGameError(f"PDDL {what} has the section ({part[0]} ...) twice.")
        sections[part[0]] = part[1:]
    return sections


def _check_names(names: Collection[str]) -> None:
    if len(names) > MAX_OBJECTS:
        raise InvalidGameError(f"PDDL problem declares {len(names):,} objects; at most {MAX_OBJECTS:,} are read.")
    longest = max(names, key=len, default="")
    if len(longest) > MAX_NAME:
        raise InvalidGameError(f"PDDL problem has the name {longest[:40]!r}... of {len(longest):,} characters.")


def typed_names(words: object, what: str) -> dict[str, str]:
    """Returns the type of every name in a list such as ``a b - kind``; InvalidGameError if it is no such list."""
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InvalidGameError(f"{what} are not plain names with types.")
    types: dict[str, str] = {}
    waiting: list[str] = []
    stream = iter([*words, "-", "object"])
    for word in stream:
        if word != "-":
            waiting.append(word)
            continue
        kind = next(stream)
        for name in waiting:
            if name in types:
                raise InvalidGameError(f"{what} have {name!r:.80} twice.")
            types[name] = kind
        waiting = []
    return types


def _facts(items: Expression, types: dict[str, str]) -> dict[str, dict[Fact, None]]:
    facts: dict[str, dict[Fact, None]] = {}
    for item in items:
        if not isinstance(item, list) or not item or not isinstance(item[0], str):
            raise InvalidGameError(f"PDDL problem's first facts hold {item!r}, which is no fact.")
        if item[0] == "=":  # costs and distances; nothing that a player sees depends on them
            continue
        arguments = tuple(item[1:])
        for name in arguments:
            if not isinstance(name, str) or name not in types:
                raise InvalidGameError(f"PDDL problem's fact {item!r} names {name!r}, which is not declared.")
        # A dict, as a set that keeps the order of the file.
        facts.setdefault(item[0], {})[arguments] = None
    return facts


_SINK = "(receptacleType ?r SinkType) "
"""Stands in the games that are downloaded, and not in the domain that upstream's package writes games with."""


def domain_text() -> str:
    """The PDDL domain of the ALFWorld games that are downloaded."""
    return resource(__package__, "domain.pddl")


@functools.cache
def predicates() -> dict[str, int]:
    """ALFWorld's predicates and how many things each joins."""
    listed = sections_of(parse_expression(domain_text()), "domain", repeated=(":action",))[":predicates"]
    return {name: sum(word.startswith("?") for word in words) for name, *words in listed}


@functools.lru_cache(maxsize=8)
def domain_actions(domain: str) -> frozenset[str]:
    """Returns the actions of a PDDL domain; InvalidGameError if they are not ALFWorld's.

    Older game files have no ``help``; every other action must be there and mean what it means in ALFWorld.
    """
    # A digest of the parsed definition, since files differ in layout, comments and the case of words.
    found, known = _fingerprints(domain), _fingerprints(domain_text())
    basins = _fingerprints(domain_text().replace(_SINK, ""))
    other = sorted(name for name, digest in found.items() if digest not in (known.get(name), basins.get(name)))
    missing = sorted(known.keys() - found.keys() - {"help"})
    if other or missing:
        raise InvalidGameError(
            "The game's PDDL domain is not ALFWorld's: "
            f"unknown or changed actions {other}, missing actions {missing}. Play this game with engine='textworld'."
        )
    return frozenset(found)


def cleaning_kinds(domain: str) -> tuple[str, ...]:
    """The types of receptacle at which a domain of :func:`domain_actions` has things cleaned."""
    downloaded = _fingerprints(domain)["cleanobject"] == _fingerprints(domain_text())["cleanobject"]
    return ("sinktype", "sinkbasintype") if downloaded else ("sinkbasintype",)


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

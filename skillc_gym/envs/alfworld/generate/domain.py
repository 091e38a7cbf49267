"""The ALFWorld domain as PDDL text, written out from a table of its actions."""

from __future__ import annotations

import functools

__all__ = ["domain_text"]

_TYPES = "agent location receptacle object rtype otype"
_PREDICATES = (
    "atLocation ?a - agent ?l - location",
    "receptacleAtLocation ?r - receptacle ?l - location",
    "objectAtLocation ?o - object ?l - location",
    "openable ?r - receptacle",
    "opened ?r - receptacle",
    "inReceptacle ?o - object ?r - receptacle",
    "isReceptacleObject ?o - object",
    "inReceptacleObject ?innerObject - object ?outerObject - object",
    "isReceptacleObjectFull ?o - object",
    "wasInReceptacle ?o - object ?r - receptacle",
    "checked ?r - receptacle",
    "examined ?l - location",
    "receptacleType ?r - receptacle ?t - rtype",
    "canContain ?rt - rtype ?ot - otype",
    "objectType ?o - object ?t - otype",
    "holds ?a - agent ?o - object",
    "holdsAny ?a - agent",
    "holdsAnyReceptacleObject ?a - agent",
    "full ?r - receptacle",
    "isClean ?o - object",
    "cleanable ?o - object",
    "isHot ?o - object",
    "heatable ?o - object",
    "isCool ?o - object",
    "coolable ?o - object",
    "pickupable ?o - object",
    "moveable ?o - object",
    "toggleable ?o - object",
    "isOn ?o - object",
    "isToggled ?o - object",
    "sliceable ?o - object",
    "isSliced ?o - object",
)
_AGENT = "?a - agent"
_HERE = f"{_AGENT} ?l - location"
_AT = "(atLocation ?a ?l) (receptacleAtLocation ?r ?l)"
_ACCESSIBLE = "(or (not (openable ?r)) (opened ?r))"
_COST = "(increase (total-cost) {})"


def _treatment(able: str, appliances: str, effect: str) -> tuple[str, str, str]:
    kinds = " ".join(f"(receptacleType ?r {kind}Type)" for kind in appliances.split())
    return (
        f"{_HERE} ?r - receptacle ?o - object",
        f"(and ({able} ?o) (or {kinds}) {_AT} (holds ?a ?o))",
        f"(and {_COST.format(5)} {effect})",
    )


_ACTIONS = {
    "look": (_HERE, "(and (atLocation ?a ?l))", "(and (checked ?l))"),
    "inventory": (_AGENT, "()", "(and (checked ?a))"),
    "examineReceptacle": (
        f"{_AGENT} ?r - receptacle",
        f"(and (exists (?l - location) (and {_AT})))",
        "(and (checked ?r))",
    ),
    "examineObject": (
        f"{_AGENT} ?o - object",
        f"(or (exists (?l - location, ?r - receptacle) (and {_AT} (inReceptacle ?o ?r) {_ACCESSIBLE})) (holds ?a ?o))",
        "(and (checked ?o))",
    ),
    "GotoLocation": (
        f"{_AGENT} ?lStart - location ?lEnd - location ?r - receptacle",
        "(and (atLocation ?a ?lStart) (receptacleAtLocation ?r ?lEnd))",
        f"(and (not (atLocation ?a ?lStart)) (atLocation ?a ?lEnd) {_COST.format(1)})",
    ),
    "OpenObject": (
        f"{_HERE} ?r - receptacle",
        f"(and (openable ?r) {_AT} (not (opened ?r)))",
        f"(and (opened ?r) (checked ?r) {_COST.format(1)})",
    ),
    "CloseObject": (
        f"{_HERE} ?r - receptacle",
        f"(and (openable ?r) {_AT} (opened ?r))",
        f"(and (not (opened ?r)) {_COST.format(1)})",
    ),
    "PickupObject": (
        f"{_HERE} ?o - object ?r - receptacle",
        f"(and (pickupable ?o) {_AT} (inReceptacle ?o ?r) (not (holdsAny ?a)) {_ACCESSIBLE})",
        "(and (not (inReceptacle ?o ?r)) (holds ?a ?o) (holdsAny ?a) (not (objectAtLocation ?o ?l)) "
        f"{_COST.format(1)})",
    ),
    "PutObject": (
        f"{_HERE} ?o - object ?r - receptacle ?ot - otype ?rt - rtype",
        f"(and (holds ?a ?o) {_AT} {_ACCESSIBLE} (objectType ?o ?ot) (receptacleType ?r ?rt) (canContain ?rt ?ot))",
        "(and (inReceptacle ?o ?r) (objectAtLocation ?o ?l) (not (holds ?a ?o)) (not (holdsAny ?a)) "
        f"{_COST.format(1)})",
    ),
    "CleanObject": _treatment("cleanable", "Sink SinkBasin", "(isClean ?o)"),
    "HeatObject": _treatment("heatable", "Microwave", "(isHot ?o) (not (isCool ?o))"),
    "CoolObject": _treatment("coolable", "Fridge", "(isCool ?o) (not (isHot ?o))"),
    "ToggleObject": (
        f"{_HERE} ?o - object ?r - receptacle",
        f"(and (toggleable ?o) {_AT} (inReceptacle ?o ?r))",
        f"(and {_COST.format(5)} (when (isOn ?o) (not (isOn ?o))) (when (not (isOn ?o)) (isOn ?o)) (isToggled ?o))",
    ),
    "SliceObject": (
        f"{_HERE} ?co - object ?ko - object",
        "(and (sliceable ?co) (or (objectType ?ko KnifeType) (objectType ?ko ButterKnifeType)) (atLocation ?a ?l) "
        "(objectAtLocation ?co ?l) (holds ?a ?ko))",
        f"(and {_COST.format(5)} (isSliced ?co))",
    ),
    "help": (_AGENT, "()", "(and (checked ?a))"),
}
"""Action -> parameters, precondition, effect."""


@functools.cache
def domain_text() -> str:
    """Returns the PDDL domain of every ALFWorld game, in the project's own layout."""
    types = "\n".join(f"  {name}" for name in _TYPES.split())
    predicates = "\n".join(f"  ({predicate})" for predicate in _PREDICATES)
    actions = "\n\n".join(
        f"(:action {name}\n  :parameters ({parameters})\n  :precondition {condition}\n  :effect {effect}\n)"
        for name, (parameters, condition, effect) in _ACTIONS.items()
    )
    return (
        "(define (domain alfred)\n(:requirements :adl :action-costs :typing)\n\n"
        f"(:types\n{types}\n)\n\n(:predicates\n{predicates}\n)\n\n"
        f"(:functions (distance ?from ?to) (total-cost) - number)\n\n{actions}\n)\n"
    )

"""Turns the goal of a PDDL problem into a quick test of a state.

Everything that never changes is decided once, when the game is read; what is left asks the state alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from skillc_gym.envs.alfworld.engine.pddl import Expression, predicates, typed_names
from skillc_gym.envs.alfworld.engine.tables import State, Tables
from skillc_gym.errors import InvalidGameError

Test = Callable[[State], bool]
Binding = dict[str, str]

MAX_TERMS = 1_000_000
"""ALFWorld's goals have at most 6,500; among generated ones of the largest houses some have more than 500,000."""
MAX_VARIABLES = 20
"""Of one quantifier; ALFWorld's goals have at most 4."""

# What changes while a game is played, and the actions that change it. Every other predicate is settled at the start:
# its truth is looked up once and folded into the test, and the test is asked again only after one of these actions.
_CHANGED_BY = {
    "atlocation": ("gotolocation",),
    "opened": ("openobject", "closeobject"),
    "inreceptacle": ("pickupobject", "putobject"),
    "objectatlocation": ("pickupobject", "putobject"),
    "holds": ("pickupobject", "putobject"),
    "holdsany": ("pickupobject", "putobject"),
    "isclean": ("cleanobject",),
    "ishot": ("heatobject", "coolobject"),
    "iscool": ("heatobject", "coolobject"),
    "issliced": ("sliceobject",),
    "istoggled": ("toggleobject",),
    "ison": ("toggleobject",),
}
_SIZES = {"not": 1, "imply": 2, "exists": 2, "forall": 2, "=": 2}
"""How many parts a form has, where the number is fixed."""


@dataclass(frozen=True)
class Goal:
    """A goal that can be asked of any state of its game, and the actions that can change the answer."""

    reached: Test
    depends_on: frozenset[str]


def compile_goal(tables: Tables) -> Goal:
    """Compiles a problem's goal; InvalidGameError for conditions that ALFWorld does not have, and for too many."""
    compiler = _Compiler(tables)
    try:
        test = compiler.test(tables.problem.goal, {})
    except RecursionError as error:
        raise InvalidGameError("The goal's conditions are nested too deep.") from error
    reached = test if callable(test) else lambda _state: bool(test)
    return Goal(reached, frozenset(compiler.depends_on))


class _Compiler:
    def __init__(self, tables: Tables) -> None:
        self._tables, self._problem = tables, tables.problem
        self._terms = 0
        self.depends_on: set[str] = set()

    def test(self, condition: Expression, binding: Binding) -> Test | bool:  # noqa: PLR0911 - one per form
        self._spend()
        if not isinstance(condition, list):
            raise InvalidGameError(f"The goal has {condition!r} where a condition was expected.")
        if not condition:
            return True
        head, rest = condition[0], condition[1:]
        if not isinstance(head, str) or len(rest) != _SIZES.get(head, len(rest)):
            raise InvalidGameError(f"The goal's condition {condition!r:.200} is incomplete or has too many parts.")
        match head:
            case "and" | "or":
                return _joined([self.test(part, binding) for part in rest], decisive=head == "or")
            case "not":
                return _negated(self.test(rest[0], binding))
            case "imply":
                return _joined([_negated(self.test(rest[0], binding)), self.test(rest[1], binding)], decisive=True)
            # Ground out here, once: trying all bindings at every step would cost thousands of times what a step does.
            case "exists":
                variables, body = _merged(rest)
                tests = [self.test(body, found) for found in self._matches(variables, body, binding)]
                return _joined(tests, decisive=True)
            # Nothing narrows these: the body need not hold, so each combination of names has to be looked at.
            case "forall":
                variables, body = _typed(rest[0]), rest[1]
                tests = [self.test(body, found) for found in self._assignments(variables, binding)]
                return _joined(tests, decisive=False)
            case "=":
                return _value(rest[0], binding) == _value(rest[1], binding)
            case _:
                return self._fact(head, tuple(_value(word, binding) for word in rest))

    def _spend(self, terms: int = 1) -> None:
        self._terms += terms
        if self._terms > MAX_TERMS:
            raise InvalidGameError(f"The goal has more than {MAX_TERMS:,} ground conditions.")

    def _fact(self, predicate: str, names: tuple[str, ...]) -> Test | bool:
        if len(names) != predicates().get(predicate):
            raise InvalidGameError(
                f"The goal's condition {(predicate, *names)!r:.200} is none of ALFWorld's. "
                "Play this game with engine='textworld'."
            )
        if predicate not in _CHANGED_BY:
            if predicate == "checked":
                raise InvalidGameError("The goal asks for 'checked', which the native engine does not keep.")
            return names in self._problem.holding(predicate)
        self.depends_on.update(_CHANGED_BY[predicate])
        return _changing(predicate, names, self._tables)

    def _matches(self, variables: dict[str, str], body: Expression, binding: Binding) -> Iterator[Binding]:
        """Yields the bindings under which every unchanging fact of a conjunction holds."""
        open_variables = {name: kind for name, kind in variables.items() if name not in binding}
        self._spend(len(_conjuncts(body)))
        facts = [part for part in _conjuncts(body) if self._narrows(part, open_variables)]
        if not facts:
            yield from self._assignments(open_variables, binding)
            return
        # As a join in a database: the fact with the fewest open variables and the fewest rows comes first. Names in no
        # fact are never tried, which keeps ALFWorld's goals of up to four variables at some thousand terms.
        holding = self._problem.holding
        best = min(facts, key=lambda part: (sum(word in open_variables for word in part[1:]), len(holding(part[0]))))
        for names in holding(best[0]):
            self._spend()
            found = _unified(best[1:], names, binding)
            if found is not None and self._fits(found, open_variables):
                yield from self._matches(open_variables, body, found)

    def _narrows(self, part: Expression, variables: Mapping[str, str]) -> bool:
        if not part or not isinstance(part[0], str) or len(part) - 1 != predicates().get(part[0]):
            return False
        if not all(isinstance(word, str) for word in part):
            return False
        known = part[0] in self._problem.facts and part[0] not in _CHANGED_BY
        return known and any(word in variables for word in part[1:])

    # Here and in _assignments "object" admits a thing of any type, as it does upstream: it is PDDL's type above all
    # others, and that the domain declares a type of this name does not narrow it.
    def _fits(self, binding: Binding, variables: Mapping[str, str]) -> bool:
        return all(
            kind in ("object", self._problem.types[binding[name]])
            for name, kind in variables.items()
            if name in binding
        )

    def _assignments(self, variables: dict[str, str], binding: Binding) -> Iterator[Binding]:
        if not variables:
            yield binding
            return
        name, kind = next(iter(variables.items()))
        rest = {other: its for other, its in variables.items() if other != name}
        for candidate, its in self._problem.types.items():
            if kind in ("object", its):
                self._spend()
                yield from self._assignments(rest, {**binding, name: candidate})


def _merged(rest: Sequence[Expression]) -> tuple[dict[str, str], Expression]:
    """Joins nested ``exists``, of which upstream has one per variable: facts of inner ones narrow outer ones, too."""
    variables, body = _typed(rest[0]), rest[1]
    while body[:1] == ["exists"] and len(body) == 3 and not (inner := _typed(body[1])).keys() & variables.keys():
        variables, body = {**variables, **inner}, body[2]
    if len(variables) > MAX_VARIABLES:
        raise InvalidGameError(f"The goal binds {len(variables)} variables at once; at most {MAX_VARIABLES} are read.")
    return variables, body


def _typed(words: Expression) -> dict[str, str]:
    most = 3 * MAX_VARIABLES  # words: a name, a dash and a type
    variables = typed_names(words, "The goal's variables") if len(words) <= most else {}
    if len(variables) > MAX_VARIABLES or len(words) > most:
        raise InvalidGameError(f"The goal binds more than {MAX_VARIABLES} variables at once.")
    return variables


def _conjuncts(body: Expression) -> list[Expression]:
    parts = body[1:] if body[:1] == ["and"] else [body]
    return [part for part in parts if isinstance(part, list)]


def _unified(words: Sequence[str], names: Sequence[str], binding: Binding) -> Binding | None:
    found = dict(binding)
    for word, name in zip(words, names, strict=True):
        if (found.setdefault(word, name) if word.startswith("?") else word) != name:
            return None
    return found


def _value(word: object, binding: Binding) -> str:
    if not isinstance(word, str) or (word.startswith("?") and word not in binding):
        raise InvalidGameError(f"The goal names {word!r:.80}, which is neither an object nor a bound variable.")
    return binding.get(word, word)


def _changing(predicate: str, names: tuple[str, ...], tables: Tables) -> Test | bool:
    last = names[-1]
    if predicate == "atlocation":
        place = tables.places.get(last)
        return False if place is None else lambda state: state.place == place
    if predicate == "holdsany":
        return lambda state: state.held >= 0
    if predicate == "opened":
        receptacle = tables.receptacles.get(last)
        return False if receptacle is None else lambda state: bool(state.opened >> receptacle & 1)
    thing = tables.objects.get(names[1] if predicate == "holds" else names[0])
    return False if thing is None else _of_object(predicate, thing, last, tables)


def _of_object(predicate: str, thing: int, where: str, tables: Tables) -> Test | bool:
    if predicate == "holds":
        return lambda state: state.held == thing
    if predicate == "inreceptacle":
        receptacle = tables.receptacles.get(where)
        return False if receptacle is None else lambda state: thing in state.inside[receptacle]
    if predicate == "objectatlocation":
        place = tables.places.get(where)
        return False if place is None else lambda state: thing in state.lying[place]
    # "isclean" is kept as "clean" and so on. By index, since reading a named tuple by name at every step is slower.
    slot = State._fields.index("lit" if predicate == "ison" else predicate.removeprefix("is"))
    return lambda state: bool(state[slot] >> thing & 1)  # type: ignore[operator]


def _joined(tests: Sequence[Test | bool], decisive: bool) -> Test | bool:
    """One test of several: ``decisive`` where any of them is (False for "and", True for "or"), else its opposite."""
    if any(test is decisive for test in tests):
        return decisive
    asked = [test for test in tests if callable(test)]
    if len(asked) < 2:
        return asked[0] if asked else not decisive

    def holds(state: State) -> bool:
        # A generator here would cost a third of a step.
        for test in asked:
            if test(state) is decisive:
                return decisive
        return not decisive

    return holds


def _negated(test: Test | bool) -> Test | bool:
    return (lambda state: not test(state)) if callable(test) else not test

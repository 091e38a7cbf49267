"""The sentences of a game: which there are, when each is said, and how lists are written.

The conditions under which ALFWorld says a sentence are fixed and known; the words are read from the game's own
grammar, so that files of either wording ("move O to R", or "put O in/on R") come out as upstream says them.
"""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass

from skillc_gym.envs.alfworld.engine.grammar import Grammar, Part, conditions_of, parse_grammar, split_sentence
from skillc_gym.errors import InvalidGameError

ACTIONS: dict[str, tuple[str, ...]] = {
    "gotolocation": ("r", "lend"),
    "openobject": ("r",),
    "closeobject": ("r",),
    "pickupobject": ("o", "r"),
    "putobject": ("o", "r"),
    "examinereceptacle": ("r",),
    "examineobject": ("o",),
    "toggleobject": ("o",),
    "heatobject": ("o", "r"),
    "cleanobject": ("o", "r"),
    "coolobject": ("o", "r"),
    "sliceobject": ("co", "ko"),
    "inventory": (),
    "look": (),
    "help": (),
}
"""ALFWorld's actions and the variables that their sentences may name."""

_HERE = "atlocation(a:agent, l:location) & receptacleatlocation(r:receptacle, l:location)"
_ON_THE_FLOOR = (
    "atlocation(a:agent, l:location) & objectatlocation(o:object, l:location) & "
    "receptacleatlocation(r:receptacle, l:location) & not_inreceptacle(o:object, r:receptacle)"
)

_LISTS = {
    ("{o.indefinite + ' ' + o.name}", "holds(a:agent, o:object)"): "things",
    ("{o.indefinite + ' ' + o.name}", "inreceptacle(o:object, r:receptacle)"): "things",
    ("{o2.indefinite + ' ' + o2.name}", "inreceptacleobject(o2:object, o:object)"): "things",
    ("{r.name}", _HERE): "places",
    ("{#overview(o)#}", _ON_THE_FLOOR): "things",
    ("{#overview(r)#}", "receptacleatlocation(r:receptacle, l:location)"): "things",
    ("{r.name}", "receptacleatlocation(r:receptacle, lend:location)"): "r",
}
"""Lists that a sentence may hold, and the field that stands for each."""

_RULES = {
    "examineReceptacle.feedback": "contents",
    "look.feedback": "view",
    "task": "task",
    "look-variations": "facing",
    "list_objects_on_the_floor": "floor",
    "list_appliances": "appliances",
}
"""Rules that a sentence may refer to, and the field that stands for each."""

_FIELDS: dict[str, tuple[str, ...]] = {
    "gotolocation": ("lstart", "contents"),
    "openobject": ("contents",),
    "closeobject": ("contents",),
    "examinereceptacle": ("things",),
    "examineobject": ("things",),
    "inventory": ("things",),
    "look": ("facing", "floor", "appliances"),
    "intro": ("view", "task"),
    "examineReceptacle.feedback": ("r", "things"),
    "look.feedback": ("facing", "floor", "appliances"),
    "look-variations": ("places",),
    "list_objects_on_the_floor": ("things",),
    "list_appliances": ("things",),
    "overview(o)": ("o",),
    "overview(r)": ("r",),
}
"""What the sentences of an action (besides its variables) or of a rule may hold."""

_OWN_RULES = {
    "examinereceptacle": "examineReceptacle.feedback",
    "examineobject": "examineObject.feedback",
    "inventory": "inventory.feedback",
    "look": "look.feedback",
    "toggleobject": "toggleObject.feedback",
}
"""Actions that say one of several sentences, and the rule that has them."""

_OVERVIEWS = {"overview(o)": "a {o}", "overview(r)": "a {r}"}
_VALUE = re.compile(r"(\w+)(?:\.name)?(?: or \1\.id)?")
_TASK = re.compile(r'("task":\s*\[\s*\{\s*"rhs":\s*")((?:[^"\\]++|\\.)*+)("\s*\}\s*\])')
_PREFIX = "Your task is to:"


@dataclass(frozen=True)
class Wording:
    """The words of a game, as templates for `str.format`: an action's command, its feedbacks, other rules' sentences.

    ``separators``: what an empty list says, what stands between things, and before the last.
    """

    commands: dict[str, str]
    says: dict[str, tuple[str, ...]]
    rules: dict[str, tuple[str, ...]]
    separators: tuple[str, str, str]

    def listing(self, things: Sequence[str]) -> str:
        """Writes a list as the game does: ``a X, a Y, and a Z``."""
        empty, between, last = self.separators
        if len(things) < 2:
            return things[0] if things else empty
        return between.join(things[:-1]) + last + things[-1]


def read_wording(text: str) -> tuple[Wording, str]:
    """Reads a grammar's words and its task sentence; InvalidGameError if it says what ALFWorld's does not.

    Games share all of their grammar but the task's sentence, so the rest is read once per process.
    """
    # Cutting the sentence out of the text is quick; parsing the 13,000 characters around it for each game is not.
    found = _TASK.search(text)
    if found is None or text.count('"task"') > 1:  # which of several counts, the whole grammar alone tells
        return _wording(text), _task(text)
    task = _task(f'grammar :: """{{{found[0]}}}""";')
    return _wording(text[: found.start(2)] + text[found.end(2) :]), task


def goal_of(task: str) -> str:
    """Returns the task without its prefix ``Your task is to:``."""
    return task.removeprefix(_PREFIX).strip()


def _task(text: str) -> str:
    alternatives = parse_grammar(text).rules.get("task", ())
    if len(alternatives) != 1 or alternatives[0].condition:
        raise InvalidGameError("Grammar's rule 'task' is not one sentence.")
    parts = split_sentence(alternatives[0].sentence)
    if any(part.kind != "text" for part in parts):
        raise InvalidGameError("Grammar's rule 'task' is not plain text.")
    return "".join(part.body for part in parts)


@functools.lru_cache(maxsize=8)
def _wording(text: str) -> Wording:
    grammar = parse_grammar(text)
    needed = [*_RULES, *_OVERVIEWS, "intro", "list_empty", "list_separator", "list_last_separator"]
    rules = {name: _checked(name, _templates(grammar, name), ()) for name in needed}
    for name, expected in _OVERVIEWS.items():
        if rules[name] != (expected,):
            raise InvalidGameError(f"Grammar's rule {name!r} says {rules[name]}; {expected!r} was expected.")
    actions = {name: grammar.actions[name] for name in ACTIONS if name in grammar.actions}
    return Wording(
        commands={name: _command(name, action.template) for name, action in actions.items()},
        says={name: _checked(name, _said(grammar, name, actions[name].feedback), ACTIONS[name]) for name in actions},
        rules=rules,
        separators=(rules["list_empty"][0], rules["list_separator"][0], rules["list_last_separator"][0]),
    )


def _templates(grammar: Grammar, name: str) -> tuple[str, ...]:
    if name == "task":
        return ("",)  # the one rule that differs from game to game; it is read apart
    alternatives = grammar.rules.get(name)
    if alternatives is None:
        raise InvalidGameError(f"Grammar has no rule {name!r}.")
    conditions = tuple(alternative.condition for alternative in alternatives)
    if conditions != conditions_of(name):
        raise InvalidGameError(
            f"Grammar's rule {name!r} depends on {conditions}; the native engine knows {conditions_of(name)}. "
            "Play this game with engine='textworld'."
        )
    return tuple(_template(name, split_sentence(alternative.sentence)) for alternative in alternatives)


def _command(name: str, template: str) -> str:
    command = _template(f"template of {name}", split_sentence(template))
    if wrong := _fields(command) - {*ACTIONS[name]}:
        raise InvalidGameError(f"Grammar's command {template!r} names {sorted(wrong)}, which {name} does not have.")
    return command


def _checked(name: str, templates: tuple[str, ...], variables: tuple[str, ...]) -> tuple[str, ...]:
    wrong = set().union(*map(_fields, templates)) - {*variables, *_FIELDS.get(name, ())}
    if wrong:
        raise InvalidGameError(f"Grammar's sentence for {name} names {sorted(wrong)}, which it does not have.")
    return templates


def _fields(template: str) -> set[str]:
    found = [field for _, field, _, _ in string.Formatter().parse(template) if field is not None]
    if len(found) > len(set(found)):  # and what one names, others may name again: lengths would multiply
        raise InvalidGameError(f"Grammar's sentence {template!r:.80} names a thing twice, which ALFWorld's never do.")
    return set(found)


def _said(grammar: Grammar, name: str, feedback: str) -> tuple[str, ...]:
    parts = split_sentence(feedback)
    rule = parts[0].body if [part.kind for part in parts] == ["rule"] else None
    if rule != _OWN_RULES.get(name, rule):
        raise InvalidGameError(
            f"Grammar's action {name!r} says {feedback!r:.80}; '#{_OWN_RULES[name]}#' was expected. "
            "Play this game with engine='textworld'."
        )
    if rule is not None:
        said = _templates(grammar, rule)
        if len(said) > 1 and name not in _OWN_RULES:
            raise InvalidGameError(
                f"Grammar's action {name!r} says one of {len(said)} sentences of {rule!r}; one sentence was expected. "
                "Play this game with engine='textworld'."
            )
        return said
    if any(part.kind == "rule" for part in parts):
        raise InvalidGameError(f"Grammar's action {name!r} says {feedback!r}; one rule or plain text was expected.")
    return (_template(f"feedback of {name}", parts),)


def _template(name: str, parts: Sequence[Part]) -> str:
    return "".join(_field(name, part) for part in parts)


def _field(name: str, part: Part) -> str:
    if part.kind == "text":
        return part.body.replace("{", "{{").replace("}", "}}")
    if part.kind == "rule" and part.body in _RULES:
        return f"{{{_RULES[part.body]}}}"
    if part.kind == "list" and (field := _LISTS.get((f"{{{part.body}}}", part.given))):
        return f"{{{field}}}"
    if part.kind == "value" and not part.given:
        if part.body.endswith(".indefinite"):
            return "a"
        if match := _VALUE.fullmatch(part.body):
            return f"{{{match[1]}}}"
    raise InvalidGameError(
        f"Grammar's {name} holds {part.body!r}{f' for {part.given!r}' if part.given else ''}, which the native engine "
        "does not know. Play this game with engine='textworld'."
    )

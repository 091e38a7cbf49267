"""The sentences of ALFWorld as a TextWorld grammar, written out from tables.

What the sentences say is fixed by upstream, so that a generated game answers in the very words of a real one.
"""

from __future__ import annotations

import functools
import json

__all__ = ["grammar_text"]

_CONTENTS = "[{o.indefinite + ' ' + o.name | inreceptacle(o:object, r:receptacle)}]"
_OPENABLE = "openable(r:receptacle)"
_HERE = "atlocation(a:agent, l:location) & receptacleatlocation(r:receptacle, l:location)"
_ON_THE_FLOOR = (
    "atlocation(a:agent, l:location) & objectatlocation(o:object, l:location) & "
    "receptacleatlocation(r:receptacle, l:location) & not_inreceptacle(o:object, r:receptacle)"
)
_STATES = (
    ("isclean ishot issliced", "a hot and clean sliced"),
    ("isclean iscool issliced", "a cool and clean sliced"),
    ("isclean issliced", "a clean sliced"),
    ("ishot issliced", "a hot sliced"),
    ("iscool issliced", "a cool sliced"),
    ("isclean ishot", "a hot and clean"),
    ("isclean iscool", "a cool and clean"),
    ("ishot", "a hot"),
    ("isclean", "a clean"),
    ("iscool", "a cold"),
)
_COMMANDS = {
    "GotoLocation": "go to [{r.name | receptacleatlocation(r:receptacle, lend:location)}]",
    "OpenObject": "open {r}",
    "CloseObject": "close {r}",
    "PickupObject": "take {o} from {r}",
    "PutObject": "move {o} to {r}",
    "inventory": "inventory",
    "examineReceptacle": "examine {r}",
    "examineObject": "examine {o}",
    "ToggleObject": "use {o}",
    "HeatObject": "heat {o} with {r}",
    "CleanObject": "clean {o} with {r}",
    "CoolObject": "cool {o} with {r}",
    "SliceObject": "slice {co} with {ko}",
    "look": "look",
}
_HELP = {
    "look": "look around your current location",
    "inventory": "check your current inventory",
    "go to (receptacle)": "move to a receptacle",
    "open (receptacle)": "open a receptacle",
    "close (receptacle)": "close a receptacle",
    "take (object) from (receptacle)": "take an object from a receptacle",
    "move (object) to (receptacle)": "place an object in or on a receptacle",
    "examine (something)": "examine a receptacle or an object",
    "use (object)": "use an object",
    "heat (object) with (receptacle)": "heat an object using a receptacle",
    "clean (object) with (receptacle)": "clean an object using a receptacle",
    "cool (object) with (receptacle)": "cool an object using a receptacle",
    "slice (object) with (object)": "slice an object using a sharp object",
}
# Upstream's table of commands has a second column at this place, but for one line that is two short of it.
_HELP_COLUMN, _SHORT_LINE = 36, "move (object) to (receptacle)"

_Rule = list[dict[str, str]]


def _says(sentence: str) -> _Rule:
    return [{"rhs": sentence}]


def _cases(*cases: tuple[str, str]) -> _Rule:
    return [
        {"condition": condition, "rhs": sentence} if condition else {"rhs": sentence} for condition, sentence in cases
    ]


def _examine_object() -> _Rule:
    inside = "[{o2.indefinite + ' ' + o2.name | inreceptacleobject(o2:object, o:object)}]"
    states = [
        (" & ".join(f"{flag}(o:object)" for flag in flags.split()), f"This is {words} {{o.name}}.")
        for flags, words in _STATES
    ]
    return _cases(
        ("isreceptacleobject(o:object)", f"This is a normal {{o.name}}. In it, you see {inside}."),
        *states,
        ("toggleable(o:object) & istoggled(o:object)", "This {o.name} is on."),
        ("toggleable(o:object) & not_istoggled(o:object)", "This {o.name} is off."),
        ("sliceable(o:object) & issliced(o:object)", "This is a sliced {o.name}."),
        ("", "There's nothing special about {o.name}."),
    )


def _look() -> dict[str, _Rule]:
    overview = "You are in the middle of a room. Looking quickly around you, you see #list_appliances#."
    return {
        "look.feedback": _cases(
            (_HERE, "#look-variations#. Next to it, you see #list_objects_on_the_floor#."), ("", overview)
        ),
        "look-variations": _says(f"You are facing the [{{r.name | {_HERE}}}]"),
        "list_objects_on_the_floor": _cases((_ON_THE_FLOOR, f"[{{#overview(o)# | {_ON_THE_FLOOR}}}]"), ("", "nothing")),
        "list_appliances": _cases(
            (
                "receptacleatlocation(r:receptacle, l:location)",
                "[{#overview(r)# | receptacleatlocation(r:receptacle, l:location)}]",
            ),
            ("", "nothing"),
        ),
        "overview(o)": _says("{o.indefinite} {o.name}"),
        "overview(r)": _says("{r.indefinite} {r.name or r.id}"),
        "list_empty": _says("nothing"),
        "list_separator": _says(", "),
        "list_last_separator": _says(", and "),
    }


def _treatment(verb: str) -> _Rule:
    return _says(f"You {verb} the {{o.name}} using the {{r.name}}.")


@functools.cache
def _rules() -> dict[str, _Rule]:
    toggle = _cases(
        ("toggleable(o:object) & istoggled(o:object)", "You turn on the {o.name}."),
        ("toggleable(o:object)", "You turn off the {o.name}."),
        ("", "You don't see any switch on the {o.name}."),
    )
    return {
        "intro": _says("-= Welcome to TextWorld, ALFRED! =-\n\n#look.feedback#\n\n#task#"),
        "GotoLocation.feedback": _says("You arrive at {r.name}. #examineReceptacle.feedback#"),
        "OpenObject.feedback": _says("You open the {r.name}. #examineReceptacle.feedback#"),
        "CloseObject.feedback": _says("You close the {r.name}."),
        "PickupObject.feedback": _says("You pick up the {o.name} from the {r.name}."),
        "PutObject.feedback": _says("You move the {o.name} to the {r.name}."),
        "inventory.feedback": _cases(
            ("holdsany(a:agent)", "You are carrying: [{o.indefinite + ' ' + o.name | holds(a:agent, o:object)}]."),
            ("", "You are not carrying anything."),
        ),
        "examineReceptacle.feedback": _cases(
            (f"{_OPENABLE} & opened(r:receptacle)", f"The {{r.name}} is open. In it, you see {_CONTENTS}."),
            (_OPENABLE, "The {r.name} is closed."),
            ("", f"On the {{r.name}}, you see {_CONTENTS}."),
        ),
        "examineObject.feedback": _examine_object(),
        "toggleObject.feedback": toggle,
        "heatObject.feedback": _treatment("heat"),
        "cleanObject.feedback": _treatment("clean"),
        "coolObject.feedback": _treatment("cool"),
        "sliceObject.feedback": _says("You sliced the {co.name} with the {ko.name}."),
        **_look(),
    }


def _help() -> str:
    def line(command: str, meaning: str) -> str:
        column = _HELP_COLUMN - 2 if command == _SHORT_LINE else _HELP_COLUMN
        return f"{'  ' + command + ':':<{column}}{meaning}\n"

    return "\nAvailable commands:\n" + "".join(line(command, meaning) for command, meaning in _HELP.items())


def _rule_of(action: str) -> str:
    # Upstream's files name the rules of these five with a small first letter.
    small = action in ("ToggleObject", "HeatObject", "CleanObject", "CoolObject", "SliceObject")
    return f"{action[0].lower() + action[1:] if small else action}.feedback"


def grammar_text(task: str) -> str:
    """Returns the grammar of a game.

    Args:
        task: The task sentence, without "Your task is to: ".
    """
    rules = {"task": _says(f"Your task is to: {task}"), **_rules()}
    actions = "\n".join(
        f'action {name} {{\n  template :: "{template}";\n  feedback :: "#{_rule_of(name)}#";\n}}\n'
        for name, template in _COMMANDS.items()
    )
    described = f'action help {{\n  template :: "help";\n  feedback :: "{_help()}";\n}}\n'
    return f'grammar :: """\n{json.dumps(rules, indent=1)}\n""";\n\n{actions}\n{described}'

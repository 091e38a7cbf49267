"""Reads the grammar text of a game file: its actions, its rules, and the parts of each sentence.

The text is data here. Expressions in it are recognised by their form and never evaluated. ``grammar.txt`` is the
grammar of a generated game in this project's own layout: what its sentences say is fixed by upstream, so that a
generated game answers in the very words of a real one.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from skillc_gym.errors import InvalidGameError
from skillc_gym.pages import resource

MAX_CHARACTERS = 200_000
"""ALFWorld's have 13,000."""

# Upstream reads its grammar with a generated parser (TatSu). These patterns accept what that parser accepts, quirks
# included, because a game's answers must come out byte for byte; test_sentences_are_split_alike compares the two.
_LEXEME = re.compile(r'\s+|\#[^\n]*|(?P<block>"""[\s\S]*?""")|(?P<string>"[^"]*")|(?P<name>[\w/-]+)|(?P<mark>::|[{};])')
_LITERAL = re.compile(r'"[^;|"<>\[\]#{}]*"|[^;|"<>\[\]#{}]+')
_RULE = re.compile(r"#([\w()/!<>\-\s,.]+)#")
_BRACES = re.compile(r"\{([^{}]*+)\}")
_BODY = re.compile(r"[^|\[\]{}\n<>#]+")
_QUERY = re.compile(r"[^;|{}\n\[\]#]+")
_LEADING = re.compile(r"(?:[\t]+|\s+|//[^\n]*\n?)*")


class ActionText(NamedTuple):
    """An action's command template and what is said when it is done."""

    template: str
    feedback: str


class Alternative(NamedTuple):
    """One way to say a rule: the first alternative whose condition holds is said."""

    condition: str
    sentence: str


class Grammar(NamedTuple):
    """Actions and rules by name."""

    actions: dict[str, ActionText]
    rules: dict[str, tuple[Alternative, ...]]


class Part(NamedTuple):
    """A piece of a sentence.

    Attributes:
        kind: "text" (said as it is), "rule" (another's sentence), "value" (of a variable), "list" (for every match).
        body: The text, the rule's name, or the expression; one that names a rule is written ``#name#``.
        given: The query behind an expression, "" if there is none.
    """

    kind: str
    body: str
    given: str = ""


def parse_grammar(text: str) -> Grammar:
    """Reads a whole grammar document; InvalidGameError if the text is none."""
    if len(text) > MAX_CHARACTERS:
        raise InvalidGameError(f"Grammar has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read.")
    grammar = Grammar({}, {})
    lexemes = _lexemes(text)
    for lexeme in lexemes:
        if lexeme == "grammar":
            _expect(lexemes, "::")
            _add_rules(grammar, next(lexemes, ""))
            _expect(lexemes, ";")
        elif lexeme == "action":
            _add_action(grammar, lexemes)
        else:
            raise InvalidGameError(f"Grammar has {lexeme[:40]!r} where 'action' or 'grammar' was expected.")
    return grammar


def grammar_text(task: str) -> str:
    """Returns the grammar of a generated game, given its task sentence without "Your task is to: "."""
    return resource(__package__, "grammar.txt").replace("{task}", json.dumps(task)[1:-1])


def conditions_of(rule: str) -> tuple[str, ...]:
    """When each alternative of a rule is said in ALFWorld, in order; most rules have one, said always."""
    return tuple(alternative.condition for alternative in _own_grammar().rules.get(rule, ())) or ("",)


@functools.cache
def _own_grammar() -> Grammar:
    return parse_grammar(resource(__package__, "grammar.txt"))


def split_sentence(text: str) -> list[Part]:
    """Splits a rule's sentence into its parts, as upstream's text generator does.

    White space before the first part is not said; text after something that cannot be read is not said either.
    """
    parts: list[Part] = []
    leading = _LEADING.match(text)
    place = leading.end() if leading else 0
    while place < len(text):
        # The generated parser skips tabs, but no other white space, between two parts.
        if parts:
            while place < len(text) and text[place] == "\t":
                place += 1
        part, end = _part_at(text, place)
        # What cannot be read ends the sentence in silence upstream, too.
        if part is None:
            break
        parts.append(part)
        place = end
    return parts


def _part_at(text: str, place: int) -> tuple[Part | None, int]:
    # The order matters: a literal would take the bracket of a list for text.
    if match := _RULE.match(text, place):
        return Part("rule", match[1]), match.end()
    if match := _BRACES.match(text, place):
        return _choice("value", match[1]), match.end()
    if text.startswith("[{", place) and (match := _BRACES.match(text, place + 1)) and text.startswith("]", match.end()):
        return _choice("list", match[1]), match.end() + 1
    if match := _LITERAL.match(text, place):
        return Part("text", match[0].strip('"') if match[0].startswith('"') else match[0]), match.end()
    return None, place


def _choice(kind: str, inside: str) -> Part | None:
    """Reads ``expression`` or ``expression | query``; by hand, since a pattern would try each space in many ways."""
    body, bar, given = inside.partition("|")
    rule = _RULE.fullmatch(body.strip())
    if not (rule or _is_made_of(_BODY, body.strip(), body.strip("\n"))):
        return None
    if bar and not (_is_made_of(_QUERY, given.lstrip(), given) and not given.endswith("\n")):
        return None
    return Part(kind, f"#{rule[1]}#" if rule else body.strip(), " ".join(given.split()))


def _is_made_of(pattern: re.Pattern[str], text: str, otherwise: str) -> bool:
    """Whether a text matches, or, where it is empty, whether there was something else than line breaks."""
    return pattern.fullmatch(text) is not None if text else bool(otherwise)


def _lexemes(text: str) -> Iterator[str]:
    place = 0
    while place < len(text):
        match = _LEXEME.match(text, place)
        if match is None:
            raise InvalidGameError(f"Grammar cannot be read from {text[place : place + 40]!r} on.")
        place = match.end()
        if match.lastgroup:
            yield match[0]


def _expect(lexemes: Iterator[str], wanted: str) -> None:
    found = next(lexemes, "the end")
    if found != wanted:
        raise InvalidGameError(f"Grammar has {found[:40]!r} where {wanted!r} was expected.")


def _add_action(grammar: Grammar, lexemes: Iterator[str]) -> None:
    name = next(lexemes, "")
    _expect(lexemes, "{")
    fields = {"template": "", "feedback": ""}
    # Fields come in any order; of one that is given twice, the last counts.
    for field in lexemes:
        if field == "}":
            grammar.actions[name.lower()] = ActionText(**fields)
            return
        _expect(lexemes, "::")
        value = next(lexemes, "")
        _expect(lexemes, ";")
        if field == "grammar":
            _add_rules(grammar, value)
        elif field in fields:
            fields[field] = value[1:-1]
        elif field != "pddl":
            raise InvalidGameError(f"Grammar's action {name!r} has a field {field!r}, which is not known.")
    raise InvalidGameError(f"Grammar ends inside the action {name!r}.")


def _add_rules(grammar: Grammar, block: str) -> None:
    # Lines that begin with # are comments here although JSON has none.
    lines = block[3:-3].split("\n")
    try:
        rules = json.loads("\n".join(line for line in lines if not line.lstrip().startswith("#")))
        grammar.rules.update({name: tuple(map(_alternative, found)) for name, found in rules.items()})
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise InvalidGameError(f"Grammar's rules are not the JSON that was expected: {error}.") from error


def _alternative(rule: dict[str, Any]) -> Alternative:
    sentence = str(rule["rhs"])
    sentence.encode("utf-8")  # half a surrogate pair cannot be
    return Alternative(" ".join(str(rule.get("condition", "")).split()), sentence)

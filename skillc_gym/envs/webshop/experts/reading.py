"""Reading as a customer does: what an instruction asks for, and what a page in the mode "text" says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from skillc_gym.envs.webshop.shop.nodes import SEPARATOR

__all__ = ["ItemView", "Listing", "ParsedInstruction", "parse_instruction", "read_item", "read_results", "words"]

_PRICE = re.compile(r",? and price lower than (\d+(?:\.\d+)?) dollars\s*$")
_MONEY = re.compile(r"\$(\d+(?:\.\d+)?)")
_WORD = re.compile(r"[^\W_]+(?:[.'][^\W_]+)*")
_NAVIGATION = frozenset(
    ["back to search", "< prev", "next >", "description", "features", "reviews", "attributes", "buy now", "search"]
)
# Words by which people ask, not what they ask for.
_POLITE = frozenset(
    """a about all along also am an and any are as at be being but buy by can could do either find for from get give
    good hello help hi i i'd i'm im in interested into is it it's its just kind like look looking made make me my need
    of on one or order pair place please priced prefer preferably purchase really s searching show size some something
    such that the them these they this to too under up used want wanting which will with would you""".split()  # noqa: SIM905
)


@dataclass(frozen=True)
class ParsedInstruction:
    """What an instruction asks for.

    Attributes:
        words: The telling words, of the options as well.
        features: The telling words without those of named options.
        options: The named options' values; none when the instruction is a person's own sentence.
        price: The highest price; None when there is none.
        text: The instruction without the price, in lower case.
    """

    words: tuple[str, ...]
    features: tuple[str, ...]
    options: tuple[str, ...]
    price: float | None
    text: str


@dataclass(frozen=True)
class Listing:
    """A product in a list of results: its asin in lower case, its title and the lowest price shown."""

    asin: str
    title: str
    price: float


@dataclass(frozen=True)
class ItemView:
    """A product's page: its title, the lowest price shown and the values of each group of options."""

    title: str
    price: float
    groups: tuple[tuple[str, tuple[str, ...]], ...]


def words(text: str) -> list[str]:
    """Returns the words of a text in lower case."""
    return _WORD.findall(text.lower())


def parse_instruction(instruction: str) -> ParsedInstruction:
    """Reads an instruction."""
    found = _PRICE.search(instruction)
    text = instruction[: found.start()] if found else instruction
    body, options = _named_options(text)
    features = tuple(dict.fromkeys(word for word in words(body) if word not in _POLITE))
    named = [word for value in options for word in words(value)]
    price = float(found[1]) if found else None
    return ParsedInstruction(tuple(dict.fromkeys([*features, *named])), features, options, price, text.lower())


def read_results(observation: str, actions: Sequence[str]) -> list[Listing]:
    """Reads a page of results."""
    fields = observation.split(SEPARATOR)
    asins = {action[6:-1] for action in actions}
    found = []
    for place, field in enumerate(fields[:-2]):
        if field.lower() in asins and fields[place + 2].startswith("$"):
            found.append(Listing(field.lower(), fields[place + 1], _lowest(fields[place + 2])))
    return found


def read_item(observation: str, actions: Sequence[str]) -> ItemView:
    """Reads a product's page."""
    fields = observation.split(SEPARATOR)
    price = max((place for place, field in enumerate(fields) if field.startswith("Price: $")), default=len(fields) - 1)
    start = next((place + 1 for place, field in enumerate(fields) if field == "< Prev"), 0)
    values = {action[6:-1] for action in actions} - _NAVIGATION
    groups: list[tuple[str, list[str]]] = []
    for field in fields[start : price - 1]:
        if field not in values or not groups:
            groups.append((field, []))
        else:
            groups[-1][1].append(field)
    shown = tuple((name, tuple(listed)) for name, listed in groups)
    return ItemView(fields[price - 1], _lowest(fields[price]), shown)


def _named_options(text: str) -> tuple[str, tuple[str, ...]]:
    """Splits "... with color: red, and size: 9" into what stands before and the values."""
    colon = text.find(": ")
    start = text.rfind(" with ", 0, colon) if colon > 0 else -1
    if start < 0:
        return text, ()
    values: list[str] = []
    for piece in text[start + len(" with ") :].split(", and "):
        _, name, value = piece.partition(": ")
        if name or not values:
            values.append(value)
        else:
            values[-1] += f", and {piece}"
    return text[:start], tuple(values)


def _lowest(price: str) -> float:
    amounts = [float(amount) for amount in _MONEY.findall(price)]
    return min(amounts, default=0.0)

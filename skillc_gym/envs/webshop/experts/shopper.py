"""A rule-based customer that knows only what it reads: it searches, compares, chooses options and buys."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skillc_gym.envs.webshop.goals.reward import matches, normalize_color
from skillc_gym.envs.webshop.shop.nodes import BACK, BUY, NAVIGATION, NEXT, PREV, SEPARATOR

_PREV, _NEXT, _BACK, _BUY = (f"click[{button.label}]" for button in (PREV, NEXT, BACK, BUY))
_PRICE = re.compile(r",? and price lower than (\d[\d,]*(?:\.\d+)?) dollars\s*$")
_MONEY = re.compile(r"\$(\d+(?:\.\d+)?)")
_WORD = re.compile(r"[^\W_]+(?:[.'][^\W_]+)*")
_ASKING = """
a about all along also am an and any are as at be being but buy by can could do either find for from get give
good hello help hi i i'd i'm im in interested into is it it's its just kind like look looking made make me my need
of on one or order pair place please priced prefer preferably purchase really s searching show size some something
such that the them these they this to too under up used want wanting which will with would you
"""
"""Words by which people ask, not what they ask for."""
_POLITE = frozenset(_ASKING.split())


@dataclass(frozen=True)
class ParsedInstruction:
    """What an instruction asks for.

    ``words`` are the telling ones, ``features`` those without named options, ``options`` the latter's values (none in a
    person's own sentence), ``price`` is the highest or None, ``text`` the instruction without it, in lower case.
    """

    words: tuple[str, ...]
    features: tuple[str, ...]
    options: tuple[str, ...]
    price: float | None
    text: str


@dataclass(frozen=True)
class SearchResult:
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
    price = float(found[1].replace(",", "")) if found else None
    return ParsedInstruction(tuple(dict.fromkeys([*features, *named])), features, options, price, text.lower())


def read_results(observation: str, actions: Sequence[str]) -> list[SearchResult]:
    """Reads a page of results."""
    fields = observation.split(SEPARATOR)
    asins = {action[6:-1] for action in actions}
    found = []
    for place, field in enumerate(fields[:-2]):
        if field.lower() in asins and fields[place + 2].startswith("$"):
            found.append(SearchResult(field.lower(), fields[place + 1], _lowest(fields[place + 2])))
    return found


def read_item(observation: str, actions: Sequence[str]) -> ItemView:
    """Reads a product's page."""
    fields = observation.split(SEPARATOR)
    price = max((place for place, field in enumerate(fields) if field.startswith("Price: $")), default=len(fields) - 1)
    start = next((place + 1 for place, field in enumerate(fields) if field == PREV.text), 0)
    values = {action[6:-1] for action in actions} - {*NAVIGATION}
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
        _, named, value = piece.partition(": ")
        if named or not values:
            values.append(value)
        else:
            values[-1] += f", and {piece}"
    return text[:start], tuple(values)


def _lowest(price: str) -> float:
    return min(map(float, _MONEY.findall(price)), default=0.0)


@dataclass
class _Seen:
    """A product looked at: what would be chosen there and how well it fits, from 0 to 1."""

    choices: list[str]
    fit: float
    sure: bool


class Shopper:
    """Buys what an instruction asks for, from pages in the mode "text" and the actions listed with them.

    Args:
        goal: The instruction (``info["goal"]``).
        steps: After how many actions the episode is cut.
        skip_options: Buys without choosing options, as a careless customer does.

    Attributes:
        thought: Why the last action was chosen, in a few words.

    Examples:
        >>> shopper = Shopper("i need a red rug, and price lower than 40.00 dollars")
        >>> shopper.act("WebShop [SEP] ... [SEP] Search", ["search[<query>]"])
        'search[red rug]'
    """

    def __init__(self, goal: str, *, steps: int = 15, skip_options: bool = False) -> None:
        self.instruction = parse_instruction(goal)
        self.thought = ""
        self._left, self._skips = steps, skip_options
        self._seen: dict[str, _Seen] = {}
        self._at = ""
        self._todo: list[str] = []
        self._searches = 0

    def act(self, observation: str, actions: Sequence[str]) -> str:
        """Returns the next action, from the page in the mode "text" and ``info["available_actions"]``."""
        self._left -= 1
        if _BUY in actions:
            return self._on_item(observation, actions)
        if any(action.startswith("search[") for action in actions):
            return self._search()
        if _NEXT in actions:
            return self._on_results(observation, actions)
        self.thought = "back"
        return _PREV

    def _search(self) -> str:
        self._searches += 1
        self.thought = "search"
        chosen = self.instruction.words if self._searches == 1 else self.instruction.features
        return f"search[{' '.join(chosen) or 'product'}]"

    def _on_results(self, observation: str, actions: Sequence[str]) -> str:
        found = read_results(observation, actions)
        fresh = [listing for listing in found if listing.asin not in self._seen]
        best = max(self._seen, key=lambda asin: self._seen[asin].fit, default="")
        # Buying the best so far takes its choices and four actions more, with a look at another one before.
        enough = self._left <= (len(self._seen[best].choices) if best else 2) + 4
        rank = {listing.asin: place for place, listing in enumerate(found)}
        if best and (enough or not fresh) and best in rank:
            return self._open(best, rank[best])
        if not fresh:
            self.thought = "none fits"
            return _BACK if self._searches < 2 else _NEXT
        chosen = max(fresh, key=lambda listing: self._promise(listing, rank[listing.asin])).asin
        return self._open(chosen, rank[chosen])

    def _open(self, asin: str, rank: int) -> str:
        self._at, self.thought = asin, f"open {rank + 1}"
        return f"click[{asin}]"

    def _promise(self, listing: SearchResult, rank: int) -> float:
        shared = _share(self.instruction.features, words(listing.title))
        return shared - 0.3 * rank - (2.0 if _too_dear(listing.price, self.instruction) else 0.0)

    def _on_item(self, observation: str, actions: Sequence[str]) -> str:
        if self._at in self._seen and self._todo:
            return self._next()
        seen = self._judge(read_item(observation, actions))
        known = self._at in self._seen
        self._seen[self._at] = seen
        buy = seen.sure or known or self._left <= len(seen.choices) + 1
        if not buy:
            self.thought = "does not fit"
            return _PREV
        self._todo = [f"click[{choice}]" for choice in seen.choices] + [_BUY]
        return self._next()

    def _next(self) -> str:
        choices = [action[len("click[") : -1] for action in self._todo[:-1]]
        self.thought = f"choose {', '.join(choices)}" if choices else "buy"
        return self._todo.pop(0)

    def _judge(self, item: ItemView) -> _Seen:
        choices, fitting = ([], len(self.instruction.options)) if self._skips else choose(self.instruction, item)
        share = fitting / len(self.instruction.options) if self.instruction.options else 1.0
        cheap = not _too_dear(item.price, self.instruction)
        fit = 0.6 * share + 0.2 * cheap + 0.2 * _share(self.instruction.features, words(item.title))
        return _Seen(choices, fit, share == 1.0 and cheap)


def choose(instruction: ParsedInstruction, item: ItemView) -> tuple[list[str], float]:
    """Returns the values to click on, and how many of the named options they satisfy; similar ones count less."""
    choices: dict[str, str] = {}
    fitting = 0.0
    for wanted in instruction.options:
        found = [(group, value) for group, values in item.groups for value in values if _same(value, wanted)]
        exact = [(group, value) for group, value in found if value == wanted]
        if found:
            group, value = (exact or found)[0]
            choices.setdefault(group, value)
            fitting += 1.0 if exact else 0.8
    if not instruction.options:
        for group, values in item.groups:
            best = max(values, key=lambda value: _said(value, instruction), default="")
            if best:
                choices[group] = best
    return list(dict.fromkeys(choices.values())), fitting


def _same(value: str, wanted: str) -> bool:
    return value == wanted or matches(normalize_color(value), normalize_color(wanted))


def _said(value: str, instruction: ParsedInstruction) -> float:
    """How much of an option's value the instruction says."""
    said, asked = words(value), set(words(instruction.text))
    return sum(word in asked for word in said) / max(len(said), 1) + (value in instruction.text)


def _share(wanted: Sequence[str], have: Sequence[str]) -> float:
    return len(set(wanted) & set(have)) / max(len(set(wanted)), 1)


def _too_dear(price: float, instruction: ParsedInstruction) -> bool:
    return instruction.price is not None and price > instruction.price


def demonstrator(info: Mapping[str, Any], errs: bool) -> Shopper:
    """Makes the expert of a demonstration; see `skillc_gym.envs.warm_start.WarmStart`."""
    return Shopper(info["goal"], skip_options=errs)

"""What a purchase is worth: WebShop's score of a product, its chosen options and its price against a goal.

Attributes and options are matched by the token set ratio of thefuzz 0.19 over the standard library's difflib, which is
part of the benchmark's definition. rapidfuzz computes another edit measure and decides a few pairs near the threshold
differently, so it is not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

from skillc_gym.pages import resource

if TYPE_CHECKING:
    from skillc_gym.envs.webshop.catalog.product import Product
    from skillc_gym.envs.webshop.goals.goals import Goal


THRESHOLD = 85
"""Two texts match when their score is above it."""

COLOR_WORDS = tuple(resource(__package__, "colors.txt").partition("\n")[2].split())
"""The benchmark's colours, in its order."""

_LATIN_1 = re.compile("[\u0080-\u00ff]")
_NOT_WORD = re.compile(r"\W")
_CACHED = 1 << 12


def normalize_color(text: str | tuple[str, ...]) -> str | tuple[str, ...]:
    """Reduces a text to the first colour it contains, as a substring ("titanium" becomes "tan"), if there is one.

    Of a pair (name, value), as synthetic goals have them, only an equal element counts.
    """
    # For a tuple, "in" asks for an equal element: upstream compares a synthetic goal's pair by the same line of code.
    return next((color for color in COLOR_WORDS if color in text), text)


def token_set_ratio(one: str | tuple[str, ...], other: str | tuple[str, ...]) -> int:
    r"""Scores how much two texts share, by words: 0 to 100; 100 when one's words contain the other's, 0 without words.

    It is the best of the three ratios between the shared words, and these with what remains of either text. A tuple
    stands for the text that Python shows of it, where a no-break space, say, is ``\xa0``.
    """
    texts = _texts(_words(str(one)), _words(str(other)))
    return max((_ratio(a, b) for a, b in combinations(texts, 2)), default=0)


@lru_cache(_CACHED)
def matches(one: str | tuple[str, ...], other: str | tuple[str, ...]) -> bool:
    """Whether two texts count as the same attribute or option: a score above `THRESHOLD`."""
    first, second = _words(str(one)), _words(str(other))
    if not first or not second:
        return False
    # Where one's words are all in the other, the shared words equal one of the texts: a score of 100.
    if first <= second or second <= first:
        return True
    return any(_above_threshold(a, b) for a, b in combinations(_texts(first, second), 2))


@lru_cache(_CACHED)
def _words(text: str) -> frozenset[str]:
    # thefuzz drops Latin-1's upper half ("café" is "caf") before anything else; other scripts stay.
    return frozenset(_NOT_WORD.sub(" ", _LATIN_1.sub("", text)).lower().split())


def _texts(first: frozenset[str], second: frozenset[str]) -> list[str]:
    """The shared words, and these with what remains of either set; nothing if a set is empty."""
    if not first or not second:
        return []
    shared = " ".join(sorted(first & second))
    return [shared] + [f"{shared} {' '.join(sorted(rest))}".strip() for rest in (first - second, second - first)]


def _ratio(one: str, other: str) -> int:
    # The order of the two matters: difflib's matching is not symmetric.
    return 100 if one == other else round(100 * SequenceMatcher(None, one, other).ratio())


def _above_threshold(one: str, other: str) -> bool:
    # Two bounds from above spare most of the slow comparisons: the shorter length, and the letters both have.
    length = len(one) + len(other)
    if round(100 * (2.0 * min(len(one), len(other)) / length)) <= THRESHOLD:
        return False
    common = sum(min(one.count(letter), other.count(letter)) for letter in set(one))
    return round(100 * (2.0 * common / length)) > THRESHOLD and _ratio(one, other) > THRESHOLD


@dataclass(frozen=True, slots=True)
class Reward:
    """A purchase's score and all it is made of.

    Attributes:
        total: The score in [0, 1]: (r_att w_att + r_option w_option + r_price w_price) r_type, by counts.
        r_type: The kind of product: 1, 0.5, 0.1 or 0.
        r_att: The share of the goal's attributes the product has; 0 if the goal has none. Its weight is ``w_att``.
        r_option: The share of the goal's options that were chosen; None, as ``w_option``, if the goal has none.
        r_price: Whether the price is low enough.
        query_match: Whether product and goal belong to the same query.
        category_match: Whether they share two parts of their categories.
        title_score: The share of the goal's nouns in the product's name.
    """

    total: float
    r_type: float
    r_att: float
    w_att: float
    r_option: float | None
    w_option: float | None
    r_price: bool
    w_price: float
    query_match: bool
    category_match: bool
    title_score: float

    def parts(self) -> dict[str, Any]:
        """Returns the parts under upstream's names; those of the options only if the goal has options."""
        names = ["r_type", "r_att", "w_att", "query_match", "category_match", "title_score"]
        names += ["r_price", "w_price"] if self.r_option is None else ["r_option", "w_option", "r_price", "w_price"]
        return {name: getattr(self, name) for name in names}


def score(
    goal: Goal,
    product: Product,
    chosen: Iterable[str],
    price: float,
    *,
    goal_nouns: Sequence[str],
    product_nouns: Sequence[str],
) -> Reward:
    """Scores a purchase.

    ``chosen`` are the values of the chosen options, whose groups play no part; ``price`` is the product's one price,
    hidden from the agent where a range is shown; nouns are those of the names of the goal's product and of the product.
    """
    query = product.query == goal.query
    category = category_match(product.product_category, goal.product_category)
    title = title_score(goal_nouns, product_nouns)
    kind = type_score(query_match=query, category_match=category, title=title)
    attributes, options = len(goal.attributes), len(goal.options)
    found = sum(_has_attribute(product, attribute) for attribute in goal.attributes)
    taken = _options_taken(goal.options, tuple(chosen))
    cheap = price <= goal.price_upper
    parts = attributes + options + 1
    return Reward(
        total=(found + taken + cheap) / parts * kind,
        r_type=kind,
        r_att=found / attributes if attributes else 0.0,
        w_att=attributes / parts,
        r_option=taken / options if options else None,
        w_option=options / parts if options else None,
        r_price=cheap,
        w_price=1 / parts,
        query_match=query,
        category_match=category,
        title_score=title,
    )


def title_score(goal_nouns: Sequence[str], product_nouns: Sequence[str]) -> float:
    """Returns the shared nouns as a share of the goal's, those repeated counted again below; 0.2 if it has none."""
    return len(set(goal_nouns) & set(product_nouns)) / len(goal_nouns) if goal_nouns else 0.2


def category_match(one: str, other: str) -> bool:
    """Whether two paths of categories share two parts."""
    return len(_parts(one) & _parts(other)) >= 2


def type_score(*, query_match: bool, category_match: bool, title: float) -> float:
    """Returns how well the kind of product fits. Too few shared nouns overrule the same query or category."""
    if title == 0:
        return 0.0
    if title < 0.1:
        return 0.1
    return 1.0 if query_match or category_match or title > 0.2 else 0.5


@lru_cache(1 << 12)
def _parts(path: str) -> frozenset[str]:
    return frozenset(part.strip() for part in path.split("\u203a"))


def _has_attribute(product: Product, attribute: str) -> bool:
    if any(matches(own, attribute) for own in product.attributes):
        return True
    # An attribute that no own one resembles counts all the same if the product's text says it, in lower case.
    texts = (product.title, " ".join(product.bullets), product.description)
    return any(attribute in text.lower() for text in texts)


def _options_taken(wanted: Sequence[str | tuple[str, str]], chosen: Sequence[str]) -> int:
    # Any chosen value may satisfy any wanted one, and one may satisfy several: upstream asks no more.
    values = [_color(value) for value in chosen]
    return sum(any(matches(value, _color(want)) for value in values) for want in wanted)


_color = lru_cache(1 << 12)(normalize_color)

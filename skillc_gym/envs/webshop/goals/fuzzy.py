"""Fuzzy matching of attributes and options: WebShop's scores, which are part of the benchmark's definition.

The score is the token set ratio of thefuzz 0.19 over the standard library's difflib. rapidfuzz computes another edit
measure and decides a few pairs near the threshold differently, so it is not used.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import lru_cache
from importlib import resources
from itertools import combinations

THRESHOLD = 85
"""Two texts match when their score is above it."""

COLOR_WORDS = tuple(resources.files(__package__).joinpath("colors.txt").read_text("utf-8").partition("\n")[2].split())
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

"""Porter's stemmer in the form Lucene uses: the published algorithm with its author's two later departures.

The departures are ``bli -> ble`` (published: ``abli -> able``) and ``logi -> log``. Snowball's "porter", the form that
stemming libraries (PyStemmer, snowballstemmer) ship, has neither: 36 of the 17,575 words of the real thousand products,
such as ``possibly``, would get another stem.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources

ENGLISH = json.loads(resources.files(__package__).joinpath("english.json").read_text("utf-8"))
"""Endings by step, in Porter's order, and Lucene's stop words."""


def stem(word: str) -> str:
    """Returns the stem of a lower-case word; words of one or two characters are their own."""
    if len(word) <= 2:
        return word
    word = _step_1c(_step_1b(_step_1a(word)))
    word = _replace(_replace(word, ENGLISH["step_2"]), ENGLISH["step_3"])
    return _step_5(_step_4(word))


def _shape(word: str) -> str:
    """Writes v for every vowel and c for every consonant; y is a vowel after a consonant."""
    shape: list[str] = []
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and bool(shape) and shape[-1] == "c")
        shape.append("v" if vowel else "c")
    return "".join(shape)


def _measure(word: str) -> int:
    """Counts how often a vowel is followed by a consonant: Porter's m, by which he tells roots from short words."""
    return _shape(word).count("vc")


def _has_vowel(word: str) -> bool:
    return "v" in _shape(word)


def _ends_double(word: str) -> bool:
    return len(word) >= 2 and word[-1] == word[-2] and _shape(word)[-1] == "c"


def _ends_cvc(word: str) -> bool:
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"


def _step_1a(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _step_1b(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        if word.endswith(ending):
            root = word[: -len(ending)]
            return _mend(root) if _has_vowel(root) else word
    return word


def _mend(root: str) -> str:
    # What "-ed" and "-ing" took off with them comes back: "hop(p)ing", "fil(e)ing", but not "falling", "hissing".
    if root.endswith(("at", "bl", "iz")):
        return root + "e"
    if _ends_double(root):
        return root if root[-1] in "lsz" else root[:-1]
    return root + "e" if _measure(root) == 1 and _ends_cvc(root) else root


def _step_1c(word: str) -> str:
    return word[:-1] + "i" if word.endswith("y") and _has_vowel(word[:-1]) else word


def _replace(word: str, endings: Sequence[Sequence[str]]) -> str:
    for ending, other in endings:
        # The first ending that fits decides, even if its root is too short to be changed.
        if word.endswith(ending):
            root = word[: -len(ending)]
            return root + other if _measure(root) > 0 else word
    return word


def _step_4(word: str) -> str:
    for ending in ENGLISH["step_4"]:
        if word.endswith(ending) and (ending != "ion" or word[-4:-3] in ("s", "t")):
            root = word[: -len(ending)]
            return root if _measure(root) > 1 else word
    return word


def _step_5(word: str) -> str:
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _ends_cvc(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word

"""What things are called: by word and number, in the order of their ids or in another one."""

from __future__ import annotations

import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

# Every run of letters and digits is matched as a whole, so that no place in it is tried twice.
_NAMED = re.compile(r"(\d*)(\w+)( \d+)?")


def display_names(ids: Iterable[str]) -> dict[str, str]:
    """Names things by word and number, from the highest down in the order of their ids, which the result keeps.

    What is no thing of the house (agents, types) is called by its id and a blank, as upstream does.
    """
    # Ids hold coordinates, so that their order, and with it who is "mug 1", looks random to a player.
    ordered = sorted(ids)
    names = [_word(name) + " 0" if _word(name) else sys.intern(_readable(name) + " ") for name in ordered]
    return dict(zip(ordered, _numbered(names), strict=True))


def renumbered(names: Sequence[str], seed: int) -> dict[str, str]:
    """Numbers things, named in the order of their ids, as upstream does under ``domain_randomization``: shuffled.

    The shuffle is Python's own, so that upstream numbers alike after ``random.seed(seed)``.
    """
    shuffled = list(names)
    random.Random(seed).shuffle(shuffled)
    return dict(zip(shuffled, _numbered(shuffled), strict=True))


def renamed(text: str, names: dict[str, str]) -> str:
    """Replaces the names in a command."""

    def new(found: re.Match[str]) -> str:
        digits, word, number = found.groups(default="")
        name = word + number
        return digits + (name if word.isdecimal() else names.get(name, name))

    return _NAMED.sub(new, text)


def _numbered(names: Sequence[str]) -> list[str]:
    words = [name.rpartition(" ")[0] if name[-1] != " " else "" for name in names]
    left = Counter(words)
    numbered = []
    for word, name in zip(words, names, strict=True):
        numbered.append(f"{word} {left[word]}" if word else name)
        left[word] -= 1
    return numbered


def _word(name: str) -> str:
    word, bar, _ = name.partition("_bar_")
    return _readable(word + "basin" * ("basin" in name)) if bar else ""


def _readable(name: str) -> str:
    for written, meant in (("_minus_", "-"), ("_plus_", "+"), ("_dot_", "."), ("_comma_", ",")):
        name = name.replace(written, meant)
    return name

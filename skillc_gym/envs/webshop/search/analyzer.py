"""Words of a text as Lucene's English analyzer sees them: tokens, lower case, no possessive, no stop words, stems.

The tokenizer follows UAX #29 as Lucene's StandardTokenizer does, with the character classes of its Unicode version
(``word_breaks.json``); a simpler one ranks a third of real queries differently. The stemmer is Porter's with its
author's two later departures, ``bli -> ble`` (published: ``abli -> able``) and ``logi -> log``. Snowball's "porter",
the form that stemming libraries (PyStemmer, snowballstemmer) ship, has neither: 36 of the 17,575 words of the real
thousand products, such as ``possibly``, would get another stem.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache

from skillc_gym.pages import resource

ENGLISH = json.loads(resource(__package__, "english.json"))
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
    if len(root) >= 2 and root[-1] == root[-2] and _shape(root)[-1] == "c":
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


MAX_TOKEN = 255
"""Longer tokens are cut, in UTF-16 units."""
STOP_WORDS = frozenset(ENGLISH["stop_words"])
_REMEMBERED_LENGTH = 40
_POSSESSIVE = ("'s", "\u2019s", "\uff07s", "'S", "\u2019S", "\uff07S")
_ASCII_WORD = re.compile(
    r"(_*(?:[0-9]+(?:(?:_+|[.,;'])[0-9]+)*|[A-Za-z]+(?:(?:_+|[.:'])[A-Za-z]+)*)+"
    r"(?:_+(?:[0-9]+(?:(?:_+|[.,;'])[0-9]+)*|[A-Za-z]+(?:(?:_+|[.:'])[A-Za-z]+)*)+)*_*)|_+"
)
"""What `_word` comes to where every character is ASCII; runs of underscores alone are passed over at once."""


def analyze(text: str) -> list[str]:
    """Returns the terms of a text, in order, as they are indexed and searched for."""
    terms: list[str] = []
    for chunk in text.split(" "):
        terms += _remembered_terms(chunk) if len(chunk) <= _REMEMBERED_LENGTH else _terms(chunk)
    return terms


def tokenize(text: str) -> list[str]:
    """Returns the tokens of a text in lower case and without possessives, stop words included."""
    return [_plain(token) for chunk in text.split(" ") for token in _split(chunk)]


def _terms(chunk: str) -> tuple[str, ...]:
    # Lucene's order of filters: possessives go before stop words, so that "it's" is one; stems come last.
    plain = (_plain(token) for token in _split(chunk))
    return tuple(stem(token) for token in plain if token not in STOP_WORDS)


# No token reaches over a space, so what stands between spaces is analyzed once.
_remembered_terms = lru_cache(1 << 14)(_terms)


def _plain(token: str) -> str:
    token = token[:-2] if token.endswith(_POSSESSIVE) else token
    # One character becomes one: no special forms at the end of a word or of the dotted I.
    return token.lower() if token.isascii() else "".join(letter.lower()[0] for letter in token)


def _split(chunk: str) -> list[str]:
    # Nearly all chunks are ASCII, and the pattern of all Unicode takes several times as long.
    pattern = _ASCII_WORD if chunk.isascii() else _word()
    tokens = [token for token in pattern.findall(chunk) if token]
    if len(chunk) > MAX_TOKEN // 2:
        return [piece for token in tokens for piece in _pieces(token, pattern)]
    return tokens


def _pieces(token: str, pattern: re.Pattern[str]) -> list[str]:
    """Cuts a token where it fills Lucene's buffer; the rest is read on as if it began there."""
    pieces, start = [], 0
    while start < len(token):
        match = pattern.match(token, start, _window(token, start))
        start = match.end() if match else start + 1
        if match and match[1]:
            pieces.append(match[1])
    return pieces


def _window(text: str, start: int) -> int:
    units, place = 0, start
    while place < len(text) and (units := units + 1 + (text[place] > "\uffff")) <= MAX_TOKEN:
        place += 1
    return place


def _characters() -> dict[str, str]:
    """Reads the ranges of every class, written for use inside square brackets."""
    raw = json.loads(resource(__package__, "word_breaks.json"))
    return {name: "".join(map(_range, ranges.split())) for name, ranges in raw.items()}


def _range(text: str) -> str:
    return "-".join(f"\\U{int(end, 16):08x}" for end in text.split("-"))


@lru_cache(1)
def _word() -> re.Pattern[str]:
    """Builds the pattern of one token; the longest of Lucene's rules comes first for every first character."""
    c = _characters()
    # Marks and joiners belong to the character before them (UAX #29, rule WB4).
    joined = f"{c['extend']}{c['zero_width_joiner']}{c['complex_context_mark']}"
    marks = f"[{joined}{c['text_presentation']}]*"
    numbers = f"(?:[{c['numeric']}]{marks})"
    hebrew = f"[{c['hebrew_letter']}]{marks}"
    quoted = f"{hebrew}(?:'{marks}|[{c['double_quote']}]{marks}{hebrew})"
    letters = f"(?:{quoted}|[{c['letter']}{c['letter_emoji']}{c['hebrew_letter']}]{marks})"
    katakana = f"(?:[{c['katakana']}]{marks})"
    joins = f"(?:[{c['extend_num_let']}]{marks})"
    in_word = f"[{c['mid_letter']}{c['mid_num_let']}]{marks}"
    in_number = f"[{c['mid_num']}{c['mid_num_let']}]{marks}"
    # A single apostrophe, point or colon between letters parts no word (WB6, WB7), a comma between digits no number.
    words = f"{letters}(?:(?:{joins}*|{in_word}){letters})*"
    part = f"(?:{katakana}(?:{joins}*{katakana})*|(?:{numbers}(?:(?:{joins}*|{in_number}){numbers})*|{words})+)"
    # Possessive: no part begins with a join, so giving one back cannot help; in a long run of them it would be tried at
    # every place. More of them than that leave a token no room for a part.
    word = f"{joins}{{0,{MAX_TOKEN - 1}}}+{part}(?:{joins}+{part})*{joins}*"
    # Thai, Lao and the like have no spaces between words: a run of them is one token, an ideograph is one alone.
    south_east = f"(?:[{c['complex_context']}{c['complex_context_mark']}]{marks})+"
    emoji = f"{c['emoji']}{c['emoji_base']}{c['letter_emoji']}{c['emoji_modifier']}"
    flag = f"(?:[{c['regional_indicator']}]{marks}){{2}}"
    keycap = f"[{c['keycap_base']}]\\uFE0F?\\u20E3{marks}"
    modifier = f"[{c['emoji_modifier']}]"
    plain = f"(?:(?!\\uFE0F)[{joined}])*"
    one = f"(?:[{c['emoji_base']}]{modifier}{plain}|(?!{modifier})[{emoji}]\\uFE0F|[{emoji}]{plain})"
    sequence = f"(?:\\u200D(?!{modifier}))?{one}(?:(?:\\u200D|(?<=\\u200D)){one})*"
    rules = "|".join((word, south_east, flag, keycap, sequence, f"[{c['ideograph']}]{marks}"))
    alone = f"(?:[{c['extend_num_let']}][{c['extend']}{c['zero_width_joiner']}{c['text_presentation']}]*)+"
    return re.compile(f"({rules})|{alone}")

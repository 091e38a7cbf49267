"""How plain the pages are: words, length of sentences, intervals outside of tables, words of our own.

python -m benchmarks.plain_words    # what passes a limit; 1 if anything does

Words are those of ``wc -w`` without comments and without tables that a command makes (settings, the board).
Sentences and intervals are those of the prose as the site shows it: no code, no tables, no headings. Records
and the reference of the API are not measured.
"""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import markdown

_ROOT = Path(__file__).resolve().parents[1]

LIMITS: Mapping[str, float] = {
    "words in all": 22_000,
    "words of README": 800,
    "words a sentence": 27,
    "intervals outside tables": 10,
    "words of our own": 5,
}
"""The most of every measure: over all pages of ``docs``, over README, and three for every page."""

JARGON: Mapping[str, str] = {
    r"not to be told (?:from|apart)": "no significant difference",
    r"(?:in|out)side the noise": "no significant difference",
    r"by the area": "averaged over training",
    r"to the letter": "as published",
    r"(?:un)?mend(?:ed|s|ing)?": "fix, fixed",
    r"in words": "with a message, in plain text",
    r"nobody": "no one, or name who",
    r"go(?:es)? on": "continue, resume",
    r"made[- ]to[- ]need": "trained to need",
    r"anew": "again",
}
"""Words that readers stumble over, and what the field says instead."""

_MADE = re.compile(
    r"<!-- (\w+):start -->.*?<!-- \1:end -->|^<!--\n.*?^<!--/-->$|<!--.*?-->|^---\n.*?\n---$", re.DOTALL | re.MULTILINE
)
_INTERVAL = re.compile(r"\[\s*[-+]?[\d.,]+\s*%?\s*(?:,|to)\s*[-+]?[\d.,]+\s*%?\s*\]")
_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])")
_NO_PROSE = re.compile(r"<pre>.*?</pre>|<h[1-4]\b.*?</h[1-4]>", re.DOTALL)
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_CODE = re.compile(r"<code>.*?</code>", re.DOTALL)
_BLOCK = re.compile(r"</?(?:p|li)\b[^>]*>")
_TAG = re.compile(r"<[^>]*>")
_ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|al)\.")


@dataclass(frozen=True)
class PlainPage:
    """What was measured on a page."""

    name: str
    words: int
    sentence: float
    intervals: int
    jargon: tuple[str, ...]


def measured(name: str, text: str) -> PlainPage:
    """A page's measures."""
    text = _MADE.sub("", text)
    made = markdown.markdown(text, extensions=["tables", "fenced_code", "attr_list", "md_in_html"])
    page = _NO_PROSE.sub("<p>", made)
    tables = " ".join(_plain(_CODE.sub("", table)) for table in _TABLE.findall(page))
    # A piece of code is one word.
    parts = map(_plain, _BLOCK.split(_CODE.sub("code", _TABLE.sub("<p>", page))))
    blocks = [_ABBREVIATED.sub("so", " ".join(block.split())) for block in parts if block.strip()]
    lengths = [len(sentence.split()) for block in blocks for sentence in _END.split(block)]
    shown = "\n".join(blocks)
    return PlainPage(
        name,
        words=len(text.split()),
        sentence=fmean(lengths or [0]),
        intervals=len(_INTERVAL.findall(shown)),
        jargon=tuple(
            found[0].lower()
            for words in JARGON
            for found in re.finditer(rf"\b(?:{words})\b", f"{shown}\n{tables}", re.IGNORECASE)
        ),
    )


def _plain(page: str) -> str:
    return html.unescape(_TAG.sub("", page))


def read_pages() -> list[PlainPage]:
    """README first, then the pages of ``docs`` but for its records."""
    paths = [path for path in sorted((_ROOT / "docs").rglob("*.md")) if path.parent.name != "records"]
    pages = [_ROOT / "README.md", *paths]
    return [measured(str(path.relative_to(_ROOT)), path.read_text(encoding="utf-8")) for path in pages]


def passed(pages: Sequence[PlainPage]) -> list[str]:
    """A line for everything that passes its limit; README is the first page."""
    found: list[tuple[str, str, float]] = [
        ("words in all", "docs", sum(page.words for page in pages[1:])),
        ("words of README", pages[0].name, pages[0].words),
    ]
    for page in pages:
        own = f"{page.name} (for {_advice(page)})" if page.jargon else page.name
        found.append(("words a sentence", page.name, page.sentence))
        found.append(("intervals outside tables", page.name, page.intervals))
        found.append(("words of our own", own, len(page.jargon)))
    return [f"{limit}, at most {LIMITS[limit]:,}: {name} {n:,.5g}" for limit, name, n in found if n > LIMITS[limit]]


def _advice(page: PlainPage) -> str:
    said = {word: instead for word in page.jargon for words, instead in JARGON.items() if re.fullmatch(words, word)}
    return "; ".join(f"{word} say {instead}" for word, instead in sorted(said.items()))


def main() -> int:
    """Prints how many words there are and what passes a limit; 1 if anything does."""
    pages = read_pages()
    total = sum(page.words for page in pages[1:])
    print(f"{len(pages) - 1} pages of docs, {total:,} words; README {pages[0].words} words.")
    errors = passed(pages)
    for error in errors:
        print(f"error: {error}", file=sys.stderr)
    return int(bool(errors))


if __name__ == "__main__":
    sys.exit(main())

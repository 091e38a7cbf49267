"""How plain the pages are: words, length of sentences, figures, intervals outside of tables, words of our own.

python -m benchmarks.plain_words    # the worst pages; 1 where a page passes what is held

Words are those of ``wc -w`` without comments and without tables that a command makes (settings, the board).
Sentences, figures and intervals are those of the prose as the site shows it: no code, no tables, no headings. Records
and the reference of the API are not measured.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from statistics import fmean

import markdown

from skillc_lab.tables import Row, Table

_ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Limit:
    """The most of a measure: more than is wanted is a warning, more than is held an error."""

    wanted: float
    held: float


LIMITS: Mapping[str, Limit] = {
    "words in all": Limit(wanted=22_000, held=22_000),
    "words of README": Limit(wanted=800, held=800),
    "words a sentence": Limit(wanted=22, held=27),
    "intervals outside tables": Limit(wanted=10, held=10),
    "words of our own": Limit(wanted=0, held=5),
}
"""Over all pages of ``docs``, over README, and three for every page; held is where pages stand today."""

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

_MADE = re.compile(r"<!-- (\w+):start -->.*?<!-- \1:end -->|<!--.*?-->|^---\n.*?\n---$", re.DOTALL | re.MULTILINE)
_FIGURE = re.compile(r"(?<![\w.])[-+]?\d[\d,.]*")
_INTERVAL = re.compile(r"\[\s*[-+]?[\d.,]+\s*%?\s*(?:,|to)\s*[-+]?[\d.,]+\s*%?\s*\]")
_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])")
_ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|al)\.")


@dataclass(frozen=True)
class PlainPage:
    """What was measured on a page; figures per hundred words of prose."""

    name: str
    words: int
    sentence: float
    figures: float
    intervals: int
    jargon: tuple[str, ...]


class _Prose(HTMLParser):
    """Text of a page's blocks, with tables apart; a piece of code is one word."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[str] = [""]
        self.table = ""
        self._within: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in ("p", "li", "h1", "h2", "h3", "h4", "table", "pre"):
            self.blocks.append("")
        if tag in ("table", "pre", "code", "h1", "h2", "h3", "h4"):
            self._within.append(tag)
        if self._within == ["code"]:
            self.blocks[-1] += "code"

    def handle_endtag(self, tag: str) -> None:
        if tag in self._within:
            self._within.remove(tag)
        if tag in ("p", "li", "table", "pre"):
            self.blocks.append("")

    def handle_data(self, data: str) -> None:
        if not self._within:
            self.blocks[-1] += data
        elif "code" not in self._within and "pre" not in self._within:
            self.table += f"{data} "


def measured(name: str, text: str) -> PlainPage:
    """A page's measures."""
    text = _MADE.sub("", text)
    prose = _Prose()
    prose.feed(markdown.markdown(text, extensions=["tables", "fenced_code", "attr_list", "md_in_html"]))
    blocks = [_ABBREVIATED.sub("so", " ".join(block.split())) for block in prose.blocks if block.strip()]
    lengths = [len(sentence.split()) for block in blocks for sentence in _END.split(block)]
    shown = "\n".join(blocks)
    return PlainPage(
        name,
        words=len(text.split()),
        sentence=fmean(lengths or [0]),
        figures=100 * len(_FIGURE.findall(shown)) / max(1, len(shown.split())),
        intervals=len(_INTERVAL.findall(shown)),
        jargon=tuple(
            found[0].lower()
            for words in JARGON
            for found in re.finditer(rf"\b(?:{words})\b", f"{shown}\n{prose.table}", re.IGNORECASE)
        ),
    )


def read_pages(root: Path = _ROOT) -> list[PlainPage]:
    """README first, then the pages of ``docs`` but for its records."""
    docs = root / "docs"
    paths = [path for path in sorted(docs.rglob("*.md")) if path.parent.name != "records"]
    return [
        measured(str(path.relative_to(root)), path.read_text(encoding="utf-8")) for path in [root / "README.md", *paths]
    ]


def _figures(pages: Sequence[PlainPage]) -> Iterator[tuple[str, str, float, str]]:
    """Measures that have a limit: the limit's name, the page, the figure, and more to say; README is the first page."""
    yield "words in all", "docs", sum(page.words for page in pages[1:]), ""
    yield "words of README", pages[0].name, pages[0].words, ""
    for page in pages:
        yield "words a sentence", page.name, page.sentence, ""
        yield "intervals outside tables", page.name, page.intervals, ""
        yield "words of our own", page.name, len(page.jargon), f" ({', '.join(sorted(set(page.jargon)))})"


def passed(pages: Sequence[PlainPage], held: bool) -> dict[str, list[str]]:
    """What passes a limit that is held, else one that is wanted, by the limit's name."""
    found: dict[str, list[str]] = {}
    for limit, page, figure, more in _figures(pages):
        if figure > (LIMITS[limit].held if held else LIMITS[limit].wanted):
            found.setdefault(limit, []).append(f"{page} {figure:,.3g}{more}" if figure < 1000 else f"{page} {figure:,}")
    return found


def _worst(pages: Sequence[PlainPage], shown: int) -> Table:
    """The pages that stand highest in one of the measures, as many of each."""
    keys: tuple[Callable[[PlainPage], float], ...] = (
        lambda page: page.words,
        lambda page: page.sentence,
        lambda page: page.figures,
        lambda page: page.intervals,
        lambda page: len(page.jargon),
    )
    chosen = {page.name for key in keys for page in sorted(pages, key=key, reverse=True)[:shown] if key(page)}
    rows: list[Row] = [
        [page.name, page.words, f"{page.sentence:.1f}", f"{page.figures:.1f}", page.intervals, len(page.jargon)]
        for page in sorted(pages, key=lambda page: -page.words)
        if page.name in chosen
    ]
    heads = [
        "page",
        "words",
        "words a sentence",
        "figures per 100 words",
        "intervals outside tables",
        "words of our own",
    ]
    return Table(heads, rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the worst pages and what passes a limit; 1 where a limit that must hold does not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worst", type=int, default=3, help="pages shown of each measure")
    options = parser.parse_args(argv)
    pages = read_pages()
    total = sum(page.words for page in pages[1:])
    print(f"{len(pages) - 1} pages of docs, {total:,} words; README {pages[0].words} words. The worst:")
    print(_worst(pages, options.worst).text())
    for limit, worst in passed(pages, held=False).items():
        print(f"warning: {limit}, at most {LIMITS[limit].wanted:,}: {'; '.join(worst)}")
    used = {word for page in pages for word in page.jargon}
    for words, instead in JARGON.items():
        if own := sorted(word for word in used if re.fullmatch(words, word)):
            print(f"  for {', '.join(own)} say: {instead}")
    errors = passed(pages, held=True)
    for limit, worst in errors.items():
        print(f"error: {limit}, at most {LIMITS[limit].held:,}: {'; '.join(worst)}", file=sys.stderr)
    return int(bool(errors))


if __name__ == "__main__":
    sys.exit(main())

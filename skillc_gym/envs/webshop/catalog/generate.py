"""Catalogues of any size made from words and a seed: rows in upstream's schema, the same on every machine.

Every row depends on the seed and its number alone, so a catalogue's first thousand rows are those of its first million.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from skillc_gym.envs.webshop.catalog.build import CatalogBuilder
from skillc_gym.pages import resource
from skillc_gym.values import require_whole

VERSION = 1
"""Changes when the same seed makes other rows."""
GENERATOR_OPTIONS = ("size", "seed")
MAX_HUMAN = 12_000
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ASINS = len(_DIGITS) ** 7
_STRIDE = 48_271 * 1_000_003
_HUMAN_EVERY = 5
_SLOT = re.compile(r"\{(\w+)\}")
_WANTS = ("i am looking for a", "i need a", "i want a", "find me a", "show me a", "i'm interested in a")


class Kind(NamedTuple):
    """A kind of product: how upstream files it, what titles call it, options as (name, sort), and prices."""

    category: str
    query: str
    path: str
    nouns: Sequence[str]
    attributes: Sequence[str]
    groups: Sequence[tuple[str, str]]
    price: Sequence[float]


@cache
def _words() -> dict[str, Any]:
    return dict(json.loads(resource(__package__, "generate_words.json")))


@cache
def _kinds() -> tuple[Kind, ...]:
    return tuple(map(_kind, _words()["kinds"]))


def _kind(line: str) -> Kind:
    # Each is "category; query; categories below the top; nouns; groups of options with their sort".
    category, query, path, nouns, groups = (part.strip() for part in line.split(";"))
    shelf = _words()["shelves"][category]
    named = tuple((name.replace("_", " "), sort) for name, _, sort in (pair.partition(":") for pair in groups.split()))
    full_path = f"{shelf['name']} › {path}"
    return Kind(category, query, full_path, nouns.split("|"), shelf["attributes"], named, shelf["price"])


class GeneratedRow(NamedTuple):
    """A product in upstream's ``items_shuffle``, ``items_ins_v2`` and ``items_human_ins``; most are not in the last."""

    row: dict[str, Any]
    attributes: dict[str, Any]
    human: list[dict[str, Any]]


class GeneratedSource:
    """A generated catalogue of up to 50 million products; ConfigError for other sizes, or a negative seed."""

    def __init__(self, size: int = 1000, seed: int = 0) -> None:
        self.size = require_whole("The generator's size", size, 1, 50_000_000)
        self.seed = require_whole("The generator's seed", seed, 0)

    def identity(self) -> dict[str, Any]:
        """Names the content: equal identities give equal catalogues."""
        return {"generated": VERSION, "size": self.size, "seed": self.seed}

    def build(self, builder: CatalogBuilder) -> None:
        """Adds all rows to a builder."""
        for generated in generate_rows(self.size, self.seed):
            asin = generated.row["asin"]
            builder.add(generated.row, {asin: generated.attributes}.get)
            if generated.human:
                builder.add_human(asin, generated.human)


def generate_rows(size: int, seed: int = 0) -> Iterator[GeneratedRow]:
    """Yields the products of a generated catalogue, in order."""
    shopped = 0
    for made in (generate_row(index, seed) for index in range(size)):
        shopped += bool(made.human)
        yield made if shopped <= MAX_HUMAN else made._replace(human=[])


def generate_row(index: int, seed: int = 0) -> GeneratedRow:
    """Makes one product, by its number in the catalogue and the catalogue's seed."""
    return _Maker(index, seed).make()


class _Maker:
    """The product in the making: its own random numbers, its kind, and what all its texts agree on."""

    def __init__(self, index: int, seed: int) -> None:
        self.rng = rng = random.Random(seed << 40 ^ index)
        self.words = _words()
        self.asin, self.kind = _asin(index, seed), self._pick(_kinds())
        self.brand = _name(rng, 900)
        self.noun = self._pick(self.kind.nouns)
        number = min(int(rng.expovariate(0.28)), 9)
        self.attributes = rng.sample(self.kind.attributes, number)
        self.options = self._options()

    def make(self) -> GeneratedRow:
        row = {
            "name": self._title(),
            "full_description": " ".join(self._sentence() for _ in range(min(int(self.rng.expovariate(0.17)), 14))),
            "images": [f"https://images.example/{self.asin}.jpg"],
            "product_category": self.kind.path,
            "average_rating": "",
            "small_description": self._bullets(),
            "customization_options": self.options or "",
            "asin": self.asin,
            "category": self.kind.category,
            "query": self.kind.query,
            "page": 1 + int(self.rng.random() * 400),
            "pricing": _pricing(self.rng, self.kind),
        }
        return GeneratedRow(row, self._entry(), self._human())

    def _pick(self, of: Sequence[Any]) -> Any:
        return of[int(self.rng.random() * len(of))]

    def _title(self) -> str:
        rng = self.rng
        words = [self.brand, *(attribute.title() for attribute in self.attributes[:3])]
        words += [self._adjective(), self.noun]
        if rng.random() < 0.5:
            words += ["for", self._pick(self.words["places"]).title()]
        if rng.random() < 0.4:
            words.append(_model(rng))
        if rng.random() < 0.6:
            words += ["-", self._pick(self.words["choices"]["color"]), self._adjective(), _name(rng, 40_000)]
        if rng.random() < 0.3:
            words.append(f"({1 + int(rng.random() * 12)} Pack)")
        return " ".join(words)

    def _adjective(self) -> str:
        return str(self._pick(self.words["adjectives"])).title()

    def _bullets(self) -> list[str]:
        lines = [f"{attribute.title()}: {self._sentence()}" for attribute in self.attributes[:4]]
        return [*lines, *(self._sentence() for _ in range(5 - len(lines)))]

    def _sentence(self) -> str:
        said = self.attributes or [self._pick(self.words["adjectives"])]
        pattern: str = self._pick(self.words["sentences"])
        fixed = {"noun": self.noun.lower(), "brand": self.brand}
        fixed |= {name: self._pick(said) for name in ("attribute", "attribute2")}
        return _SLOT.sub(lambda slot: fixed[slot[1]] if slot[1] in fixed else self._drawn(slot[1]), pattern)

    def _drawn(self, name: str) -> str:
        """Fills what a sentence leaves open and the product does not fix."""
        rng = self.rng
        if name.startswith("word"):
            return _name(rng, 200_000)
        if name in ("number", "other", "small"):
            return str(1 + int(rng.random() * (12 if name == "small" else 90)))
        if name == "model":
            return _model(rng)
        sort = {"a": "adjectives", "p": "places", "m": "materials"}[name[0]]
        return str(self._pick(self.words[sort]))

    def _options(self) -> dict[str, list[dict[str, Any]] | None]:
        rng, options = self.rng, dict[str, list[dict[str, Any]] | None]()
        wanted = (0, 0, 0, 1, 1, 2, 3)[int(rng.random() * 7)]
        for name, sort in self.kind.groups[:wanted]:
            choices = self.words["choices"][sort]
            number = min(2 + int(rng.expovariate(0.35)), len(choices), 12)
            values = rng.sample(choices, number) if sort == "color" else choices[:number]
            options[name] = [{"is_selected": False, "value": value, "image": None} for value in values]
        if wanted and rng.random() < 0.1:
            options["Style Name"] = None
        return options

    def _entry(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"attributes": list(self.attributes)}
        if self.attributes and self.rng.random() < 0.6:
            asked = self.attributes[:3]
            text = f"Find me {', '.join(asked[:2])} {self.kind.query}" + (f" with {asked[2]}" if asked[2:] else "")
            entry |= {"instruction": text, "instruction_attributes": asked}
        return entry

    def _human(self) -> list[dict[str, Any]]:
        if not self.attributes or self.rng.random() * _HUMAN_EVERY > 1:
            return []
        values = [group[0]["value"].lower() for group in self.options.values() if group]
        asked = self.attributes[: 1 + int(self.rng.random() * 2)]
        option = f" in {values[0]}" if values else ""
        text = f"{self._pick(_WANTS)} {self.noun.lower()} that is {' and '.join(asked)}{option}."
        return [
            {
                "asin": self.asin, "instruction": text, "attributes": list(self.attributes), "options": values,
                "instruction_attributes": asked, "instruction_options": values[:1],
            }
        ]  # fmt: skip


def _asin(index: int, seed: int) -> str:
    """Spreads the numbers over all ids of ten characters; no two of a catalogue are equal."""
    value, digits = (index * _STRIDE + seed * 7_919) % _ASINS, ""
    for _ in range(7):
        value, digit = divmod(value, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return f"B0G{digits}"


def _name(rng: random.Random, number: int) -> str:
    """Draws a made-up word; of the words there are, the first are drawn far more often than the last."""
    syllables = _words()["syllables"]
    value, word = int(number ** rng.random()), ""
    while value or not word:
        value, place = divmod(value, len(syllables))
        word += syllables[place]
    return word.title()


def _model(rng: random.Random) -> str:
    letters = "".join(_DIGITS[10 + int(rng.random() * 26)] for _ in range(2))
    return f"{letters}-{int(10 ** (2 + 3 * rng.random()))}"


def _pricing(rng: random.Random, kind: Kind) -> str:
    low, high = kind.price
    first, chance = low * (high / low) ** rng.random(), rng.random()
    if chance < 0.08:
        return ""
    if chance < 0.9:
        return f"${first:.2f}"
    second = first * (1 + rng.random())
    return f"${first:,.2f} - ${second:,.2f}"

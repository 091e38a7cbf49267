"""A product of the shop, and how upstream's rows become products, by upstream's rules.

Upstream's loader dies on one bad row. Here a row whose product could not be scored (no id, query or readable price,
an option without a value) is skipped, one that lacks only what pages show is kept without it; both are reported.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

from skillc_gym.errors import SkillCError

MOST_COMBINATIONS = 1_000_000
"""A product with more combinations of options has no synthetic goals: no shop has such, and no memory would do."""
MOST_ATTRIBUTES, LONGEST_ATTRIBUTE = 100, 64
"""Attributes of a product, and of a goal, and characters of one (the real products have 27 of 24): a purchase compares
each of one with each of the other, letter by letter."""


def bounded(attributes: Iterable[str]) -> tuple[str, ...]:
    """Returns the attributes that count: the first `MOST_ATTRIBUTES` that are not too long."""
    return tuple(each for each in attributes if len(each) <= LONGEST_ATTRIBUTE)[:MOST_ATTRIBUTES]


@dataclass(frozen=True, slots=True)
class Listing:
    """What a list of results shows of a product; fields as in `Product`."""

    index: int
    asin: str
    title: str
    price_tag: str


@dataclass(frozen=True, slots=True)
class Product:
    """A product, cleaned by upstream's rules.

    Attributes:
        index: Its place in the catalogue.
        asin: Its id, at most ten characters.
        bullets: The points of its features page; may be empty, as ``description`` may.
        category: One of beauty, electronics, fashion, garden, grocery.
        query: The lower-case query it was found by.
        product_category: Its path of categories, separated by `` › ``.
        price_tag: The price as pages show it: ``$19.99`` or ``$12.0 to $25.5``.
        pricing: One price or both ends of a range, in the order given (which may descend).
        options: The values of each group of options, in the order given; values may repeat.
        attributes: What it is said to be ("gluten free"), compared with the goal's attributes.
        main_image: The address of its picture; empty where the row named none.
        instruction: The synthetic instruction made for it, or None, which asks for ``instruction_attributes``.
    """

    index: int
    asin: str
    title: str
    description: str
    bullets: tuple[str, ...]
    category: str
    query: str
    product_category: str
    price_tag: str
    pricing: tuple[float, ...]
    options: Mapping[str, tuple[str, ...]]
    attributes: tuple[str, ...]
    main_image: str = ""
    instruction: str | None = None
    instruction_attributes: tuple[str, ...] = ()

    @property
    def combinations(self) -> int:
        """How many combinations of options there are: 1 without groups, 0 with an empty group."""
        return math.prod(map(len, self.options.values()))

    @property
    def makes_goals(self) -> bool:
        """Whether synthetic goals are made of it: it has an instruction and no countless combinations."""
        return self.instruction is not None and self.combinations <= MOST_COMBINATIONS

    @property
    def contents(self) -> str:
        """The text that the search engine indexes: title, description, first bullet and options, in lower case."""
        options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in self.options.items())
        first = self.bullets[0] if self.bullets else ""
        return " ".join((self.title, self.description, first, options)).lower()


_FIELDS = tuple(field.name for field in fields(Product))
NO_ATTRIBUTES = ("DUMMY_ATTR",)
"""What a product has of which the attributes are not known."""
MAX_ASIN = 10
MAX_OPTION = 10_000
"""Characters of an option's value: a reward compares two letter by letter, in time that grows with their product."""
_ENTRY = {"attributes": list, "instruction": str, "instruction_attributes": list}
_UNPRICED = (100.0,)
_UNWRITABLE, _REPLACEMENT = re.compile("[\0\ud800-\udfff]"), "\ufffd"
_NOT_PRICE = re.compile(r"[^\d.]")


class BadRowError(SkillCError, ValueError):
    """A row that makes no product; the message says why."""


def clean(row: object, attributes: object, index: int) -> tuple[Product, list[str]]:
    """Makes a product of a row, and says what had to be left empty; BadRowError if no product can be made of it.

    ``row`` is an object of upstream's ``items_shuffle*.json``, ``attributes`` the product's entry in
    ``items_ins_v2*.json`` (None if there is none), ``index`` its place in the catalogue.
    """
    if not isinstance(row, Mapping):
        raise BadRowError(f"expected an object, got {type(row).__name__}")
    notes: list[str] = []
    asin = read_asin(row)
    pricing = read_pricing(row.get("pricing"))
    said, instruction, asked = _read_attributes(attributes, notes)
    product = Product(
        index=index,
        asin=asin,
        title=_shown(row, "name", notes),
        description=_shown(row, "full_description", notes),
        bullets=_bullets(row, notes),
        category=_shown(row, "category", notes),
        query=_scored(row, "query").lower().strip(),
        product_category=_shown(row, "product_category", notes),
        price_tag=" to ".join(f"${price}" for price in pricing),
        pricing=pricing,
        options=read_options(row.get("customization_options")),
        attributes=said,
        main_image=_image(row, notes),
        instruction=instruction,
        instruction_attributes=asked,
    )
    mended = changed_texts(product, writable)
    if mended:
        notes.append(f"halves of surrogate pairs or U+0000 replaced in {', '.join(mended)}")
        product = replace(product, **mended)
    if instruction is not None and not product.makes_goals:
        notes.append(f"over {MOST_COMBINATIONS:,} combinations of options: no synthetic goals are made of them")
    return product, notes


def in_texts(change: Callable[[str], str], value: Any) -> Any:
    """Changes every text in a value, at any depth."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(in_texts(change, part) for part in value)
    if isinstance(value, Mapping):
        made = dict[Any, Any]()
        for name, part in value.items():
            key = in_texts(change, name)
            while key in made:  # two names that become one stay two
                key = f"({key})"
            made[key] = in_texts(change, part)
        return made
    return value


def changed_texts(product: Product, change: Callable[[Any], Any]) -> dict[str, Any]:
    """Returns the fields that a change of their texts makes others."""
    values = {name: getattr(product, name) for name in _FIELDS}
    return {name: other for name, value in values.items() if (other := change(value)) != value}


def _writable(text: str) -> str:
    plain = text.isascii() and "\0" not in text
    return text if plain else _UNWRITABLE.sub(_REPLACEMENT, text)


writable = partial(in_texts, _writable)
"""Replaces halves of surrogate pairs, which JSON can hold and no file can take, and U+0000, which no browser shows."""


def read_asin(row: Mapping[str, Any]) -> str:
    """Returns a row's id; BadRowError for none, and for those that upstream passes over: "nan", or too long."""
    asin = str(writable(_scored(row, "asin")))
    if asin in ("nan", "") or len(asin) > MAX_ASIN:
        raise BadRowError(f"asin {asin[:40]!r} is no id (at most {MAX_ASIN} characters, not 'nan')")
    return asin


def read_pricing(text: object) -> tuple[float, ...]:
    """Returns the first two prices of a text such as ``$12.00$25.50``; 100.0 for none, BadRowError for others."""
    if not text:
        return _UNPRICED
    if not isinstance(text, str):
        raise BadRowError(f"pricing: expected text such as '$19.99', got {type(text).__name__}")
    pieces = text.split("$")[1:]
    if not pieces:
        raise BadRowError(f"pricing {text[:40]!r} has no '$'")
    try:
        prices = tuple(float(Decimal(_NOT_PRICE.sub("", piece))) for piece in pieces)
    except InvalidOperation:
        raise BadRowError(f"pricing {text[:40]!r} is no price") from None
    if not all(map(math.isfinite, prices)):
        raise BadRowError(f"pricing {text[:40]!r} is beyond any price")
    return prices[:2]


def read_options(groups: object) -> dict[str, tuple[str, ...]]:
    """Returns the option values per group: lower case, ``/`` written as `` | ``; of equal names the last counts."""
    if not groups:
        return {}
    if not isinstance(groups, Mapping):
        raise BadRowError(f"customization_options: expected an object, got {type(groups).__name__}")
    options: dict[str, tuple[str, ...]] = {}
    for name, values in groups.items():
        if values is not None:
            if values and not isinstance(values, list):
                raise BadRowError(f"option {name[:40]!r}: expected a list, got {type(values).__name__}")
            options[name.lower()] = tuple(_value(name, value) for value in values or ())
    return options


def _value(name: str, option: object) -> str:
    value = option.get("value") if isinstance(option, Mapping) else None
    if not isinstance(value, str):
        raise BadRowError(f"option {name[:40]!r} has an entry without a value")
    if len(value) > MAX_OPTION:
        raise BadRowError(f"option {name[:40]!r} has a value of {len(value):,} characters; at most {MAX_OPTION:,} fit")
    return value.strip().replace("/", " | ").lower()


def _scored(row: Mapping[str, Any], field: str) -> str:
    value = row.get(field)
    if not isinstance(value, str):
        raise BadRowError(f"{field}: expected text, got {'nothing' if value is None else type(value).__name__}")
    return value


def _shown(row: Mapping[str, Any], field: str, notes: list[str]) -> str:
    value = row.get(field)
    if isinstance(value, str):
        return value
    notes.append(f"{field} left empty: expected text, got {'nothing' if value is None else type(value).__name__}")
    return ""


def _bullets(row: Mapping[str, Any], notes: list[str]) -> tuple[str, ...]:
    value = row.get("small_description")
    if isinstance(value, str):
        return (value,)
    lines = value if isinstance(value, list) else []
    kept = tuple(line for line in lines if isinstance(line, str))
    if not kept or len(kept) < len(lines):
        notes.append(f"small_description: {len(kept)} lines of text" + (f" of {len(lines)}" if lines else ""))
    return kept


def _image(row: Mapping[str, Any], notes: list[str]) -> str:
    images = row.get("images")
    if isinstance(images, list) and images and isinstance(images[0], str):
        return images[0]
    notes.append("images: no first image")
    return ""


def _read_attributes(entry: object, notes: list[str]) -> tuple[tuple[str, ...], str | None, tuple[str, ...]]:
    if not isinstance(entry, Mapping):
        if entry is not None:
            notes.append(f"attributes left out: expected an object, got {type(entry).__name__}")
        return NO_ATTRIBUTES, None, ()
    instruction, said = entry.get("instruction"), entry.get("attributes")
    given = [(name, kind) for name, kind in _ENTRY.items() if entry.get(name) is not None]
    notes += [f"{name}: what is no text was left out" for name, kind in given if not is_textual(entry[name], kind)]
    return (
        counted(_texts(said), "attributes", notes.append) if isinstance(said, list) else NO_ATTRIBUTES,
        instruction if isinstance(instruction, str) else None,
        counted(_texts(entry.get("instruction_attributes")), "instruction_attributes", notes.append),
    )


def is_textual(value: object, kind: type) -> bool:
    """Whether it is a text, or a list of texts, as asked for."""
    texts = value if isinstance(value, list) else [value]
    return isinstance(value, kind) and all(isinstance(text, str) for text in texts)


def counted(attributes: Sequence[str], field: str, note: Callable[[str], object]) -> tuple[str, ...]:
    """Returns the attributes that count, and notes it if that is not all of them."""
    kept = bounded(attributes)
    if len(kept) < len(attributes):
        note(f"{field}: {len(kept)} of {len(attributes)} count: up to {MOST_ATTRIBUTES} that are not too long")
    return kept


def _texts(values: object) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str)) if isinstance(values, list) else ()

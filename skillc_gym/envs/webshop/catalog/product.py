"""A product of the shop: what its pages show and what a purchase is scored by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

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
        title: Its name.
        description: Its long description; may be empty.
        bullets: The points of its features page; may be empty.
        category: One of beauty, electronics, fashion, garden, grocery.
        query: The lower-case query it was found by.
        product_category: Its path of categories, separated by `` › ``.
        price_tag: The price as pages show it: ``$19.99`` or ``$12.0 to $25.5``.
        pricing: One price or both ends of a range, in the order given (which may descend).
        options: The values of each group of options, in the order given; values may repeat.
        attributes: What it is said to be ("gluten free"), compared with the goal's attributes.
        main_image: The address of its picture; empty where the row named none.
        instruction: The synthetic instruction made for it, or None.
        instruction_attributes: The attributes that instruction asks for.
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
        return prod(map(len, self.options.values()))

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

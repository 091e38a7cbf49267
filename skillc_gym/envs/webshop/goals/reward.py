"""What a purchase is worth: WebShop's score of a product, its chosen options and its price against a goal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from skillc_gym.envs.webshop.goals.fuzzy import matches, normalize_color

if TYPE_CHECKING:
    from skillc_gym.envs.webshop.catalog.product import Product
    from skillc_gym.envs.webshop.goals.goals import Goal


@dataclass(frozen=True, slots=True)
class Reward:
    """A purchase's score and all it is made of.

    Attributes:
        total: The score in [0, 1]: (r_att w_att + r_option w_option + r_price w_price) r_type, by counts.
        r_type: The kind of product: 1, 0.5, 0.1 or 0.
        r_att: The share of the goal's attributes the product has; 0 if the goal has none.
        w_att: The weight of the attributes.
        r_option: The share of the goal's options that were chosen; None if the goal has none.
        w_option: The weight of the options; None if the goal has none.
        r_price: Whether the price is low enough.
        w_price: The weight of the price.
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


@lru_cache(1 << 12)
def _color(text: str | tuple[str, ...]) -> str | tuple[str, ...]:
    return normalize_color(text)

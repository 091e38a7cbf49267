"""Building the table of goals of a catalogue: hidden prices, highest prices, order and weights, as upstream draws them.

Upstream never seeds its draws of prices, so there every process has other prices; here a seed fixes them, and all
workers share one list of goals. The order is upstream's own.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from skillc_gym.webshop.goals import NO_LIMIT, GoalTable, HumanInstruction, Products, combinations

if TYPE_CHECKING:
    from skillc_gym.webshop.product import Product

__all__ = ["SHUFFLE_SEED", "draw_limit", "draw_price", "human_table", "synthetic_table"]

SHUFFLE_SEED = 233
_NO_PRICE = 100.0
_STEPS = tuple(range(10, 1_000, 10))

Rows = list[tuple[int, int, float]]


def draw_price(pricing: Sequence[float], rng: random.Random) -> float:
    """Returns a product's one price: between both ends of its range, drawn."""
    if not pricing:
        return _NO_PRICE
    return pricing[0] if len(pricing) == 1 else rng.uniform(*pricing[:2])


def draw_limit(price: float, rng: random.Random) -> float:
    """Returns the highest price for a goal: the larger of two of the four tens above the price, or `NO_LIMIT`."""
    above = [step for step in _STEPS if step > price][:4]
    return float(max(rng.sample(above, 2))) if len(above) >= 2 else NO_LIMIT


def synthetic_table(products: Products, *, seed: int = 0, shuffle_seed: int = SHUFFLE_SEED) -> GoalTable:
    """Makes a goal of every combination of options of every product that has an instruction.

    Args:
        products: The catalogue.
        seed: Seeds the prices.
        shuffle_seed: Seeds the order; some other environments use another one than upstream.
    """
    rng = random.Random(seed)
    prices = _prices(products, rng)
    rows: Rows = []
    counts: Counter[str] = Counter()
    asked: dict[int, tuple[str, ...]] = {}
    for index, product in _each(products):
        if product.instruction is None:
            continue
        limit, number = draw_limit(prices[index], rng), combinations(product.options)
        rows += [(index, variant, limit) for variant in range(number)]
        counts.update(dict.fromkeys(set(product.instruction_attributes), number))
        asked[index] = product.instruction_attributes
    weights = {index: _weight(attributes, counts) for index, attributes in asked.items()}
    return _table(rows, [weights[row[0]] for row in rows], prices, shuffle_seed)


def human_table(
    products: Products,
    human: Mapping[str, Sequence[HumanInstruction]],
    *,
    seed: int = 0,
    shuffle_seed: int = SHUFFLE_SEED,
) -> GoalTable:
    """Makes a goal of every instruction that people wrote for a product and that names an attribute.

    Args:
        products: The catalogue.
        human: The instructions per asin.
        seed: Seeds the prices.
        shuffle_seed: Seeds the order.
    """
    rng = random.Random(seed)
    prices = _prices(products, rng)
    rows: Rows = []
    for index, product in _each(products):
        for variant, instruction in enumerate(human.get(product.asin, ())):
            if instruction.attributes:
                rows.append((index, variant, draw_limit(prices[index], rng)))
    return _table(rows, [1.0] * len(rows), prices, shuffle_seed)


def _each(products: Products) -> Iterator[tuple[int, Product]]:
    return ((index, products.product(index)) for index in range(len(products)))


def _prices(products: Products, rng: random.Random) -> list[float]:
    return [draw_price(product.pricing, rng) for _, product in _each(products)]


def _weight(attributes: Sequence[str], counts: Mapping[str, int]) -> float:
    return sum(1 / counts[attribute] for attribute in attributes if counts[attribute]) / max(len(attributes), 1)


def _table(rows: Rows, weights: Sequence[float], prices: Sequence[float], shuffle_seed: int) -> GoalTable:
    order = list(range(len(rows)))
    random.Random(shuffle_seed).shuffle(order)
    weight = np.array([weights[place] for place in order], dtype=np.float64)
    return GoalTable(
        product=np.array([rows[place][0] for place in order], dtype=np.int32),
        variant=np.array([rows[place][1] for place in order], dtype=np.int32),
        price_upper=np.array([rows[place][2] for place in order], dtype=np.float64),
        weight=weight,
        cumulative=np.concatenate([np.zeros(1), np.cumsum(weight)]),
        prices=np.array(prices, dtype=np.float64),
    )

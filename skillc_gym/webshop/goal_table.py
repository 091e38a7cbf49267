"""Building the table of goals of a catalogue: hidden prices, highest prices, order and weights, as upstream draws them.

Upstream never seeds its draws of prices, so there every process has other prices; here a seed fixes them, and all
workers share one list of goals. The order is upstream's own.
"""

from __future__ import annotations

import random
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from skillc_gym.webshop.goals import NO_LIMIT, GoalTable, HumanInstruction, Products, combinations

if TYPE_CHECKING:
    from skillc_gym.webshop.product import Product

__all__ = ["SHUFFLE_SEED", "draw_limit", "draw_price", "human_table", "synthetic_table"]

SHUFFLE_SEED = 233
_NO_PRICE = 100.0
_STEPS = tuple(range(10, 1_000, 10))


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
    rows = _Rows()
    counts: Counter[str] = Counter()
    asked: list[tuple[str, ...]] = []
    for index, product in _each(products):
        if product.instruction is not None:
            number = combinations(product.options)
            rows.add(index, number, draw_limit(prices[index], rng))
            asked.append(product.instruction_attributes)
            counts.update(dict.fromkeys(set(product.instruction_attributes), number))
    numbers = np.array(rows.number, dtype=np.int64)
    ends = np.cumsum(numbers)
    return _table(
        product=np.repeat(np.array(rows.product, dtype=np.int32), numbers),
        variant=(np.arange(numbers.sum()) - np.repeat(ends - numbers, numbers)).astype(np.int32),
        price_upper=np.repeat(np.array(rows.limit), numbers),
        weight=np.repeat(np.array([_weight(attributes, counts) for attributes in asked]), numbers),
        prices=prices,
        shuffle_seed=shuffle_seed,
    )


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
    rows = _Rows()
    for index, product in _each(products):
        for variant, instruction in enumerate(human.get(product.asin, ())):
            if instruction.attributes:
                rows.add(index, variant, draw_limit(prices[index], rng))
    return _table(
        product=np.array(rows.product, dtype=np.int32),
        variant=np.array(rows.number, dtype=np.int32),
        price_upper=np.array(rows.limit),
        weight=np.ones(len(rows.product)),
        prices=prices,
        shuffle_seed=shuffle_seed,
    )


class _Rows:
    """Columns that grow: a product, the number of its goals or of its instruction, and the highest price."""

    def __init__(self) -> None:
        self.product, self.number, self.limit = array("i"), array("q"), array("d")

    def add(self, product: int, number: int, limit: float) -> None:
        self.product.append(product)
        self.number.append(number)
        self.limit.append(limit)


def _each(products: Products) -> Iterator[tuple[int, Product]]:
    return ((index, products.product(index)) for index in range(len(products)))


def _prices(products: Products, rng: random.Random) -> NDArray[np.float64]:
    return np.fromiter((draw_price(product.pricing, rng) for _, product in _each(products)), np.float64)


def _weight(attributes: Sequence[str], counts: Mapping[str, int]) -> float:
    return sum(1 / counts[attribute] for attribute in attributes if counts[attribute]) / max(len(attributes), 1)


def _table(
    *,
    product: NDArray[np.int32],
    variant: NDArray[np.int32],
    price_upper: NDArray[np.float64],
    weight: NDArray[np.float64],
    prices: NDArray[np.float64],
    shuffle_seed: int,
) -> GoalTable:
    places = list(range(len(product)))
    random.Random(shuffle_seed).shuffle(places)
    order = np.array(places, dtype=np.int64)
    cumulative = np.concatenate([np.zeros(1), np.cumsum(weight[order])])
    return GoalTable(product[order], variant[order], price_upper[order], weight[order], cumulative, prices)

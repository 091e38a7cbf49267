"""Building the table of goals of a catalogue: hidden prices, highest prices, order and weights, as upstream draws them.

Upstream never seeds its draws of prices, so there every process has other prices; here a seed fixes them, and all
workers share one list of goals. The order is upstream's own.
"""

from __future__ import annotations

import math
import random
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from skillc_gym.envs.webshop.goals.goals import (
    MOST_COMBINATIONS,
    NO_LIMIT,
    GoalTable,
    HumanInstruction,
    Products,
    combinations,
)

__all__ = ["SHUFFLE_SEED", "Facts", "by_product", "draw_limit", "human_table", "synthetic_table"]

SHUFFLE_SEED = 233
_NO_PRICE = 100.0
_STEPS = tuple(range(10, 1_000, 10))


def draw_limit(price: float, rng: random.Random) -> float:
    """Returns the highest price for a goal: the larger of two of the four tens above the price, or `NO_LIMIT`."""
    above = [step for step in _STEPS if step > price][:4]
    return float(max(rng.sample(above, 2))) if len(above) >= 2 else NO_LIMIT


class Facts:
    """What tables of goals need of all products, gathered in one pass over them.

    Args:
        products: The catalogue.
        human: The instructions people wrote, per asin.
    """

    def __init__(self, products: Products, human: Mapping[str, Sequence[HumanInstruction]] | None = None) -> None:
        human = human or {}
        self._low, self._high = array("d"), array("d")
        self.synthetic: list[tuple[int, int, tuple[str, ...]]] = []
        """Product, number of combinations of options, attributes asked for; of products with an instruction."""
        self.human: list[tuple[int, Sequence[HumanInstruction]]] = []
        """Product and instructions that people wrote for it."""
        for index in range(len(products)):
            product = products.product(index)
            pricing = product.pricing or (_NO_PRICE,)
            self._low.append(pricing[0])
            self._high.append(pricing[1] if len(pricing) > 1 else math.nan)
            number = combinations(product.options)
            if product.instruction is not None and number <= MOST_COMBINATIONS:
                self.synthetic.append((index, number, product.instruction_attributes))
            if product.asin in human:
                self.human.append((index, human[product.asin]))

    def prices(self, rng: random.Random) -> NDArray[np.float64]:
        """Draws every product's one price: between both ends of its range."""
        pairs = zip(self._low, self._high, strict=True)
        return np.fromiter((low if math.isnan(high) else rng.uniform(low, high) for low, high in pairs), np.float64)


def synthetic_table(facts: Facts, *, seed: int = 0, shuffle_seed: int = SHUFFLE_SEED) -> GoalTable:
    """Makes a goal of every combination of options of every product that has an instruction.

    Args:
        facts: What is known of the catalogue.
        seed: Seeds the prices.
        shuffle_seed: Seeds the order; some other environments use another one than upstream.
    """
    rng = random.Random(seed)
    prices = facts.prices(rng)
    rows = _Rows()
    counts: Counter[str] = Counter()
    for index, number, attributes in facts.synthetic:
        rows.add(index, number, draw_limit(prices[index], rng))
        for attribute in attributes:
            counts[attribute] += number
    numbers = np.array(rows.number, dtype=np.int64)
    ends = np.cumsum(numbers)
    weights = np.array([_weight(attributes, counts) for _, _, attributes in facts.synthetic])
    return _table(
        product=np.repeat(np.array(rows.product, dtype=np.int32), numbers),
        variant=(np.arange(numbers.sum()) - np.repeat(ends - numbers, numbers)).astype(np.int32),
        price_upper=np.repeat(np.array(rows.limit), numbers),
        weight=np.repeat(weights, numbers),
        prices=prices,
        shuffle_seed=shuffle_seed,
    )


def human_table(facts: Facts, *, seed: int = 0, shuffle_seed: int = SHUFFLE_SEED) -> GoalTable:
    """Makes a goal of every instruction that people wrote for a product and that names an attribute.

    Args:
        facts: What is known of the catalogue.
        seed: Seeds the prices.
        shuffle_seed: Seeds the order.
    """
    rng = random.Random(seed)
    prices = facts.prices(rng)
    rows = _Rows()
    for index, instructions in facts.human:
        for variant, instruction in enumerate(instructions):
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


def by_product(table: GoalTable, shuffle_seed: int = SHUFFLE_SEED) -> GoalTable:
    """The same goals with those of a product beside each other, products in an order of their own.

    Splits are ranges of goals, so those of test then ask for products that no goal of training asks for, as long as no
    product has as many goals as lie between the two.

    Args:
        table: The goals; those of a product keep their order.
        shuffle_seed: Seeds the order of the products.
    """
    ranks = list(range(len(table.prices)))
    random.Random(shuffle_seed).shuffle(ranks)
    order = np.argsort(np.array(ranks, dtype=np.int64)[table.product], kind="stable")
    cumulative = np.concatenate([np.zeros(1), np.cumsum(table.weight[order])])
    columns = (table.product[order], table.variant[order], table.price_upper[order], table.weight[order])
    return GoalTable(*columns, cumulative, table.prices)


class _Rows:
    """Columns that grow: a product, the number of its goals or of its instruction, and the highest price."""

    def __init__(self) -> None:
        self.product, self.number, self.limit = array("i"), array("q"), array("d")

    def add(self, product: int, number: int, limit: float) -> None:
        self.product.append(product)
        self.number.append(number)
        self.limit.append(limit)


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

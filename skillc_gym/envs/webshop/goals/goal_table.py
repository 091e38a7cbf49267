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
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skillc_gym.envs.webshop.goals.goals import NO_LIMIT, GoalTable, HumanInstruction

if TYPE_CHECKING:
    from skillc_gym.envs.webshop.catalog.built import Catalog

SHUFFLE_SEED = 233
_NO_PRICE = 100.0
_STEPS = tuple(range(10, 1_000, 10))


def draw_limit(price: float, rng: random.Random) -> float:
    """Returns the highest price for a goal: the larger of two of the four tens above the price, or `NO_LIMIT`."""
    above = [step for step in _STEPS if step > price][:4]
    return float(max(rng.sample(above, 2))) if len(above) >= 2 else NO_LIMIT


class Facts:
    """What tables of goals need of all products and human instructions, gathered in one pass over them."""

    def __init__(self, products: Catalog, human: Mapping[str, Sequence[HumanInstruction]] | None = None) -> None:
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
            if product.makes_goals:
                self.synthetic.append((index, product.combinations, product.instruction_attributes))
            if product.asin in human:
                self.human.append((index, human[product.asin]))

    def prices(self, rng: random.Random) -> NDArray[np.float64]:
        """Draws every product's one price: between both ends of its range."""
        pairs = zip(self._low, self._high, strict=True)
        return np.fromiter((low if math.isnan(high) else rng.uniform(low, high) for low, high in pairs), np.float64)


def synthetic_table(facts: Facts, *, seed: int = 0, shuffle_seed: int = SHUFFLE_SEED) -> GoalTable:
    """Makes a goal of every combination of options of every product that has an instruction.

    ``seed`` draws the prices, ``shuffle_seed`` the order; some other environments use another one than upstream.
    """
    rng = random.Random(seed)
    prices = facts.prices(rng)
    # One draw for all goals of a product: upstream draws a limit before it combines the options.
    limits = np.array([draw_limit(prices[index], rng) for index, _, _ in facts.synthetic])
    counts: Counter[str] = Counter()
    for _, number, attributes in facts.synthetic:
        for attribute in attributes:
            counts[attribute] += number
    weights = np.array([_weight(attributes, counts) for _, _, attributes in facts.synthetic])
    products = np.array([index for index, _, _ in facts.synthetic], dtype=np.int32)
    numbers = np.array([number for _, number, _ in facts.synthetic], dtype=np.int64)
    # A product's goals are numbered from 0: which of its combinations each of them asks for.
    starts = np.repeat(np.cumsum(numbers) - numbers, numbers)
    variants = (np.arange(numbers.sum()) - starts).astype(np.int32)
    goals = np.repeat(products, numbers), variants, np.repeat(limits, numbers), np.repeat(weights, numbers)
    return _shuffled(goals, prices, shuffle_seed)


def human_table(facts: Facts, *, seed: int = 0, shuffle_seed: int = SHUFFLE_SEED) -> GoalTable:
    """Makes a goal of every instruction that people wrote and that names an attribute; else as `synthetic_table`."""
    rng = random.Random(seed)
    prices = facts.prices(rng)
    places = [
        (index, variant)
        for index, instructions in facts.human
        for variant, instruction in enumerate(instructions)
        if instruction.attributes
    ]
    limits = np.array([draw_limit(prices[index], rng) for index, _ in places])
    products, variants = np.array(places, dtype=np.int32).reshape(-1, 2).T
    return _shuffled((products, variants, limits, np.ones(len(places))), prices, shuffle_seed)


def by_product(table: GoalTable, shuffle_seed: int = SHUFFLE_SEED) -> GoalTable:
    """The same goals with those of a product next to each other, products in a shuffled order.

    Splits are ranges of goals, so those of test then ask for products that no goal of training asks for, as long as no
    product has as many goals as lie between the two.
    """
    ranks = list(range(len(table.prices)))
    random.Random(shuffle_seed).shuffle(ranks)
    order = np.argsort(np.array(ranks, dtype=np.int64)[table.product], kind="stable")
    return _ordered((table.product, table.variant, table.price_upper, table.weight), table.prices, order)


def _weight(attributes: Sequence[str], counts: Mapping[str, int]) -> float:
    return sum(1 / counts[attribute] for attribute in attributes if counts[attribute]) / max(len(attributes), 1)


def _shuffled(goals: tuple[NDArray[Any], ...], prices: NDArray[np.float64], seed: int) -> GoalTable:
    # Upstream shuffles the list of goals itself: Python's generator, so that an index names the same goal.
    places = list(range(len(goals[0])))
    random.Random(seed).shuffle(places)
    return _ordered(goals, prices, np.array(places, dtype=np.int64))


def _ordered(goals: tuple[NDArray[Any], ...], prices: NDArray[np.float64], order: NDArray[np.int64]) -> GoalTable:
    product, variant, price_upper, weight = (column[order] for column in goals)
    return GoalTable(product, variant, price_upper, weight, np.concatenate([np.zeros(1), np.cumsum(weight)]), prices)

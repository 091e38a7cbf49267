"""The tables of goals, in every order: made once per catalogue, kind and seed, and shared by all environments.

Upstream never seeds its draws of prices, so there every process has other prices; here a seed fixes them, and all
workers share one list of goals. The order and the weights are upstream's own.
"""

from __future__ import annotations

import math
import random
import re
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skillc_gym.envs.webshop.catalog.product import bounded
from skillc_gym.envs.webshop.goals.goals import (
    KINDS,
    NO_LIMIT,
    SPLITS,
    DrawnGoals,
    GoalSet,
    GoalTable,
    HumanInstruction,
    split_range,
)
from skillc_gym.envs.webshop.workplace import mapped, publish, work_folder
from skillc_gym.errors import CatalogError, ConfigError, MissingDataError, require_name, unknown_name
from skillc_gym.values import require_whole

MAX_GOALS = 50_000_000
"""WebShop's whole catalogue makes some eight million."""

if TYPE_CHECKING:
    from skillc_gym.envs.webshop.catalog.catalog import Catalog


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
    if (most := int(numbers.sum())) > MAX_GOALS:
        raise CatalogError(f"The catalogue's options make {most:,} goals; at most {MAX_GOALS:,} are made.")
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


def by_product(table: GoalTable) -> GoalTable:
    """The same goals with those of a product next to each other, products in a shuffled order.

    Splits are ranges of goals, so those of test then ask for products that no goal of training asks for, as long as no
    product has as many goals as lie between the two.
    """
    ranks = list(range(len(table.prices)))
    random.Random(SHUFFLE_SEED).shuffle(ranks)
    order = np.argsort(np.array(ranks, dtype=np.int64)[table.product], kind="stable")
    return _ordered(table[:4], table.prices, order)


def _weight(attributes: Sequence[str], counts: Mapping[str, int]) -> float:
    total = 0.0
    for attribute in attributes:  # sum() rounds otherwise from Python 3.12 on, and hashes of panels hold weights
        total += 1 / counts[attribute] if counts[attribute] else 0.0
    return total / max(len(attributes), 1)


def _shuffled(goals: tuple[NDArray[Any], ...], prices: NDArray[np.float64], seed: int) -> GoalTable:
    # Upstream shuffles the list of goals itself: Python's generator, so that an index names the same goal.
    places = list(range(len(goals[0])))
    random.Random(seed).shuffle(places)
    return _ordered(goals, prices, np.array(places, dtype=np.int64))


def _ordered(goals: tuple[NDArray[Any], ...], prices: NDArray[np.float64], order: NDArray[np.int64]) -> GoalTable:
    product, variant, price_upper, weight = (column[order] for column in goals)
    return GoalTable(product, variant, price_upper, weight, np.concatenate([np.zeros(1), np.cumsum(weight)]), prices)


_LARGE = 20_000
_FORMAT = 2
ORDERS = {"upstream": SHUFFLE_SEED, "verl-agent": 42, "products": SHUFFLE_SEED}
"""Orders of the goals, with the seed of their shuffle; "products" keeps those of a product together."""
_SEEDED = re.compile(r"verl-agent:(?P<seed>\d{1,10})(?::(?P<members>[1-9]\d{0,5})(?::(?P<round>\d{1,6}))?)?")
_SEEDED_NAMES = ("verl-agent:SEED", "verl-agent:SEED:MEMBERS", "verl-agent:SEED:MEMBERS:ROUND")


def open_goals(
    catalog: Catalog, *, kind: str = "synthetic", split: str = "all", seed: int = 0, order: str = "upstream"
) -> GoalSet:
    """Returns the goals of a split; the same arguments give the same object.

    Args:
        catalog: The catalogue.
        kind: "synthetic" (combinations of options, texts made by a template) or "human".
        split: "all", "train", "valid" or "test".
        seed: Seeds the prices hidden behind ranges and the highest prices; never the order. 0 for an order with a seed.
        order: "upstream" or "verl-agent", each with its own shuffle of the same goals and its own splits, or
            "products", which keeps those of a product together, so that splits share no products. verl-agent gives
            each group of a vector a seed of its own, for its prices as well: "verl-agent:SEED" are the goals of one
            group, and "verl-agent:SEED:MEMBERS" the goals that a vector of so many groups draws at its first reset,
            "verl-agent:SEED:MEMBERS:2" at its third.

    Raises:
        SkillCError: An unknown name, no instruction of that kind in the catalogue, or no goal in the split.
    """
    seed = require_whole("seed_prices", seed, 0)
    require_name("kind of goals", kind, KINDS)
    require_name("split", split, SPLITS)
    seeded = _SEEDED.fullmatch(order) if isinstance(order, str) else None
    if order not in tuple(ORDERS) and (seeded is None or int(seeded["seed"]) >= 1 << 32):
        remedy = "SEED is below 2**32, MEMBERS at least 1."
        raise unknown_name("order of goals", order, (*ORDERS, *_SEEDED_NAMES), remedy)
    if seeded is not None and seed:
        raise ConfigError(f"seed_prices={seed} and goal_order={order!r} both seed the prices; leave seed_prices out.")
    return _goal_set(catalog, kind, split, seed, order)


@lru_cache(64)
def _goal_set(catalog: Catalog, kind: str, split: str, seed: int, order: str) -> GoalSet:
    seeded = _SEEDED.fullmatch(order)
    if seeded is not None and seeded["members"]:
        return _drawn(catalog, kind, split, seeded)
    table = _table(catalog, kind, seed, order)
    if not len(table.product):
        raise MissingDataError(
            f"The catalogue has no {kind} instruction for any of its {len(catalog)} products; "
            f"use goals={'human' if kind == 'synthetic' else 'synthetic'!r}, or name the file of instructions in data."
        )
    return GoalSet(catalog, table, kind=kind, split=split, order=order, human=_human(catalog, kind))


def keep_goals(catalog: Catalog) -> None:
    """Makes the goals of a large catalogue beforehand, so that opening it later takes no time."""
    if len(catalog) < _LARGE:
        return
    facts = Facts(catalog, _human.__wrapped__(catalog, "human"))  # the catalogue is at its place for building: not kept
    _write(synthetic_table(facts), _place(catalog, "synthetic", 0))
    _write(human_table(facts), _place(catalog, "human", 0))


def _drawn(catalog: Catalog, kind: str, split: str, order: re.Match[str]) -> GoalSet:
    """The goals that verl-agent's vector draws at a reset: from each group's order one."""
    if split == "all":
        raise ConfigError("verl-agent's vectors draw from the split 'train' or 'test'; name one with such a goal_order")
    seed, members, reset = (int(number or 0) for number in order.groups())
    places = split_range(split, len(open_goals(catalog, kind=kind)), "verl-agent")
    if members > len(places):
        raise ConfigError(f"{members} goals are drawn without repetition, and the split {split!r} has {len(places)}")
    draw = np.random.RandomState(seed)
    drawn = [draw.choice(places, size=members, replace=False) for _ in range(reset + 1)]
    # One order after the other, and none is remembered or written: of a large catalogue each has millions of goals.
    made = (_table.__wrapped__(catalog, kind, 0, f"verl-agent:{seed + member}", False) for member in range(members))
    orders = (GoalSet(catalog, table, kind=kind, human=_human(catalog, kind)) for table in made)
    return DrawnGoals(orders, drawn[-1].tolist())


@lru_cache(16)
def _table(catalog: Catalog, kind: str, seed: int, order: str, write: bool = True) -> GoalTable:
    seeded = _SEEDED.fullmatch(order)
    seed, shuffle = (int(seeded["seed"]),) * 2 if seeded else (seed, ORDERS[order])
    # The many orders of verl-agent are made one after the other, of the same facts.
    facts = _facts if seeded else _facts.__wrapped__

    def make() -> GoalTable:
        make_table = human_table if kind == "human" else synthetic_table
        table = make_table(facts(catalog, kind), seed=seed, shuffle_seed=shuffle)
        return by_product(table) if order == "products" else table

    if len(catalog) < _LARGE or not catalog.in_place:
        return make()
    return _kept(catalog, _place(catalog, kind, seed, order), make, write=write)


@lru_cache(1)
def _facts(catalog: Catalog, kind: str) -> Facts:
    return Facts(catalog, _human(catalog, kind))


@lru_cache(16)
def _human(catalog: Catalog, kind: str) -> dict[str, tuple[HumanInstruction, ...]]:
    if kind != "human":
        return {}
    return {asin: tuple(map(_instruction, rows)) for asin, rows in catalog.human_instructions().items()}


def _instruction(row: Mapping[str, Any]) -> HumanInstruction:
    options = tuple(row["instruction_options"])
    return HumanInstruction(row["instruction"], bounded(row["instruction_attributes"]), options)


def _place(catalog: Catalog, kind: str, seed: int, order: str = "upstream") -> Path:
    named = "" if order == "upstream" else f"-{order}"
    return catalog.folder / f"goals-{kind}-{seed}{named}-{_FORMAT}"


def _kept(catalog: Catalog, folder: Path, make: Callable[[], GoalTable], *, write: bool) -> GoalTable:
    """Maps a table from its folder, where it may be written the first time."""
    if not folder.is_dir():
        table = make()
        if not write or not catalog.in_place:  # another one may have been built there meanwhile
            return table
        try:
            _write(table, folder)
        except OSError:  # a folder that cannot be written to: every process makes its own
            return table
    try:
        return GoalTable(*mapped(folder, *GoalTable._fields))
    except (OSError, ValueError) as error:
        raise CatalogError(f"The goals in {folder} are damaged ({error}); delete that folder.") from error


def _write(table: GoalTable, folder: Path) -> None:
    with work_folder(folder) as work:
        for name, column in table._asdict().items():
            np.save(work / f"{name}.npy", column)
        publish(work, folder)

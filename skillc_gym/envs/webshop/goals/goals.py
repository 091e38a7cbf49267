"""Goals: what a customer asks for, in upstream's order, as a table that holds numbers and makes texts when asked.

A goal is a product and either one of the instructions people wrote for it, or one combination of its options. The
table keeps four numbers a goal, so millions of goals can lie in one memory-mapped file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skillc_gym.errors import ConfigError, require_name, unknown_name
from skillc_gym.values import digits

if TYPE_CHECKING:
    from skillc_gym.envs.webshop.catalog.catalog import Catalog

NO_LIMIT = 1_000_000
"""The highest price of a goal that names none."""
SPLITS = ("all", "train", "valid", "test")
KINDS = ("synthetic", "human")
_TEST, _VALID = 500, 1_500
_REMEMBERED = 1 << 9


class HumanInstruction(NamedTuple):
    """An instruction that a person wrote for a product."""

    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Goal:
    """What a customer asks for; category, query, name and path of categories are those of the product it was made from.

    Attributes:
        index: Its place in upstream's final order.
        asin: That product's; another one may satisfy the goal as well.
        instruction: The text shown to the agent, with the clause about the price.
        price_upper: The highest price; `NO_LIMIT` when the text names none.
        options: The options asked for: values of a human goal, (name, value) of a synthetic one.
        weight: Its weight in random draws.
    """

    index: int
    asin: str
    category: str
    query: str
    name: str
    product_category: str
    instruction: str
    attributes: tuple[str, ...]
    price_upper: float
    options: tuple[str | tuple[str, str], ...]
    weight: float


class GoalTable(NamedTuple):
    """All goals of a catalogue in their final order, as columns; N goals, P products.

    Attributes:
        product: int32 (N,): the index of the goal's product.
        variant: int32 (N,): which combination of options, or which instruction of the product.
        price_upper: float64 (N,): the highest price.
        weight: float64 (N,): the weight in random draws.
        cumulative: float64 (N + 1,): running sum of the weights, from 0.
        prices: float64 (P,): every product's one price.
    """

    product: NDArray[np.int32]
    variant: NDArray[np.int32]
    price_upper: NDArray[np.float64]
    weight: NDArray[np.float64]
    cumulative: NDArray[np.float64]
    prices: NDArray[np.float64]


class GoalSet:
    """The goals of one split of a ``table``, drawn by number; shared by all environments of a process."""

    def __init__(
        self,
        products: Catalog,
        table: GoalTable,
        *,
        kind: str,
        split: str = "all",
        order: str = "upstream",
        human: Mapping[str, Sequence[HumanInstruction]],
    ) -> None:
        self.products, self.table, self.kind, self.split = products, table, kind, split
        self.range = split_range(split, len(table.product), order)
        self._human = human
        self.goal = lru_cache(_REMEMBERED)(self._goal)

    def __len__(self) -> int:
        return len(self.range)

    @cached_property
    def task_ids(self) -> tuple[str, ...]:
        """The ids ``<kind>/<index>`` of the split's tasks, sorted as text. Made when asked for."""
        return tuple(sorted(map(self.task_id, self.range)))

    def task_id(self, index: int) -> str:
        """Returns the id of a goal."""
        return f"{self.kind}/{index}"

    def index(self, task_id: str) -> int:
        """Returns the goal's index; UnknownNameError if the split has no such task."""
        index = digits(task_id.rpartition("/")[2])
        if index is not None and index in self.range and task_id == self.task_id(index):
            return index
        first, last = self.task_id(self.range.start), self.task_id(self.range.stop - 1)
        raise unknown_name("task id", task_id, (first, last), f"The split {self.split!r} has {first} to {last}.")

    @cached_property
    def sha256(self) -> str:
        """The hash of all goals in their order, of every split: their table, and what people wrote."""
        found = sha256(repr(self._human).encode("utf-8", "surrogatepass"))
        for column in self.table[:3]:
            found.update(np.ascontiguousarray(column).data)
        return found.hexdigest()

    def price(self, goal: Goal, product: int) -> float:
        """Returns a product's one price, as it is where this goal is asked for."""
        return float(self.table.prices[product])

    def prices(self) -> Iterator[NDArray[np.float64]]:
        """Gives the prices of all products, once per goal where each goal has its own."""
        yield self.table.prices

    def draw(self, generator: np.random.Generator, *, skewed: bool = False) -> int:
        """Draws a goal of the split by weight; evenly where all weights are 0.

        ``skewed`` draws as upstream does, one place late: never the first goal, the last one too often.
        """
        start, stop = self.range.start, self.range.stop
        sums = self.table.cumulative
        if sums[stop] <= sums[start] and not skewed:  # no goal asks for an attribute, so none has a weight
            return start + int(generator.integers(stop - start))
        value = sums[start] + generator.random() * (sums[stop] - sums[start])
        place = int(np.searchsorted(sums[start : stop + 1], value, side="right"))
        return start + min(place if skewed else place - 1, stop - start - 1)

    def _goal(self, index: int) -> Goal:
        product = self.products.product(int(self.table.product[index]))
        variant, limit = int(self.table.variant[index]), float(self.table.price_upper[index])
        options: tuple[str | tuple[str, str], ...]
        if self.kind == "human":
            text, attributes, options = self._human[product.asin][variant]
            text = text.strip(".")
        else:
            options = pairs = combination(product.options, variant)
            wanted = ", and ".join(f"{name}: {value}" for name, value in pairs)
            text = (product.instruction or "") + (f" with {wanted}" if pairs else "")
            attributes = product.instruction_attributes
        text += f", and price lower than {limit:.2f} dollars" if limit < NO_LIMIT else ""
        place = (product.category, product.query, product.title, product.product_category)
        weight = float(self.table.weight[index])
        return Goal(index, product.asin, *place, text, attributes, limit, options, weight)


class DrawnGoals(GoalSet):
    """Goals that were drawn from several sets of one catalogue and kind, one of each, with that set's prices."""

    def __init__(self, sets: Iterable[GoalSet], drawn: Sequence[int]) -> None:
        rows, self._prices = [], list[NDArray[np.float64]]()
        for one, index in zip(sets, drawn, strict=True):
            rows.append([column[index] for column in one.table[:4]])
            self._prices.append(one.table.prices)
        product, variant, price_upper, weight = map(np.array, zip(*rows, strict=True))
        sums = np.concatenate([np.zeros(1), np.cumsum(weight)])
        table = GoalTable(product, variant, price_upper, weight, sums, self._prices[0])
        super().__init__(one.products, table, kind=one.kind, human=one._human)

    def price(self, goal: Goal, product: int) -> float:
        """Returns a product's one price in the set that the goal is from."""
        return float(self._prices[goal.index][product])

    def prices(self) -> Iterator[NDArray[np.float64]]:
        """Gives the prices of all products of every goal's set."""
        yield from self._prices


def split_range(split: str, goals: int, order: str = "upstream") -> range:
    """Returns the indices of a split's goals, of so many in all; in verl-agent's order "train" begins at goal 500.

    UnknownNameError if there is no such split, ConfigError if it holds no goal.
    """
    require_name("split", split, SPLITS)
    bounds = {"all": (0, goals), "test": (0, _TEST), "valid": (_TEST, _VALID), "train": (_VALID, goals)}
    if order.partition(":")[0] == "verl-agent":
        bounds |= {"valid": (0, _TEST), "train": (_TEST, goals)}
    start, stop = bounds[split]
    found = range(start, min(stop, goals))
    if not found:
        raise ConfigError(
            f"The split {split!r} begins at goal {start}, of {goals}; use split='all', or more products. The "
            "literature's splits are of the full catalogue; docs/webshop.md tells how to get it."
        )
    return found


def split_of(task_id: str) -> str:
    """Returns the split of a task by its number in any order but verl-agent's; "" for what is no task id."""
    number = digits(task_id.rpartition("/")[2])
    if number is None:
        return ""
    return "test" if number < _TEST else "valid" if number < _VALID else "train"


def combination(options: Mapping[str, Sequence[str]], number: int) -> tuple[tuple[str, str], ...]:
    """Returns one combination of options, as (name, value) by name; the last name's values vary fastest."""
    pairs: list[tuple[str, str]] = []
    for name in sorted(options, reverse=True):
        number, place = divmod(number, len(options[name]))
        pairs.append((name, options[name][place]))
    return tuple(reversed(pairs))

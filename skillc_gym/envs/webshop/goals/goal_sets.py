"""The goal sets of a process: built once per catalogue, kind and seed, and shared by all environments."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from skillc_gym.envs.webshop.goals.goal_table import SHUFFLE_SEED, Facts, by_product, human_table, synthetic_table
from skillc_gym.envs.webshop.goals.goals import KINDS, GoalSet, GoalTable, HumanInstruction
from skillc_gym.envs.webshop.workplace import publish, work_folder
from skillc_gym.errors import CatalogError, MissingDataError, unknown_name

if TYPE_CHECKING:
    from skillc_gym.envs.webshop.catalog.built import Catalog

__all__ = ["ORDERS", "keep_goals", "open_goals"]

_LARGE = 20_000
_FORMAT = 2
ORDERS = {"upstream": SHUFFLE_SEED, "verl-agent": 42, "products": SHUFFLE_SEED}
"""Orders of the goals, with the seed of their shuffle; "products" keeps those of a product together."""


class _Goals(NamedTuple):
    table: GoalTable
    human: dict[str, tuple[HumanInstruction, ...]]


@lru_cache(64)
def open_goals(
    catalog: Catalog, *, kind: str = "synthetic", split: str = "all", seed: int = 0, order: str = "upstream"
) -> GoalSet:
    """Returns the goals of a split; the same arguments give the same object.

    Args:
        catalog: The catalogue.
        kind: "synthetic" (combinations of options, texts made by a template) or "human".
        split: "all", "train", "valid" or "test".
        seed: Seeds the prices hidden behind ranges and the highest prices; never the order.
        order: "upstream" or "verl-agent", each with its own shuffle of the same goals and its own splits, or
            "products", which keeps those of a product together, so that splits share no products.

    Raises:
        UnknownNameError: If the kind, the split or the order does not exist.
        MissingDataError: If the catalogue has no instruction of that kind.
        ConfigError: If the split holds no goal.
    """
    if kind not in KINDS:
        raise unknown_name("kind of goals", kind, KINDS)
    if order not in ORDERS:
        raise unknown_name("order of goals", order, ORDERS)
    goals = _goals(catalog, kind, seed, order)
    if not len(goals.table.product):
        raise MissingDataError(
            f"The catalogue has no {kind} instruction for any of its {len(catalog)} products; "
            f"use goals={'human' if kind == 'synthetic' else 'synthetic'!r}, or name the file of instructions in data."
        )
    return GoalSet(catalog, goals.table, kind=kind, split=split, order=order, human=goals.human)


def keep_goals(catalog: Catalog, *, seed: int = 0) -> None:
    """Makes the goals of a large catalogue beforehand, so that opening it later takes no time."""
    if len(catalog) < _LARGE:
        return
    facts = Facts(catalog, _human(catalog))
    _write(synthetic_table(facts, seed=seed), _place(catalog, "synthetic", seed))
    _write(human_table(facts, seed=seed), _place(catalog, "human", seed))


@lru_cache(16)
def _goals(catalog: Catalog, kind: str, seed: int, order: str) -> _Goals:
    place, seeds = _place(catalog, kind, seed, order), {"seed": seed, "shuffle_seed": ORDERS[order]}
    human = _human(catalog) if kind == "human" else {}

    def make() -> GoalTable:
        make_table = human_table if kind == "human" else synthetic_table
        table = make_table(Facts(catalog, human), **seeds)
        return by_product(table) if order == "products" else table

    return _Goals(_kept(catalog, place, make), human)


def _human(catalog: Catalog) -> dict[str, tuple[HumanInstruction, ...]]:
    return {
        asin: tuple(HumanInstruction.read(row) for row in rows) for asin, rows in catalog.human_instructions().items()
    }


def _place(catalog: Catalog, kind: str, seed: int, order: str = "upstream") -> Path:
    named = "" if order == "upstream" else f"-{order}"
    return Path(getattr(catalog, "folder", "")) / f"goals-{kind}-{seed}{named}-{_FORMAT}"


def _kept(catalog: Catalog, folder: Path, make: Callable[[], GoalTable]) -> GoalTable:
    """Maps a large catalogue's table from its folder, where it is written the first time; makes a small one's."""
    if getattr(catalog, "folder", None) is None or len(catalog) < _LARGE:
        return make()
    if not folder.is_dir():
        table = make()
        try:
            _write(table, folder)
        except OSError:  # a folder that cannot be written to: every process makes its own
            return table
    try:
        return GoalTable(*(np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r")) for name in GoalTable._fields))
    except (OSError, ValueError) as error:
        raise CatalogError(f"The goals in {folder} are damaged ({error}); delete that folder.") from error


def _write(table: GoalTable, folder: Path) -> None:
    with work_folder(folder) as work:
        for name, column in table._asdict().items():
            np.save(work / f"{name}.npy", column)
        publish(work, folder)

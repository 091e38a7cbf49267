"""The goal sets of a process: built once per catalogue, kind and seed, and shared by all environments."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from skillc_gym.errors import MissingDataError, unknown_name
from skillc_gym.webshop.goal_table import human_table, synthetic_table
from skillc_gym.webshop.goals import KINDS, GoalSet, GoalTable, HumanInstruction

if TYPE_CHECKING:
    from skillc_gym.webshop.catalog import Catalog

__all__ = ["open_goals"]

_LARGE = 20_000
_FORMAT = 1


class _Goals(NamedTuple):
    table: GoalTable
    human: dict[str, tuple[HumanInstruction, ...]]


@lru_cache(64)
def open_goals(catalog: Catalog, *, kind: str = "synthetic", split: str = "all", seed: int = 0) -> GoalSet:
    """Returns the goals of a split; the same arguments give the same object.

    Args:
        catalog: The catalogue.
        kind: "synthetic" (combinations of options, texts made by a template) or "human".
        split: "all", "train", "valid" or "test".
        seed: Seeds the prices hidden behind ranges and the highest prices; never the order.

    Raises:
        UnknownNameError: If the kind or the split does not exist.
        MissingDataError: If the catalogue has no instruction of that kind.
        ConfigError: If the split holds no goal.
    """
    if kind not in KINDS:
        raise unknown_name("kind of goals", kind, KINDS)
    goals = _goals(catalog, kind, seed)
    if not len(goals.table.product):
        raise MissingDataError(
            f"The catalogue has no {kind} instruction for any of its {len(catalog)} products; "
            f"use goals={'human' if kind == 'synthetic' else 'synthetic'!r}, or name the file of instructions in data."
        )
    return GoalSet(catalog, goals.table, kind=kind, split=split, human=goals.human)


@lru_cache(16)
def _goals(catalog: Catalog, kind: str, seed: int) -> _Goals:
    if kind == "synthetic":
        return _Goals(_kept(catalog, f"goals-{kind}-{seed}", lambda: synthetic_table(catalog, seed=seed)), {})
    human = {
        asin: tuple(HumanInstruction.read(row) for row in rows) for asin, rows in catalog.human_instructions().items()
    }
    return _Goals(_kept(catalog, f"goals-{kind}-{seed}", lambda: human_table(catalog, human, seed=seed)), human)


def _kept(catalog: Catalog, name: str, make: Callable[[], GoalTable]) -> GoalTable:
    """Maps a large catalogue's table from its folder, where it is written the first time; makes a small one's."""
    home = getattr(catalog, "folder", None)
    if home is None or len(catalog) < _LARGE:
        return make()
    folder = Path(home) / f"{name}-{_FORMAT}"
    if not folder.is_dir():
        table = make()
        try:
            _write(table, folder)
        except OSError:  # a folder that cannot be written to: every process makes its own
            return table
    return GoalTable(*(np.asarray(np.load(folder / f"{column}.npy", mmap_mode="r")) for column in GoalTable._fields))


def _write(table: GoalTable, folder: Path) -> None:
    work = Path(tempfile.mkdtemp(prefix=".goals-", dir=folder.parent))
    try:
        for name, column in table._asdict().items():
            np.save(work / f"{name}.npy", column)
        work.chmod(0o755)
        work.rename(folder)
    except OSError:
        # Another process may have written the same meanwhile.
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)

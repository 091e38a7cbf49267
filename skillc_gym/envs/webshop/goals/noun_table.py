"""The nouns of a catalogue's names, found beforehand and kept in its folder: a slow tagger runs once per product."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from skillc_gym.envs.webshop.goals.nouns import FunctionNouns, NounTagger
from skillc_gym.errors import ConfigError

if TYPE_CHECKING:
    from skillc_gym.envs.webshop.catalog.catalog import Catalog

__all__ = ["NounsOf", "keep_nouns", "nouns_of"]

NounsOf = Callable[[int], tuple[str, ...]]
"""From a product's index to the nouns of its name."""
_FORMAT = 1
_REMEMBERED = 1 << 11


def keep_nouns(catalog: Catalog, tagger: NounTagger, progress: Callable[[int], None] | None = None) -> Path:
    """Finds the nouns of all names and keeps them in the catalogue's folder.

    Args:
        catalog: The catalogue.
        tagger: The tagger.
        progress: Called with the number of products every ten thousand of them.

    Returns:
        The folder that was written, or was there already.

    Raises:
        ConfigError: If the tagger is a function without an attribute ``id``: nobody could tell later whose nouns
            these are.
    """
    if not _has_id(tagger):
        raise ConfigError(f"Give the function an attribute 'id' before keeping its nouns; {tagger.id!r} may be any.")
    folder = _place(catalog, tagger)
    if folder.is_dir():
        return folder
    work = Path(tempfile.mkdtemp(prefix=".nouns-", dir=folder.parent))
    try:
        ends = np.zeros(len(catalog) + 1, np.int64)
        with (work / "nouns.bin").open("wb") as file:
            for index in range(len(catalog)):
                ends[index + 1] = ends[index] + file.write(
                    json.dumps(tagger.find(catalog.product(index).title)).encode()
                )
                if progress and index % 10_000 == 0:
                    progress(index)
        np.save(work / "ends.npy", ends)
        work.chmod(0o755)
        work.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return folder


def nouns_of(catalog: Catalog, tagger: NounTagger) -> NounsOf:
    """Returns what tells the nouns of a product: from the catalogue's folder where they are kept, else by tagging."""
    if getattr(catalog, "folder", None) is None or not _has_id(tagger) or not _place(catalog, tagger).is_dir():
        return lambda index: tagger.nouns(catalog.product(index).title)
    folder = _place(catalog, tagger)
    ends = np.load(folder / "ends.npy", mmap_mode="r")
    kept = np.memmap(folder / "nouns.bin", np.uint8, "r")
    return lru_cache(_REMEMBERED)(lambda index: tuple(json.loads(kept[ends[index] : ends[index + 1]].tobytes())))


def _has_id(tagger: NounTagger) -> bool:
    return not (isinstance(tagger, FunctionNouns) and tagger.id.startswith("function-"))


def _place(catalog: Catalog, tagger: NounTagger) -> Path:
    return catalog.folder / f"nouns-{re.sub(r'[^a-zA-Z0-9._-]', '_', tagger.id)}-{_FORMAT}"

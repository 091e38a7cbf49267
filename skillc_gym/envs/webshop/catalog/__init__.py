"""Products: read, generated, stored, opened."""

from skillc_gym.envs.webshop.catalog.built import Catalog
from skillc_gym.envs.webshop.catalog.catalog import build_catalog, cache_folder, open_catalog
from skillc_gym.envs.webshop.catalog.generate import GeneratedSource, generate_rows
from skillc_gym.envs.webshop.catalog.product import BadRowError, Product, clean
from skillc_gym.envs.webshop.catalog.sources import JsonSource

__all__ = [
    "BadRowError",
    "Catalog",
    "GeneratedSource",
    "JsonSource",
    "Product",
    "build_catalog",
    "cache_folder",
    "clean",
    "generate_rows",
    "open_catalog",
]

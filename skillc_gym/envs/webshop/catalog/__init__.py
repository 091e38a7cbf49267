"""Products: read, generated, stored, opened."""

from skillc_gym.envs.webshop.catalog.catalog import Catalog
from skillc_gym.envs.webshop.catalog.generate import GeneratedSource, generate_rows
from skillc_gym.envs.webshop.catalog.opening import build_catalog, open_catalog
from skillc_gym.envs.webshop.catalog.product import BadRowError, Product, clean
from skillc_gym.envs.webshop.catalog.sources import JsonSource

__all__ = [
    "BadRowError",
    "Catalog",
    "GeneratedSource",
    "JsonSource",
    "Product",
    "build_catalog",
    "clean",
    "generate_rows",
    "open_catalog",
]

"""Products: read, generated, stored, opened."""

from skillc_gym.envs.webshop.catalog.built import Catalog, LoadReport, Note
from skillc_gym.envs.webshop.catalog.catalog import build_catalog, cache_folder, open_catalog
from skillc_gym.envs.webshop.catalog.generate import GeneratedSource, generate_rows
from skillc_gym.envs.webshop.catalog.product import BadRowError, Listing, Product, clean
from skillc_gym.envs.webshop.catalog.sources import JsonSource

__all__ = [
    "BadRowError",
    "Catalog",
    "GeneratedSource",
    "JsonSource",
    "Listing",
    "LoadReport",
    "Note",
    "Product",
    "build_catalog",
    "cache_folder",
    "clean",
    "generate_rows",
    "open_catalog",
]

"""Opening catalogues: what a source names is built into a folder once per content, then mapped by every process.

catalog = open_catalog("data/webshop")
catalog.product(catalog.search("red leather shoes")[0]).title
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from skillc_gym.envs.webshop.catalog.build import FORMAT, KIND, CatalogBuilder
from skillc_gym.envs.webshop.catalog.catalog import Catalog, open_built, read_manifest
from skillc_gym.envs.webshop.catalog.generate import GENERATOR_OPTIONS, GeneratedSource
from skillc_gym.envs.webshop.catalog.sources import FETCH, JsonSource
from skillc_gym.envs.webshop.workplace import publish, work_folder
from skillc_gym.errors import CatalogError, ConfigError, MissingDataError, SkillCError, StorageError, require_name
from skillc_gym.files import cache_folder
from skillc_gym.values import require_whole

Source = str | os.PathLike[str] | Mapping[str, Any] | Catalog | None
"""What names a catalogue; see `open_catalog`."""


def open_catalog(source: Source = None, *, num_products: int | None = None, **generator: Any) -> Catalog:
    """Opens a catalogue; the same source gives the same object within a process.

    Args:
        source: A folder made by ``skillc tools make-catalog``; a folder with upstream's JSON files; a mapping
            ``{"products": path, "attributes": path, "human_goals": path}``; or "generated". None: the folder that
            ``$WEBSHOP_DATA`` names. A catalogue that is open already is returned as it is.
        num_products: Of upstream's files, the first so many rows; of generated products, their number.
        generator: With "generated": ``size`` and ``seed``.

    Raises:
        SkillCError: Missing data, a file or a built catalogue that cannot be read, or arguments that make no sense.
    """
    limit = {} if num_products is None else {"num_products": require_whole("num_products", num_products, 1)}
    if source == "generated":
        return _built(_generated(generator, num_products))
    if generator:
        raise ConfigError(f"{', '.join(generator)}: no option of {source!r}; only data='generated' has some.")
    if isinstance(source, Mapping):
        theirs = source.get("num_products")
        if None not in (theirs, num_products) and theirs != num_products:
            raise ConfigError(f"num_products={num_products} beside {theirs!r} in data; leave one of them out.")
        return _built(JsonSource.of_mapping({**source, **limit}))
    catalog = _of_folder(source, limit) if source is None or isinstance(source, str | os.PathLike) else source
    if not hasattr(catalog, "search"):
        raise ConfigError(f"data is 'generated', a folder, a mapping of files or a Catalog; got {source!r:.80}")
    if num_products is not None and len(catalog) > num_products:
        raise ConfigError(
            f"num_products={num_products!r} is for upstream's files; this catalogue is built, with {len(catalog):,} "
            "products. Build a smaller one: skillc tools make-catalog --num-products"
        )
    return catalog


def _generated(options: Mapping[str, Any], num_products: int | None) -> GeneratedSource:
    for name in options:
        require_name("option of the generator", name, GENERATOR_OPTIONS)
    if num_products is None:
        return GeneratedSource(**options)
    if "size" in options:
        raise ConfigError(
            f"num_products={num_products!r} and the generator's size={options['size']!r} both say how many products "
            "are made; leave one out."
        )
    return GeneratedSource(num_products, **options)


def _of_folder(source: str | os.PathLike[str] | None, limit: Mapping[str, int]) -> Catalog:
    named = source or os.environ.get("WEBSHOP_DATA")
    if not named:
        raise MissingDataError(f"No WebShop data: WEBSHOP_DATA is not set. {FETCH}")
    folder = Path(named).expanduser().resolve()
    if not folder.is_dir():
        raise MissingDataError(f"There is no folder {folder}. {FETCH}")
    if (folder / "manifest.json").is_file():
        return open_built(str(folder))
    return _built(JsonSource.of_folder(folder, **limit))


def build_catalog(
    source: JsonSource | GeneratedSource, folder: Path, progress: Callable[[int], None] | None = None
) -> None:
    """Builds a catalogue next to its place and moves it there when it is whole.

    Args:
        source: Where rows come from.
        folder: Where it goes; must not exist, or be empty.
        progress: Called with the number of rows every ten thousand of them.

    Raises:
        CatalogError: A file that breaks off, no row that makes a product, or a place that is taken or not writable.
    """
    folder = Path(os.path.realpath(folder))  # a link or "." would be taken for something else
    if os.path.ismount(folder):
        raise CatalogError(
            f"{folder} is where a disk is mounted, and a catalogue is moved to its place whole; name a folder in it."
        )
    try:
        with work_folder(folder) as work:
            if _is_built(folder, source.identity()):  # by another process, while this one waited
                return
            builder = CatalogBuilder(work, progress)
            source.build(builder)
            builder.finish(source.identity())
            # Goals read products, so importing them above would be a circle for whoever imports goals first.
            from skillc_gym.envs.webshop.goals.tables import keep_goals

            keep_goals(Catalog(work))
            publish(work, folder)
            if not _is_built(folder, source.identity()):
                raise CatalogError(f"{folder} cannot be made: it holds something else; name another folder.")
    except SkillCError:
        raise
    except OSError as error:
        raise StorageError(
            f"The catalogue {folder} cannot be built: {error}. If nothing can be written there, name another folder: "
            "--out of skillc tools make-catalog, or SKILLC_CACHE for catalogues that are built when they are opened."
        ) from error


def _built(source: JsonSource | GeneratedSource) -> Catalog:
    """Opens the source's catalogue from the cache; builds it first where this content was not seen before."""
    content = json.dumps([KIND, FORMAT, source.identity()], sort_keys=True)
    folder = cache_folder("webshop") / hashlib.sha256(content.encode()).hexdigest()[:24]
    if not (folder / "manifest.json").is_file():
        build_catalog(source, folder)
    return open_built(str(folder))


def _is_built(folder: Path, identity: Mapping[str, Any]) -> bool:
    return (folder / "manifest.json").is_file() and read_manifest(folder)["source"] == identity

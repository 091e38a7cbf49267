"""``skillc serve-webshop``: serve the shop as a web site, for people and for agents with a browser.

``skillc tools make-catalog``: make a WebShop catalogue from upstream's files or of generated products.
``skillc tools tag-nouns``: find the nouns of a catalogue's names beforehand.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any

import tyro

from skillc_gym.envs.webshop.catalog import (
    Catalog,
    GeneratedSource,
    JsonSource,
    build_catalog,
    generate_rows,
    open_catalog,
)
from skillc_gym.envs.webshop.goals import keep_nouns, noun_tagger
from skillc_gym.errors import ConfigError
from skillc_gym.files import replace_file
from skillc_lab.cli.command import Command, complain, require_empty, say
from trainers.base import Count

FILES = ("items_shuffle.json", "items_ins_v2.json", "items_human_ins.json")
SHOWN_NOTES = 10


@dataclass(frozen=True)
class Files:
    """Upstream's files."""

    source: Path | None = None
    """Folder with upstream's JSON files, plain or .xz or .gz."""
    products: Path | None = None
    """File items_shuffle*.json."""
    attributes: Path | None = None
    """File items_ins_v2*.json, beside --products."""
    human_goals: Path | None = None
    """File items_human_ins.json, beside --products."""
    num_products: int | None = None
    """Read only the first so many rows."""
    accept_truncated: bool = False
    """Keep the whole rows of a file that is cut off."""


@dataclass(frozen=True)
class Generated:
    """Generated products."""

    generate: int | None = None
    """Generate so many products."""
    seed: int = 0
    """Seed of generated products."""
    json: bool = False
    """With --generate: write upstream's three JSON files."""


@dataclass(frozen=True)
class MakeCatalogOptions:
    """Make a WebShop catalogue: from upstream's JSON files (--source or --products), or of generated products.

    Rows are read and written one by one, so memory does not grow with the files. The folder is then opened with
    gym.make("skillc/WebShop-v0", data="catalogs/full").

    Examples:
      skillc tools make-catalog --out catalogs/full --products items_shuffle.json --attributes items_ins_v2.json
      skillc tools make-catalog --out catalogs/folder --source data/webshop
      skillc tools make-catalog --out catalogs/big --generate 1180000 --seed 0
      skillc tools make-catalog --out made --generate 1000 --json
    """

    files: Files
    generated: Generated
    out: Path
    """Folder to make; must not exist, or be empty."""
    quiet: bool = False
    """No progress."""

    def rows(self) -> JsonSource | GeneratedSource:
        """Where the products come from; a ConfigError unless one source was named."""
        files, size = self.files, self.generated.generate
        if sum(given is not None for given in (files.source, files.products, size)) != 1:
            raise ConfigError("Name one of --source FOLDER, --products FILE and --generate N.")
        if files.products is None and (files.attributes or files.human_goals):
            raise ConfigError("--attributes and --human-goals go with --products only.")
        if size is not None and (files.num_products is not None or files.accept_truncated):
            raise ConfigError("--num-products and --accept-truncated go with --source or --products only.")
        if size is not None:
            return GeneratedSource(size, self.generated.seed)
        limits: dict[str, Any] = {"num_products": files.num_products, "accept_truncated": files.accept_truncated}
        if files.products is not None:
            return JsonSource(files.products, files.attributes, files.human_goals, **limits)
        assert files.source is not None
        return JsonSource.of_folder(files.source, **limits)


def _make(options: MakeCatalogOptions) -> int:
    rows = options.rows()
    require_empty(options.out)
    wanted = options.generated
    if not wanted.json:
        _build(options, rows)
    elif wanted.generate is None:
        raise ConfigError("--json goes with --generate only.")
    else:
        write_json(options.out, wanted.generate, wanted.seed)
    return 0


def write_json(folder: Path, size: int, seed: int) -> None:
    """Writes a generated catalogue as upstream's three files, row by row, each from rows made anew."""
    products, attributes, human = (folder / name for name in FILES)
    try:
        _write_joined(products, "[]", (json.dumps(made.row) for made in generate_rows(size, seed)))
        _write_joined(attributes, "{}", (_entry(made.row, made.attributes) for made in generate_rows(size, seed)))
        _write_joined(human, "{}", (_entry(made.row, made.human) for made in generate_rows(size, seed) if made.human))
    except BaseException:  # the same command can be given again
        for path in (products, attributes):
            path.unlink(missing_ok=True)
        raise


def _entry(row: Mapping[str, Any], value: Any) -> str:
    return f"{json.dumps(row['asin'])}: {json.dumps(value)}"


def _write_joined(path: Path, brackets: str, parts: Iterable[str]) -> None:
    pieces = ((",\n" if number else "") + part for number, part in enumerate(parts))
    whole = chain((brackets[0] + "\n",), pieces, ("\n" + brackets[1] + "\n",))
    replace_file(path, (text.encode("ascii") for text in whole))


def _build(options: MakeCatalogOptions, rows: JsonSource | GeneratedSource) -> None:
    import resource  # which Unix alone has; the other commands here run without it

    began = time.perf_counter()
    build_catalog(rows, options.out, None if options.quiet else _progress)
    catalog = Catalog(options.out)
    report = catalog.load_report
    say(f"{options.out}: {report}")
    for note in islice(report, SHOWN_NOTES):
        say(f"  {note}")
    if sum(1 for _ in report) > SHOWN_NOTES:
        say(f"  ... all of them in {options.out / 'report.jsonl'}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    say(f"sha256 {catalog.sha256}; {time.perf_counter() - began:.1f} s, at most {peak:,.0f} MB of memory")


def _progress(rows: int) -> None:
    sys.stderr.write(f"\r{rows:,} rows" + ("" if rows % 1_000_000 else "\n"))
    sys.stderr.flush()


@dataclass(frozen=True)
class TagNounsOptions:
    """Find the nouns of all names of a catalogue beforehand, so that a slow tagger need not run at purchases."""

    data: Annotated[str, tyro.conf.Positional]
    """A catalogue's folder, or one with upstream's files."""
    tagger: str = "spacy"
    """"builtin", "spacy" or the name of a spaCy model."""


def _tag(options: TagNounsOptions) -> int:
    catalog, tagger = open_catalog(options.data), noun_tagger(options.tagger)
    folder = keep_nouns(catalog, tagger, lambda done: complain(f"{done:,} of {len(catalog):,}"))
    say(f"{len(catalog):,} products, tagger {tagger.id}: {folder}")
    return 0


# The site -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ServeWebshopOptions:
    """Serve the shop as a web site, for people, and for agents with a browser, until Ctrl-C.

    Example: skillc serve-webshop --data generated --record demonstrations.jsonl
    """

    data: str | None = None
    """A catalogue's folder, one with upstream's files, or "generated"; none for the folder that WEBSHOP_DATA names."""
    goals: str = "synthetic"
    """"synthetic" or "human"."""
    split: str = "all"
    """"all", "train", "valid" or "test"."""
    host: str = "127.0.0.1"
    """Where to listen; this machine alone by default."""
    port: int = 3000
    """Port; 0 for any that is free."""
    allow_host: tuple[str, ...] = ()
    """Further names by which the site may be called."""
    token: str = "auto"
    """What visitors must know: "auto" for a new one, which stands in the address, with a --host beyond this machine;
    "none", or a text of your own."""
    record: Path | None = None
    """Keep what people do as demonstrations, a line each, in this file."""
    record_limit: Count = 64
    """How large that file may become, in MiB."""
    upstream_routes: bool = False
    """Open episodes at /SESSION and /fixed_N, for agents made for upstream's own site."""
    env_options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the environment; singly as env.generator='{"size": 500}'."""

    def shop(self) -> dict[str, Any]:
        """The shop's arguments."""
        named = {"data": self.data, "goals": self.goals, "split": self.split}
        return {name: value for name, value in named.items() if value is not None} | dict(self.env_options)


def _serve(options: ServeWebshopOptions) -> int:
    site = {name: getattr(options, name) for name in ("token", "record", "record_limit", "upstream_routes")}
    return serve_site(options.shop(), host=options.host, port=options.port, names=options.allow_host, **site)


def serve_site(shop: Mapping[str, Any], *, host: str = "127.0.0.1", port: int = 3000, **site: Any) -> int:
    """Serves a shop on a port, 0 for any that is free, and says where; ``site`` is what else `open_site` takes."""
    from skillc_gym.envs.webshop.site import address_of_socket, bound_socket, open_site
    from skillc_gym.envs.webshop.site import serve as serve_until_interrupted

    opened = open_site(shop, host=host, **site)
    listener = bound_socket(host, port)
    token = f"?token={opened.token}" if opened.token else ""
    say(f"{address_of_socket(listener)}/{'replays' if site.get('episodes') else ''}{token}")
    sys.stdout.flush()  # whoever started it may be waiting for the address
    serve_until_interrupted(opened, listener)
    return 0


COMMANDS: dict[str, Command[Any]] = {
    "serve-webshop": Command(ServeWebshopOptions, _serve, "the site has closed."),
    "tools make-catalog": Command(MakeCatalogOptions, _make, "interrupted; no catalogue was made."),
    "tools tag-nouns": Command(TagNounsOptions, _tag),
}

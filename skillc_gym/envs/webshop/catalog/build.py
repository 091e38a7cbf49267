"""Building a catalogue's folder from rows, in streaming: products, ids, search index, human instructions, report.

The folder holds plain files of numpy arrays and bytes, which any number of processes map:

- ``manifest.json``: kind, format, number of products, hash of their content, source, counts;
- ``products.bin``, ``ends.npy``: a JSON list a product, and where each ends;
- ``asins.npy``, ``asin_order.npy``: ids, and their order for finding one;
- ``hashes.npy``, ``terms.bin``, ``term_ends.npy``: terms, found by hash and then compared;
- ``starts.npy``, ``docs.npy``, ``codes.npy``, ``highest.npy``, ``saturations.npy``, ``ties.npy``: the postings;
- ``products.npy``, ``window_*.npy``: the order of the products there, and the windows of a search;
- ``dense_terms.npy``, ``columns.npy``: terms that more than one in sixteen products hold, as columns;
- ``human.json``, ``report.jsonl``: human instructions; what became of rows that break upstream's rules;
- ``goals-*/``: the goals of catalogues of 20,000 products and more, by kind and seed of prices.

SQLite would cost a page cache in every process, and locks on network file systems, for one look-up by number and one by
id; Arrow is 55 MB to install to read rows back one at a time.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skillc_gym.envs.webshop.catalog.product import (
    BadRowError,
    Listing,
    Product,
    bounded,
    clean,
    counted,
    is_textual,
    read_asin,
    writable,
)
from skillc_gym.envs.webshop.search.index_build import IndexBuilder
from skillc_gym.errors import CatalogError

KIND, FORMAT = "skillc-webshop-catalog", 4
_PROGRESS_EVERY = 10_000
_TEXT = json.JSONDecoder().raw_decode
_HUMAN_FIELDS = {"instruction": str, "instruction_attributes": list, "instruction_options": list}


class CatalogBuilder:
    """Takes rows one by one, then writes into an empty folder what a catalogue is opened from."""

    def __init__(self, folder: Path, progress: Callable[[int], None] | None = None) -> None:
        self._folder, self._progress = folder, progress
        self._index = IndexBuilder(folder)
        self._records = (folder / "products.bin").open("wb")
        self._notes = (folder / "report.jsonl").open("w", encoding="ascii")
        self._ends, self._asins = [0], dict[str, None]()
        self._hash, self._counts = hashlib.sha256(), Counter[str]()
        self._human: dict[str, list[dict[str, Any]]] = {}

    def add(self, row: object, attributes_of: Callable[[str], object]) -> None:
        """Adds a row of ``items_shuffle*.json``; one that makes no product, or repeats an id, is reported instead.

        ``attributes_of`` gives an id's entry of ``items_ins_v2*.json``, None if there is none.
        """
        asin, number = "", self._counts["rows"]
        self._counts["rows"] += 1
        try:
            asin = read_asin(row) if isinstance(row, Mapping) else ""
            if asin in self._asins:
                raise BadRowError("this id was there before; the first row counts")
            product, notes = clean(row, attributes_of(asin), len(self._asins))
        except BadRowError as error:
            self.report("skipped", str(error), asin=asin, row=number)
        else:
            self._write(product)
            for note in notes:
                self.report("mended", note, asin=asin, row=number)
        if self._progress and self._counts["rows"] % _PROGRESS_EVERY == 0:
            self._progress(self._counts["rows"])

    def add_human(self, asin: str, rows: object) -> None:
        """Adds the human instructions of a product; those of products that are not there are counted only."""
        if asin not in self._asins:
            self._counts["human_elsewhere"] += 1
            return
        self._human.pop(asin, None)  # of entries with the same key, the last counts
        for row in rows if isinstance(rows, list) else [rows]:
            if isinstance(row, Mapping) and all(is_textual(row.get(k), t) for k, t in _HUMAN_FIELDS.items()):
                found = {field: writable(row[field]) for field in _HUMAN_FIELDS}
                note = partial(self.report, "mended", asin=asin)
                found["instruction_attributes"] = counted(found["instruction_attributes"], "human instruction", note)
                self._human.setdefault(asin, []).append(found)
            else:
                self.report("skipped", f"human instruction without {', '.join(_HUMAN_FIELDS)}", asin=asin)

    def report(self, action: str, reason: str, *, asin: str = "", row: int = -1) -> None:
        """Notes what became of a row; or, with the row -1, of a product's human instruction or of a whole file."""
        self._counts[f"human_{action}" if asin and row < 0 else action] += 1
        note = {"row": row, "asin": asin, "action": action, "reason": reason}
        self._notes.write(json.dumps(note) + "\n")

    def finish(self, source: Mapping[str, Any]) -> None:
        """Writes everything that needed all rows, and where they came from; CatalogError if none made a product."""
        self._records.close()
        self._notes.close()
        if not self._asins:
            raise CatalogError(f"None of {self._counts['rows']} rows makes a product. {self._first_reasons()}")
        order = self._write_asins()
        np.save(self._folder / "ends.npy", np.array(self._ends, dtype=np.int64))
        index = self._index.finish(np.argsort(order).astype(np.int32))
        (self._folder / "human.json").write_text(json.dumps(self._human), "ascii")
        manifest = {
            "kind": KIND, "format": FORMAT, "products": len(self._asins), "sha256": self._hash.hexdigest(),
            "source": dict(source), "index": index, "report": dict(self._counts),
        }  # fmt: skip
        (self._folder / "manifest.json").write_text(json.dumps(manifest, indent=1), "ascii")

    def _write(self, product: Product) -> None:
        record = _record(product)
        self._records.write(record)
        self._hash.update(record)
        self._ends.append(self._ends[-1] + len(record))
        self._asins[product.asin] = None
        self._counts["without_instruction"] += product.instruction is None
        alike = (product.category, product.product_category, product.query, *product.attributes)
        self._index.add(product.contents, "\0".join(alike))

    def _write_asins(self) -> NDArray[np.int32]:
        asins = np.array([asin.encode("utf-8", "surrogatepass") for asin in self._asins])
        order: NDArray[np.int32] = np.argsort(asins, kind="stable").astype(np.int32)
        np.save(self._folder / "asins.npy", asins)
        np.save(self._folder / "asin_order.npy", order)
        return order

    def _first_reasons(self) -> str:
        with (self._folder / "report.jsonl").open(encoding="ascii") as file:
            reasons = [json.loads(line)["reason"] for line, _ in zip(file, range(3), strict=False)]
        return f"First reasons: {'; '.join(reasons)}." if reasons else "The files hold no rows."


def _record(product: Product) -> bytes:
    fields = (
        product.asin, product.title, product.price_tag, product.description, product.bullets, product.category,
        product.query, product.product_category, product.pricing, product.options, product.attributes,
        product.main_image, product.instruction, product.instruction_attributes,
    )  # fmt: skip
    return json.dumps(fields, separators=(",", ":")).encode("ascii")


def read_record(record: bytes, index: int) -> Product:
    """Makes the product of what `CatalogBuilder` wrote."""
    asin, title, tag, description, bullets, category, query, path, *rest = json.loads(record)
    pricing, options, attributes, image, text, asked = rest
    groups = {name: tuple(values) for name, values in options.items()}
    return Product(
        index, asin, title, description, tuple(bullets), category, query, path, tag, tuple(pricing), groups,
        bounded(attributes), image, text, bounded(asked),
    )  # fmt: skip


def read_listing(record: bytes, index: int) -> Listing:
    """Reads no more of a record than a list of results shows: its first three texts."""
    text = record.decode("ascii")
    asin, end = _TEXT(text, 1)
    title, end = _TEXT(text, end + 1)
    tag, _ = _TEXT(text, end + 1)
    return Listing(index, asin, title, tag)

"""Catalogues: from files to products, shared and read-only, and what is said of bad files."""

from __future__ import annotations

import copy
import gzip
import json
import pickle

import pytest

from skillc_gym.envs.webshop.catalog import Catalog, build_catalog, open_catalog, sources
from skillc_gym.envs.webshop.catalog.build import FORMAT, KIND
from skillc_gym.envs.webshop.catalog.generate import GeneratedSource, generate_rows
from skillc_gym.envs.webshop.goals.tables import open_goals
from skillc_gym.errors import CatalogError, ConfigError, MissingDataError, UnknownNameError
from skillc_gym.files import cache_folder


@pytest.fixture
def files(tmp_path):
    """Upstream's three files with twelve generated products."""
    return write(tmp_path / "data", [*generate_rows(12, seed=9)])


def write(folder, rows):
    folder.mkdir()
    dump(folder / "items_shuffle.json", [row.row for row in rows])
    dump(folder / "items_ins_v2.json", {row.row["asin"]: row.attributes for row in rows})
    dump(folder / "items_human_ins.json", {row.row["asin"]: row.human for row in rows if row.human})
    return folder


def dump(path, content):
    path.write_text(json.dumps(content), "utf-8")


def change(folder, edit):
    rows = json.loads((folder / "items_shuffle.json").read_text())
    edit(rows)
    dump(folder / "items_shuffle.json", rows)
    return folder


def test_products_by_index_and_id(files):
    catalog = open_catalog(files)
    for place, row in enumerate(generate_rows(12, seed=9)):
        product = catalog.product(place)
        assert (product.index, product.asin, product.title) == (place, row.row["asin"], row.row["name"])
        assert catalog.listing(place).asin == product.asin
        assert catalog.index_of(product.asin) == place
    assert [catalog.index_of(text) for text in ("", "B0", "b" * 10, "B" * 99, "\0", "é", "\ud800")] == [None] * 7
    for place in (-1, 12):
        with pytest.raises(IndexError):
            catalog.product(place)


def test_one_source_is_one_object(files):
    assert open_catalog(files) is open_catalog(str(files))
    mapping = {"products": files / "items_shuffle.json", "attributes": files / "items_ins_v2.json"}
    assert open_catalog(mapping) is open_catalog(dict(mapping))
    assert open_catalog(mapping) is not open_catalog(files)
    assert open_catalog("generated", size=7) is open_catalog("generated", seed=0, size=7)
    assert copy.deepcopy(open_catalog(files)) is pickle.loads(pickle.dumps(open_catalog(files))) is open_catalog(files)


@pytest.mark.parametrize("number", [-1, 0, "x", 1.5, True])
def test_the_number_of_products_is_a_whole_number(files, number):
    for source in (files, "generated", open_catalog(files)):
        with pytest.raises(ConfigError, match="num_products is a whole number from 1 up, got "):
            open_catalog(source, num_products=number)
    with pytest.raises(ConfigError, match="num_products"):
        sources.JsonSource.of_folder(files, num_products=number)


def test_the_content_makes_the_catalogue(files):
    before = open_catalog(files)
    plain = files / "items_shuffle.json"
    packed = gzip.compress(plain.read_bytes())
    change(files, lambda rows: rows.pop())
    assert len(open_catalog(files)) == len(before) - 1
    plain.unlink()
    (files / "items_shuffle.json.gz").write_bytes(packed)
    assert open_catalog(files).sha256 == before.sha256


def test_the_variable_names_a_folder(files, monkeypatch):
    monkeypatch.setenv("HOME", str(files.parent))
    monkeypatch.setenv("WEBSHOP_DATA", "~/data")
    monkeypatch.setenv("SKILLC_CACHE", "~/kept")
    assert cache_folder("webshop") == files.parent / "kept" / "webshop"
    assert open_catalog() is open_catalog(files)
    monkeypatch.delenv("WEBSHOP_DATA")
    with pytest.raises(MissingDataError, match="WEBSHOP_DATA"):
        open_catalog()


def test_searches_end_in_products(files):
    catalog = open_catalog(files)
    for place in range(len(catalog)):
        found = catalog.search(catalog.product(place).title)
        assert found[0] == place
        assert [index for index, _ in catalog.search_scores(catalog.product(place).title)] == found
    assert catalog.search(catalog.product(0).title, k=1) == [0]
    catalog.search(catalog.product(3).title).clear()  # what is returned is the caller's
    assert catalog.search(catalog.product(3).title)


class TestBadRows:
    def test_every_row_is_a_product_or_reported(self, files):
        def edit(rows):
            rows[1] = {**rows[1], "pricing": "Free"}
            rows[2] = {**rows[2], "images": []}
            rows[3] = {**rows[3], "customization_options": None, "pricing": None}
            rows[4] = "no object"
            rows.append({**rows[0], "name": "again"})
            rows.append({})

        catalog = open_catalog(change(files, edit))
        notes = {note.row: note for note in catalog.load_report}
        assert len(catalog) == catalog.load_report.products == 10
        assert (catalog.load_report.rows, catalog.load_report.skipped, catalog.load_report.mended) == (14, 4, 1)
        assert {row: note.action for row, note in notes.items()} == {
            1: "skipped", 2: "mended", 4: "skipped", 12: "skipped", 13: "skipped",
        }  # fmt: skip
        assert "pricing 'Free'" in notes[1].reason
        assert "images" in notes[2].reason
        assert "first row counts" in notes[12].reason
        assert catalog.product(0).title != "again"
        assert "14 rows: 10 products" in str(catalog.load_report)

    def test_products_without_attributes_have_no_instruction(self, files):
        (files / "items_ins_v2.json").unlink()
        catalog = open_catalog(files)
        assert all(catalog.product(place).instruction is None for place in range(len(catalog)))
        assert catalog.load_report.counts["without_instruction"] == len(catalog)

    def test_human_instructions_of_other_products_are_left_out(self, files):
        asin = next(generate_rows(1, seed=9)).row["asin"]
        good = {"instruction": "i want it", "instruction_attributes": ["soft"], "instruction_options": []}
        numbers = {**good, "instruction_options": [7]}
        rows = [{**good, "worker_id": "x"}, {"instruction": 3}, numbers]
        dump(files / "items_human_ins.json", {"B000000000": [good], asin: rows})
        catalog = open_catalog(files)
        assert dict(catalog.human_instructions()) == {asin: [good]}
        assert catalog.load_report.counts["human_elsewhere"] == 1
        assert [(note.asin, note.row) for note in catalog.load_report] == [(asin, -1), (asin, -1)]
        assert (catalog.load_report.skipped, catalog.load_report.counts["human_skipped"]) == (0, 2)
        # Of entries with the same key, the last counts.
        (files / "items_human_ins.json").write_text(
            f'{{"{asin}": {json.dumps([good] * 2)}, "{asin}": {json.dumps(good)}}}'
        )
        assert dict(open_catalog(files).human_instructions()) == {asin: [good]}

    def test_a_product_of_countless_combinations_has_no_synthetic_goals(self, files):
        def edit(rows):
            values = [{"value": str(number)} for number in range(40)]
            rows[0]["customization_options"] = {f"group {number}": values for number in range(12)}

        entries = json.loads((files / "items_ins_v2.json").read_text())
        asin = next(generate_rows(1, seed=9)).row["asin"]
        entries[asin] = {"attributes": ["a"], "instruction": "find me it", "instruction_attributes": ["a"]}
        dump(files / "items_ins_v2.json", entries)
        catalog = open_catalog(change(files, edit))
        assert [(note.row, note.action) for note in catalog.load_report] == [(0, "mended")]
        goals = open_goals(catalog)
        assert asin not in {goals.goal(index).asin for index in goals.range}


class TestBadFiles:
    def test_what_is_not_there_is_named(self, files, tmp_path):
        for error, said, source in (
            (MissingDataError, "nowhere", tmp_path / "nowhere"),
            (MissingDataError, "items_shuffle", tmp_path),
            (MissingDataError, "gone", {"products": files / "gone.json"}),
            (UnknownNameError, "products", {"product": files / "items_shuffle.json"}),
            (ConfigError, "products", {"attributes": files / "items_ins_v2.json"}),
        ):
            with pytest.raises(error, match=said):
                open_catalog(source)

    @pytest.mark.parametrize("share", [0.0, 0.001, 0.6, 0.999])
    def test_a_file_that_breaks_off(self, files, share):
        path = files / "items_shuffle.json"
        text = path.read_text()
        path.write_text(text[: int(len(text) * share)])
        with pytest.raises(CatalogError, match=r"whole elements.*cut off"):
            open_catalog(files)
        assert not list(cache_folder("webshop").glob(".building-*"))
        if share == 0.6:
            catalog = open_catalog({"products": path, "accept_truncated": True})
            assert 5 <= len(catalog) <= 9
            assert [note.action for note in catalog.load_report] == ["truncated"]
            assert catalog.load_report.truncated
            assert "breaks off" in str(catalog.load_report)

    def test_a_file_of_something_else(self, files):
        path = files / "items_shuffle.json"
        dump(files / "rows.json", [{"asin": "B1"}])
        with pytest.raises(CatalogError, match="None of 1 rows makes a product"):
            open_catalog({"products": files / "rows.json"})
        with pytest.raises(CatalogError, match=r"expected '\['"):
            open_catalog({"products": files / "items_ins_v2.json"})
        for text in ("{1: {}}", "{[1]: {}}"):
            (files / "odd.json").write_text(text)
            with pytest.raises(CatalogError, match="a text as key"):
                open_catalog({"products": path, "attributes": files / "odd.json"})
        path.write_text(path.read_text().replace('"pricing":', '"pricing"', 1))
        with pytest.raises(CatalogError, match="0 whole elements"):
            open_catalog(files)


class TestBuilding:
    def test_another_catalogue_is_not_overwritten(self, tmp_path):
        build_catalog(GeneratedSource(5), tmp_path / "a")
        with pytest.raises(CatalogError, match="cannot be made"):
            build_catalog(GeneratedSource(6), tmp_path / "a")
        assert len(Catalog(tmp_path / "a")) == len(open_catalog(tmp_path / "a")) == 5
        (tmp_path / "a" / "products.bin").write_bytes(b"[]")
        with pytest.raises(CatalogError, match="damaged"):
            Catalog(tmp_path / "a")

    def test_what_is_no_built_catalogue_of_this_version_is_refused(self, tmp_path):
        with pytest.raises(MissingDataError, match="no built catalogue"):
            Catalog(tmp_path)
        for manifest, said in (
            ({"kind": "other", "format": FORMAT}, "build it again"),
            ({"kind": KIND, "format": FORMAT - 1}, rf"format {FORMAT - 1}, this .* format {FORMAT}; build"),
            ({"kind": KIND, "format": FORMAT, "products": 5}, "lacks sha256, report, index, source"),
            ("{", "no catalogue's manifest"),
        ):
            dump(tmp_path / "manifest.json", manifest)
            with pytest.raises(CatalogError, match=said):
                Catalog(tmp_path)

    def test_progress_is_told(self, tmp_path, monkeypatch):
        monkeypatch.setattr("skillc_gym.envs.webshop.catalog.build._PROGRESS_EVERY", 10)
        told = []
        build_catalog(GeneratedSource(25), tmp_path / "a", told.append)
        assert told == [10, 20]


class TestStreams:
    @pytest.mark.parametrize("chunk", [1, 2, 7, 64, 1 << 20])
    def test_any_window(self, tmp_path, monkeypatch, chunk):
        content = {"a": [1, 2.5e10, 'x\\"\u2028😀', None], "": {"b": [True] * 9}, "long": "y" * 500, "n": -12}
        path = tmp_path / "x.json"
        path.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
        monkeypatch.setattr(sources, "_CHUNK", chunk)
        assert dict(sources.elements(path, keyed=True)) == content
        for values in (list(content.values()), [1], []):
            path.write_text("\ufeff" + json.dumps(values, ensure_ascii=False), "utf-8")
            assert [value for _, value in sources.elements(path)] == values

    @pytest.mark.parametrize(
        "content",
        [b"", b"[1 2]", b"[1,]", b"nonsense", b"[\xff]", b"[" * 100_000, gzip.compress(b"[1, 2]" * 99, mtime=0)[:30]],
    )
    def test_broken_arrays(self, tmp_path, content):
        path = tmp_path / ("x.json.gz" if content.startswith(b"\x1f") else "x.json")
        path.write_bytes(content)
        with pytest.raises(CatalogError, match=r"x\.json"):
            list(sources.elements(path))

    def test_a_value_that_goes_on_and_on(self, tmp_path, monkeypatch):
        monkeypatch.setattr(sources, "_CHUNK", 1 << 10)
        monkeypatch.setattr(sources, "_LONGEST_VALUE", 1 << 14)
        path = tmp_path / "x.json.gz"
        path.write_bytes(gzip.compress(b'[1, "' + b"x" * 10_000_000 + b'"]'))
        with pytest.raises(CatalogError, match=r"1 whole elements, then a value of more than 16,384 characters"):
            list(sources.elements(path))

"""Catalogues: from files, or a seed, to products; the rules for rows; and what is said of bad files and bad rows."""

import copy
import gzip
import hashlib
import json
import lzma
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_shop import SmallShop, play

from skillc_gym.envs.webshop.catalog import Catalog, build_catalog, open_catalog, sources
from skillc_gym.envs.webshop.catalog.build import FORMAT, KIND
from skillc_gym.envs.webshop.catalog.generate import GeneratedSource, generate_row, generate_rows
from skillc_gym.envs.webshop.catalog.product import BadRowError, clean, read_options, read_pricing
from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.envs.webshop.goals import tables
from skillc_gym.envs.webshop.goals.tables import open_goals
from skillc_gym.errors import CatalogError, ConfigError, MissingDataError, UnknownNameError
from skillc_gym.files import cache_folder

PRODUCTS, ATTRIBUTES, HUMAN = "items_shuffle.json", "items_ins_v2.json", "items_human_ins.json"
GENERATED = list(generate_rows(12, seed=9))
ROW = {
    "asin": "B000000000", "name": "Red rug", "full_description": "A rug.", "small_description": ["soft"],
    "query": " Rug", "pricing": "$10.0", "images": ["x"], "category": "garden", "product_category": "Home › Rugs",
    "customization_options": {"color": [{"value": "red"}]},
}  # fmt: skip
ENDLESS = {"Size": [{"value": "x" * 10_001}]}
ENTRY = {"instruction": "find a rug", "attributes": ["soft"], "instruction_attributes": ["soft"]}


@pytest.fixture
def files(tmp_path):
    """Upstream's three files with twelve generated products."""
    folder = tmp_path / "data"
    folder.mkdir()
    dump(folder / PRODUCTS, [row.row for row in GENERATED])
    dump(folder / ATTRIBUTES, {row.row["asin"]: row.attributes for row in GENERATED})
    dump(folder / HUMAN, {row.row["asin"]: row.human for row in GENERATED if row.human})
    return folder


def dump(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")


def change(folder, edit, name=PRODUCTS):
    rows = json.loads((folder / name).read_text())
    edit(rows)
    dump(folder / name, rows)
    return folder


def catalog_of(folder, *rows, attributes=None):
    """A catalogue of rows as JSON or as its text."""
    dump(folder / PRODUCTS, f"[{', '.join(row if isinstance(row, str) else json.dumps(row) for row in rows)}]")
    dump(folder / ATTRIBUTES, {ROW["asin"]: ENTRY} if attributes is None else attributes)
    return open_catalog(folder)


# From files to products -----------------------------------------------------------------------------------------------


def test_products_by_index_and_id(files):
    catalog = open_catalog(files)
    for place, row in enumerate(GENERATED):
        product = catalog.product(place)
        assert (product.index, product.asin, product.title) == (place, row.row["asin"], row.row["name"])
        assert catalog.listing(place).asin == product.asin
        assert catalog.index_of(product.asin) == place
        catalog.search(product.title).clear()  # what is returned is the caller's
        found = catalog.search(product.title)
        assert (found[0], catalog.search(product.title, k=1)) == (place, [place])
        assert [index for index, _ in catalog.search_scores(product.title)] == found
    assert {catalog.index_of(text) for text in ("", "B0", "b" * 10, "B" * 99, "\0", "é", "\ud800")} == {None}
    for place in (-1, 12):
        with pytest.raises(IndexError):
            catalog.product(place)


def test_one_source_is_one_object(files):
    assert open_catalog(files) is open_catalog(str(files))
    mapping = {"products": files / PRODUCTS, "attributes": files / ATTRIBUTES}
    assert open_catalog(mapping) is open_catalog(dict(mapping))
    assert open_catalog(mapping) is not open_catalog(files)
    assert open_catalog("generated", size=7) is open_catalog("generated", seed=0, size=7)
    assert copy.deepcopy(open_catalog(files)) is pickle.loads(pickle.dumps(open_catalog(files))) is open_catalog(files)


def test_the_content_makes_the_catalogue(files):
    before = open_catalog(files)
    plain = files / PRODUCTS
    packed = gzip.compress(plain.read_bytes())
    assert len(open_catalog(change(files, list.pop))) == len(before) - 1
    plain.unlink()
    (files / f"{PRODUCTS}.gz").write_bytes(packed)
    assert open_catalog(files).sha256 == before.sha256


def test_the_variable_names_a_folder(files, monkeypatch):
    monkeypatch.setenv("HOME", str(files.parent))
    monkeypatch.setenv("WEBSHOP_DATA", "~/data")
    monkeypatch.setenv("SKILLC_CACHE", "~/kept")
    assert cache_folder("webshop") == files.parent / "kept" / "webshop"
    assert open_catalog() is open_catalog(files)
    for named, said in ((files.parent, f"{files.parent}.*WEBSHOP_DATA"), ("~/nowhere", "nowhere.*WEBSHOP_DATA")):
        monkeypatch.setenv("WEBSHOP_DATA", str(named))
        with pytest.raises(MissingDataError, match=said):
            open_catalog()
    monkeypatch.delenv("WEBSHOP_DATA")
    with pytest.raises(MissingDataError, match="WEBSHOP_DATA is not set"):
        open_catalog("")


# Bad files and bad rows -----------------------------------------------------------------------------------------------


def test_every_row_is_a_product_or_reported(files):
    def edit(rows):
        rows[1] = {**rows[1], "pricing": "Free"}
        rows[2] = {**rows[2], "images": []}
        rows[3] = {**rows[3], "customization_options": None, "pricing": None}
        rows[4] = "no object"
        rows += [{**rows[0], "name": "again"}, {}]

    catalog = open_catalog(change(files, edit))
    report, notes = catalog.load_report, {note.row: note for note in catalog.load_report}
    assert len(catalog) == report.products == 10
    assert (report.rows, report.skipped, report.mended) == (14, 4, 1)
    assert {row for row, note in notes.items() if note.action == "skipped"} == {1, 4, 12, 13} == set(notes) - {2}
    assert notes[2].action == "mended"
    for row, said in ((1, "pricing 'Free'"), (2, "images"), (12, "first row counts")):
        assert said in notes[row].reason
    assert catalog.product(0).title != "again"
    assert "14 rows: 10 products" in str(report)


def test_human_instructions_of_other_products_are_left_out(files):
    asin = GENERATED[0].row["asin"]
    good = {"instruction": "i want it", "instruction_attributes": ["soft"], "instruction_options": []}
    rows = [{**good, "worker_id": "x"}, {"instruction": 3}, {**good, "instruction_options": [7]}]
    dump(files / HUMAN, {"B000000000": [good], asin: rows})
    (files / ATTRIBUTES).unlink()
    catalog = open_catalog(files)
    assert catalog.load_report.counts["without_instruction"] == len(catalog)
    assert dict(catalog.human_instructions()) == {asin: [good]}
    assert [(note.asin, note.row) for note in catalog.load_report] == [(asin, -1), (asin, -1)]
    counts = catalog.load_report.counts
    assert (catalog.load_report.skipped, counts["human_skipped"], counts["human_elsewhere"]) == (0, 2, 1)
    # Of entries with the same key, the last counts.
    dump(files / HUMAN, f'{{"{asin}": {json.dumps([good] * 2)}, "{asin}": {json.dumps(good)}}}')
    assert dict(open_catalog(files).human_instructions()) == {asin: [good]}


def test_of_countless_combinations_no_synthetic_goals_are_made(tmp_path, monkeypatch):
    values = [{"value": str(number)} for number in range(40)]
    countless = {**ROW, "customization_options": {f"group {number}": values for number in range(12)}}
    other = {**ROW, "asin": "B000000001"}
    catalog = catalog_of(tmp_path, countless, other, attributes={ROW["asin"]: ENTRY, other["asin"]: ENTRY})
    assert [(note.row, note.action) for note in catalog.load_report] == [(0, "mended")]
    goals = open_goals(catalog)
    assert {goals.goal(index).asin for index in goals.range} == {other["asin"]}
    monkeypatch.setattr(tables, "MAX_GOALS", 3)
    options = {"customization_options": {"size": values[:4]}}
    catalog = catalog_of(tmp_path, {**ROW, **options})
    with pytest.raises(CatalogError, match="make 4 goals; at most 3"):
        open_goals(catalog)


@pytest.mark.parametrize(
    ("error", "said", "source"),
    [
        (MissingDataError, "nowhere", "nowhere"),
        (MissingDataError, "items_shuffle", "."),
        (UnknownNameError, "products", {"product": PRODUCTS}),
        (CatalogError, "None of 1 rows makes a product", {"products": "rows.json"}),
        (CatalogError, r"begins with '{', where '\['.*another one", {"products": ATTRIBUTES}),
        (CatalogError, "a text as key", {"products": PRODUCTS, "attributes": "number.json"}),
        (CatalogError, "0 whole elements", {"products": "broken.json"}),
    ],
)
def test_what_is_not_there_or_something_else_is_named(files, monkeypatch, error, said, source):
    broken = (files / PRODUCTS).read_text().replace('"pricing":', '"pricing"', 1)
    texts = {"rows": [{"asin": "B1"}], "number": "{1: {}}", "broken": broken}
    for name, content in texts.items():
        dump(files / f"{name}.json", content)
    (files / "empty").mkdir()
    monkeypatch.chdir(files / "empty" if source == "." else files)
    with pytest.raises(error, match=said):
        open_catalog(source)


@pytest.mark.parametrize("share", [0.0, 0.6, 0.999])
def test_a_file_that_breaks_off(files, share):
    path = files / PRODUCTS
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


@pytest.mark.parametrize(("ending", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_what_stands_before_a_damage_is_kept(files, ending, pack):
    asins = [hashlib.sha256(b"%d" % number).hexdigest() for number in range(3000)]
    packed = pack(json.dumps([{"asin": asin} for asin in asins]).encode())
    path, whole = files / f"broken.json{ending}", []
    path.write_bytes(packed[: len(packed) * 9 // 10] + b"\xff" * (not ending))
    with pytest.raises(CatalogError, match="whole elements"):
        whole.extend(row["asin"] for _, row in sources.elements(path))
    assert whole == asins[: len(whole)]
    assert len(whole) > 2400
    assert sources.first_mark(path) == "["


@pytest.mark.parametrize(
    ("source", "options", "said"),
    [
        ({"products": PRODUCTS}, {"size": 3}, "size: no option of"),
        (".", {"num_product": 3}, "num_product: no option of '.'"),
        ("generated", {"num_products": 0}, "num_products is a whole number from 1 up"),
        ("generated", {"size": 10**9}, "size is a whole number from 1 to 50,000,000"),
    ],
)
def test_options_that_would_be_passed_over_or_make_no_sense_are_refused(files, monkeypatch, source, options, said):
    monkeypatch.chdir(files)
    with pytest.raises(ConfigError, match=said):
        open_catalog(source, **options)


def test_another_catalogue_is_not_overwritten(tmp_path):
    folder = tmp_path / "a"
    build_catalog(GeneratedSource(5), folder)
    with pytest.raises(CatalogError, match="cannot be made"):
        build_catalog(GeneratedSource(6), folder)
    assert len(Catalog(folder)) == len(open_catalog(folder)) == 5


def test_what_is_no_built_catalogue_of_this_version_is_refused(tmp_path):
    with pytest.raises(MissingDataError, match="no built catalogue"):
        Catalog(tmp_path)
    dump(tmp_path / "manifest.json", {"kind": KIND, "format": FORMAT - 1})
    with pytest.raises(CatalogError, match=rf"format {FORMAT - 1}, this .* format {FORMAT}; build"):
        Catalog(tmp_path)


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_files_are_read_in_any_window(tmp_path, monkeypatch, chunk):
    content = {"a": [1, 2.5e10, 'x\\"\u2028😀', None], "": {"b": [True] * 9}, "long": "y" * 500, "n": -12}
    path = tmp_path / "x.json"
    dump(path, json.dumps(content, indent=1) + "\n")
    monkeypatch.setattr(sources, "_CHUNK", chunk)
    assert dict(sources.elements(path, keyed=True)) == content
    for values in (list(content.values()), [1.5, 22.75, 1e30, -3e-7], []):
        dump(path, "\ufeff" + json.dumps(values, ensure_ascii=False))
        assert [value for _, value in sources.elements(path)] == values


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"[1 2]", b"[1,]", b"[1]\n[2]", b"[\xff]", b"[" * 100_000),
        gzip.compress(b"[1, 2]" * 99, mtime=0)[:30],
    ],
)
def test_broken_arrays(tmp_path, content):
    path = tmp_path / ("x.json.gz" if content.startswith(b"\x1f") else "x.json")
    path.write_bytes(content)
    with pytest.raises((CatalogError, ConfigError), match=r"x\.json"):
        list(sources.elements(path))


def test_a_value_that_goes_on_and_on(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_CHUNK", 1 << 10)
    monkeypatch.setattr(sources, "_LONGEST_VALUE", 1 << 14)
    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress(b'[1, "' + b"x" * 10_000_000 + b'"]'))
    with pytest.raises(CatalogError, match=r"1 whole elements, then a value of more than 16,384 characters"):
        list(sources.elements(path))


# Rows, cleaned by the rules -------------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def test_prices_and_options_of_equal_names_and_null_groups():
    prices = {None: (100.0,), "$25.00 - $1,210.00": (25.0, 1210.0), "$5$7$9": (5.0, 7.0), "from $٣ each": (3.0,)}
    assert {text: read_pricing(text) for text in prices} == prices
    groups = {"COLOR": [{"value": "x"}], "Size": None, "color": [{"value": " A/B "}], "Style": [], "Fit": "", "Cut": {}}
    assert read_options(groups) == {"color": ("a | b",), "style": (), "fit": (), "cut": ()}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("query", None),
        *(("asin", asin) for asin in (None, "nan")),
        *(("pricing", price) for price in ("19.99", "$19.99 $", "€5", 19.99, "$" + "9" * 400)),
        *(("customization_options", groups) for groups in ({"Size": [{"price": 1}]}, {"Size": "S"}, ENDLESS)),
    ],
)
def test_rows_that_make_no_product(field, value):
    with pytest.raises(BadRowError, match=f"{field}|option 'Size'"):
        clean({**ROW, field: value}, None, 0)


@pytest.mark.parametrize(("field", "value"), [("images", None), ("name", []), ("small_description", 3)])
def test_what_is_only_shown_is_left_empty_and_said(field, value):
    product, (note,) = clean({**ROW, field: value}, None, 0)
    assert note.startswith(field)
    assert product.asin == ROW["asin"]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (["soft"], "attributes left out: expected an object, got list"),
        ({"attributes": ["soft", 3]}, "attributes: what is no text"),
        ({**ENTRY, "instruction": 5}, "instruction: what is no text"),
    ],
)
def test_what_is_no_text_in_an_entry_of_attributes_is_said(entry, said):
    product, (note,) = clean(ROW, entry, 0)
    assert note.startswith(said)
    assert set(product.attributes) <= {"soft", "DUMMY_ATTR"}


def test_missing_attributes_and_instructions():
    assert clean(ROW, None, 0)[0].attributes == clean(ROW, {}, 0)[0].attributes == ("DUMMY_ATTR",)
    assert clean(ROW, {"attributes": []}, 0)[0].attributes == ()
    product, _ = clean(ROW, {"attributes": ["soft"], "instruction": "Find me", "instruction_attributes": None}, 0)
    assert (product.attributes, product.instruction, product.instruction_attributes) == (("soft",), "Find me", ())


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(ROW, json_values)) | json_values)
def test_any_json_makes_a_product_or_a_reason(change):
    row = {**ROW, **change} if isinstance(change, dict) else change
    try:
        product, _ = clean(row, None, 7)
    except BadRowError:
        return
    assert product.index == 7
    assert product.price_tag.startswith("$")
    assert isinstance(product.contents, str)


# Rows, made from a seed -----------------------------------------------------------------------------------------------


def test_a_row_depends_on_its_number_and_the_seed_alone():
    generated = list(generate_rows(3_000, seed=1))
    assert len({row.row["asin"] for row in generated}) == len(generated)
    assert generate_row(1_234, 1) == generated[1_234]
    assert generate_row(1_234, 2) != generated[1_234]
    small, large = open_catalog("generated", size=20, seed=5), open_catalog("generated", size=40, seed=5)
    assert [small.product(place) for place in range(20)] == [large.product(place) for place in range(20)]


def test_rows_stay_what_they_are_on_every_machine():
    text = json.dumps(list(generate_rows(200, 0)), sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "b9ae035786ae336f"


@given(st.integers(0, 50_000_000), st.integers(0, 1_000))
def test_any_row_is_clean_and_its_instructions_ask_for_what_the_product_has(index, seed):
    row = generate_row(index, seed)
    product, notes = clean(row.row, row.attributes, index)
    assert (notes, len(product.asin), bool(product.title)) == ([], 10, True)
    assert set(product.instruction_attributes) <= set(product.attributes)
    for human in row.human:
        assert set() < set(human["instruction_attributes"]) <= set(product.attributes)
        values = [value for group in product.options.values() for value in group]
        assert [value.replace("/", " | ") for value in human["instruction_options"]] == values[:1]


# What strangers may write, played -------------------------------------------------------------------------------------


@pytest.mark.parametrize("compat", ["fixed", "upstream"])
@pytest.mark.parametrize("label", ["Buy Now", "Next >", "< PREV", "Search"])
def test_a_product_called_like_a_button_never_raises(label, compat):
    env = WebShopEnv(data=SmallShop(makers=(), extra=[{"asin": label, "title": "Thing red"}]), compat=compat)
    observation, reward, ended, _, info = play(env, "search[thing]", f"click[{label.lower()}]")
    assert (reward, ended) == (0.0, False)
    opens = compat == "fixed" and label not in ("Next >", "Search")
    assert info["page"] == ("item" if opens else "results")
    assert info["action_valid"] is (opens or label in ("Next >", "< PREV"))
    assert ("Thing red" in observation) is (info["page"] == "item" or not info["action_valid"])


@pytest.mark.parametrize("place", ["pricing", "name", "unused"])
def test_a_number_without_end_costs_its_row_at_most(tmp_path, place):
    huge = json.dumps({**ROW, "asin": "B000000001", place: "HUGE"}).replace('"HUGE"', "9" * 100_000)
    catalog = catalog_of(tmp_path, ROW, huge, {**ROW, "asin": "B000000002"})
    assert len(catalog) == (2 if place == "pricing" else 3)
    assert catalog.load_report.skipped == (place == "pricing")
    WebShopEnv(data=catalog).reset(seed=0)
    dump(tmp_path / ATTRIBUTES, json.dumps({ROW["asin"]: {**ENTRY, "rank": "HUGE"}}).replace('"HUGE"', "7" * 100_000))
    assert open_catalog(tmp_path).product(0).attributes == ("soft",)


@pytest.mark.parametrize("half", ["\ud83d", "\0"])
def test_what_no_file_or_browser_takes_is_replaced(half, tmp_path):
    options = {f"co{half}": [{"value": f"re{half}"}]}
    odd = {**ROW, "asin": "B00" + half, "name": f"Rug {half} red", "customization_options": options}
    entry = {"instruction": f"find a rug{half}", "attributes": [f"soft{half}"], "instruction_attributes": []}
    catalog = catalog_of(tmp_path, odd, attributes={"B00" + half: entry})
    assert catalog.product(0).asin == "B00\ufffd"
    assert catalog.load_report.mended
    env = WebShopEnv(data=catalog, observation_mode="text_rich")
    said = [env.reset(seed=0)[0]]
    said += [env.step(action)[0] for action in ("search[rug]", "click[b00\ufffd]", "click[re\ufffd]", "click[buy now]")]
    assert all(text.encode() for text in said)


def test_attributes_without_number_or_end_make_no_purchase_wait(tmp_path):
    said = ["x" * 65, *(f"soft{n} attribute" for n in range(900))]
    asked = [f"s{n} attribution" for n in range(900)]
    entry = {"instruction": "find a rug", "attributes": said, "instruction_attributes": asked}
    instruction = {"instruction": "a rug", "instruction_attributes": asked, "instruction_options": []}
    dump(tmp_path / HUMAN, {ROW["asin"]: [instruction]})
    catalog = catalog_of(tmp_path, ROW, attributes={ROW["asin"]: entry})
    assert catalog.product(0).attributes == tuple(said[1:101])
    notes = [note.reason.partition(":")[0] for note in catalog.load_report if " of 90" in note.reason]
    assert notes == ["attributes", "instruction_attributes", "human instruction"]
    for kind in ("synthetic", "human"):
        env = WebShopEnv(data=catalog, goals=kind)
        assert env.goals.goal(0).attributes == tuple(asked[:100])
        assert 0 <= env.best_score(f"{kind}/0") <= 1

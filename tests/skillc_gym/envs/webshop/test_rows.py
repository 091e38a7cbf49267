"""Rows of products: cleaned by the rules, made from a seed, and what strangers may write: odd ids, broken text."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_shop import SmallShop

from skillc_gym.envs.webshop.catalog import open_catalog
from skillc_gym.envs.webshop.catalog.generate import GeneratedSource, generate_row, generate_rows
from skillc_gym.envs.webshop.catalog.product import BadRowError, clean, read_options, read_pricing
from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.errors import ConfigError

ROW = {
    "asin": "B000000000", "name": "Red rug", "full_description": "A rug.", "small_description": ["soft"],
    "query": " Rug", "pricing": "$10.0", "images": ["x"], "category": "garden", "product_category": "Home › Rugs",
    "customization_options": {"color": [{"value": "red"}]},
}  # fmt: skip
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def test_prices():
    prices = {None: (100.0,), "$25.00 - $1,210.00": (25.0, 1210.0), "$5$7$9": (5.0, 7.0), "from $٣ each": (3.0,)}
    assert {text: read_pricing(text) for text in prices} == prices
    for text in ("19.99", "Free", "$", "$1.2.3", "5$", "$19.99 $", "€5", 19.99, ["$5"], "$" + "9" * 400):
        with pytest.raises(BadRowError, match="pricing"):
            read_pricing(text)


def test_options_of_equal_names_and_null_groups():
    groups = {"COLOR": [{"value": "x"}], "Size": None, "color": [{"value": " A/B "}], "Style": [], "Fit": "", "Cut": {}}
    assert read_options(groups) == {"color": ("a | b",), "style": (), "fit": (), "cut": ()}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("query", None), ("asin", None), ("asin", "nan"), ("asin", "B0123456789"), ("pricing", "19.99"),
        ("customization_options", ["Size"]), ("customization_options", {"Size": [{"price": 1}]}),
        ("customization_options", {"Size": "S"}),
    ],
)  # fmt: skip
def test_rows_that_make_no_product(field, value):
    with pytest.raises(BadRowError, match=f"{field}|option 'Size'"):
        clean({**ROW, field: value}, None, 0)


@pytest.mark.parametrize(
    "field", ["images", "name", "full_description", "small_description", "product_category", "category"]
)
@pytest.mark.parametrize("value", [None, [], 3])
def test_what_is_only_shown_is_left_empty_and_said(field, value):
    product, notes = clean({**ROW, field: value}, None, 0)
    assert len(notes) == 1
    assert notes[0].startswith(field)
    assert product.asin == ROW["asin"]


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


@pytest.fixture(scope="module")
def generated():
    return list(generate_rows(3_000, seed=1))


def test_a_row_depends_on_its_number_and_the_seed_alone(generated):
    assert generate_row(1_234, 1) == generated[1_234]
    assert generate_row(1_234, 2) != generated[1_234]
    small, large = open_catalog("generated", size=20, seed=5), open_catalog("generated", size=40, seed=5)
    assert [small.product(place) for place in range(20)] == [large.product(place) for place in range(20)]


def test_rows_stay_what_they_are_on_every_machine():
    text = json.dumps(list(generate_rows(200, 0)), sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "b9ae035786ae336f"


def test_every_row_is_clean_and_every_id_new(generated):
    cleaned = [clean(row.row, row.attributes, place) for place, row in enumerate(generated)]
    assert not any(notes for _, notes in cleaned)
    assert len({product.asin for product, _ in cleaned}) == len(generated)
    assert all(len(product.asin) == 10 for product, _ in cleaned)


def test_instructions_ask_for_what_the_product_has(generated):
    for row in generated:
        product, _ = clean(row.row, row.attributes, 0)
        assert set(product.instruction_attributes) <= set(product.attributes)
        for human in row.human:
            assert set(human["instruction_attributes"]) <= set(product.attributes)
            assert human["instruction_attributes"]
            values = [value for group in product.options.values() for value in group]
            assert [value.replace("/", " | ") for value in human["instruction_options"]] == values[:1][: len(values)]


@given(st.integers(0, 50_000_000), st.integers(0, 1_000))
def test_any_row(index, seed):
    product, notes = clean(*generate_row(index, seed)[:2], index)
    assert not notes
    assert product.title


@pytest.mark.parametrize("options", [{"size": 0}, {"size": 10**9}, {"seed": -1}])
def test_options_out_of_range(options):
    with pytest.raises(ConfigError):
        GeneratedSource(**options)


def catalog_of(folder, *rows, attributes=None):
    text = rows if isinstance(rows[0], str) else [json.dumps(entry) for entry in rows]
    (folder / "items_shuffle.json").write_text(f"[{', '.join(text)}]")
    entry = {"instruction": "find a rug", "attributes": ["soft"], "instruction_attributes": ["soft"]}
    asked = {json.loads(one)["asin"]: entry for one in text if len(one) < 5_000} if attributes is None else attributes
    (folder / "items_ins_v2.json").write_text(json.dumps(asked))
    return open_catalog(folder)


@pytest.mark.parametrize("compat", ["fixed", "upstream"])
@pytest.mark.parametrize("label", ["Buy Now", "FEATURES", "ATTRIBUTES", "Next >", "< PREV", "Search"])
def test_a_product_called_like_a_button_never_raises(label, compat):
    env = WebShopEnv(data=SmallShop(makers=(), extra=[{"asin": label, "title": "Thing red"}]), compat=compat)
    env.reset(seed=0)
    env.step("search[thing]")
    observation, reward, ended, _, info = env.step(f"click[{label.lower()}]")
    assert (reward, ended) == (0.0, False)
    opens = compat == "fixed" and label not in ("Next >", "Search")
    assert info["page"] == ("item" if opens else "results")
    assert info["action_valid"] is (opens or label in ("Next >", "< PREV"))
    assert ("Thing red" in observation) is (info["page"] == "item" or not info["action_valid"])


def test_a_button_of_the_page_comes_before_a_product_of_its_name():
    extra = [{"asin": "< Prev", "title": "Thing"}] + [{"title": f"Thing {n}"} for n in range(30)]
    env = WebShopEnv(data=SmallShop(makers=(), extra=extra))
    env.reset(seed=0)
    env.step("search[thing]")
    env.step("click[next >]")
    assert "Page 1 " in env.step("click[< prev]")[0]


def test_goals_without_weights_are_drawn_evenly():
    extra = [{"title": f"Thing {n}", "instruction_attributes": ()} for n in range(8)]
    env = WebShopEnv(data=SmallShop(makers=(), extra=extra))
    drawn = [env.reset(seed=seed)[1]["task_id"] for seed in range(200)]
    assert set(drawn) == set(env.task_ids)
    counts = np.unique(drawn, return_counts=True)[1]
    assert counts.min() > 10


@pytest.mark.parametrize("place", ["pricing", "name", "unused"])
def test_a_number_without_end_costs_its_row_at_most(tmp_path, place):
    huge = json.dumps({**ROW, "asin": "B000000001", place: "HUGE"}).replace('"HUGE"', "9" * 100_000)
    catalog = catalog_of(tmp_path, json.dumps(ROW), huge, json.dumps({**ROW, "asin": "B000000002"}))
    assert len(catalog) == (2 if place == "pricing" else 3)
    assert catalog.load_report.skipped == (place == "pricing")
    WebShopEnv(data=catalog).reset(seed=0)
    entry = json.dumps({"instruction": "find", "attributes": ["soft"], "rank": "HUGE"})
    text = f'{{"B000000000": {entry}}}'.replace('"HUGE"', "7" * 100_000)
    (tmp_path / "items_ins_v2.json").write_text(text)
    assert open_catalog(tmp_path).product(0).attributes == ("soft",)


def test_halves_of_surrogate_pairs_are_replaced(tmp_path):
    half = "\ud83d"
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


@pytest.mark.parametrize("mode", ["text", "text_rich", "html", "url"])
def test_what_no_file_can_hold_is_no_action(mode):
    env = WebShopEnv(data=SmallShop(), observation_mode=mode)
    env.reset(seed=0)
    observation, *_, info = env.step("search[rug \ud800]")
    assert (info["action_valid"], info["page"]) == (False, "index")
    assert observation.encode()
    assert env.step("search[rug 😀]")[-1]["page"] == "results"


def test_attributes_without_number_or_end_make_no_purchase_wait(tmp_path):
    said = ["x" * 65, *(f"soft{n} attribute" for n in range(900))]
    asked = [f"s{n} attribution" for n in range(900)]
    entry = {"instruction": "find a rug", "attributes": said, "instruction_attributes": asked}
    instruction = {"instruction": "a rug", "instruction_attributes": asked, "instruction_options": []}
    (tmp_path / "items_human_ins.json").write_text(json.dumps({"B000000000": [instruction]}))
    catalog = catalog_of(tmp_path, ROW, attributes={"B000000000": entry})
    assert catalog.product(0).attributes == tuple(said[1:101])
    notes = [note.reason.partition(":")[0] for note in catalog.load_report if " of 90" in note.reason]
    assert notes == ["attributes", "instruction_attributes", "human instruction"]
    for kind in ("synthetic", "human"):
        env = WebShopEnv(data=catalog, goals=kind)
        assert env.goals.goal(0).attributes == tuple(asked[:100])
        assert 0 <= env.best_score(f"{kind}/0") <= 1

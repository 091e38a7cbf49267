"""Cleaning rows: upstream's recordings, and what is said of rows that break the rules."""

from __future__ import annotations

import json
import lzma

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recordings import read_lines

from skillc_gym.envs.webshop.catalog.loader import BadRowError, clean, read_options, read_pricing

ROW = {
    "asin": "B0", "name": "T", "full_description": "D", "small_description": ["b"], "pricing": "$1", "images": ["i"],
    "category": "garden", "query": " Q x", "product_category": "p", "customization_options": "",
}  # fmt: skip
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def test_recorded_products(webshop_reference):
    rows = json.loads(lzma.decompress((webshop_reference / "products.json.xz").read_bytes()))
    attributes = json.loads((webshop_reference / "attributes.json").read_text("utf-8"))
    wanted = {row["asin"]: row for row in read_lines(webshop_reference / "products_clean.jsonl")}
    seen = set()
    for row in rows:
        try:
            product, _ = clean(row, attributes.get(row["asin"]), 0)
        except BadRowError:
            continue
        if product.asin not in seen:
            seen.add(product.asin)
            assert as_upstream(product) == {name: wanted[product.asin][name] for name in as_upstream(product)}
            assert list(product.options) == list(wanted[product.asin]["options"])
    assert seen == set(wanted)


def test_recorded_fields(webshop_reference):
    for case in json.loads((webshop_reference / "loader_cases.json").read_text("utf-8")):
        row = {**ROW, "asin": "B000000001", case["field"]: case["value"]}
        try:
            product, notes = clean(row, None, 0)
        except BadRowError:
            # Upstream accepts these two ids and leaves their rows out later; all others stop it.
            assert "raises" in case or case["field"] == "asin", case
            continue
        if "raises" in case:
            assert notes == ["images: no first image"], case
            continue
        result = {
            **case["result"],
            "BulletPoints": [line for line in case["result"]["BulletPoints"] if line is not None],
        }
        for name, value in as_upstream(product).items():
            if name in result and name != "asin":
                assert value == (result[name] or type(value)()), (case, name)


def as_upstream(product):
    return {
        "asin": product.asin, "Title": product.title, "Description": product.description,
        "BulletPoints": list(product.bullets), "Price": product.price_tag, "pricing": list(product.pricing),
        "options": {name: list(values) for name, values in product.options.items()},
        "Attributes": list(product.attributes), "MainImage": product.main_image, "query": product.query,
        "category": product.category, "product_category": product.product_category,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "prices"),
    [
        (None, (100.0,)), ("", (100.0,)), ("$19.99", (19.99,)), ("$1,299.00", (1299.0,)),
        ("$25.00 - $10.00", (25.0, 10.0)),
        ("$5$7$9", (5.0, 7.0)), ("from $9.99 each", (9.99,)), ("$٣", (3.0,)),
    ],
)  # fmt: skip
def test_prices(text, prices):
    assert read_pricing(text) == prices


@pytest.mark.parametrize(
    "text", ["19.99", "Free", "$", "$1.2.3", "5$", "$19.99 $", "€5", 19.99, ["$5"], "$" + "9" * 400]
)
def test_unreadable_prices_are_named(text):
    with pytest.raises(BadRowError, match="pricing"):
        read_pricing(text)


def test_options_of_equal_names_and_null_groups():
    groups = {"COLOR": [{"value": "x"}], "Size": None, "color": [{"value": " A/B "}], "Style": [], "Fit": "", "Cut": {}}
    assert read_options(groups) == {"color": ("a | b",), "style": (), "fit": (), "cut": ()}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"query": None}, "query"), ({"asin": None}, "asin"), ({"asin": "nan"}, "asin"),
        ({"asin": "B0123456789"}, "asin"),
        ({"pricing": "19.99"}, "pricing"), ({"customization_options": {"Size": [{"price": 1}]}}, "Size"),
        ({"customization_options": ["Size"]}, "customization_options"),
        ({"customization_options": {"Size": "S"}}, "Size"),
    ],
)  # fmt: skip
def test_rows_that_make_no_product(change, said):
    with pytest.raises(BadRowError, match=said):
        clean({**ROW, **change}, None, 0)


@pytest.mark.parametrize(
    "field", ["images", "name", "full_description", "small_description", "product_category", "category"]
)
@pytest.mark.parametrize("value", [None, [], 3])
def test_what_is_only_shown_is_left_empty_and_said(field, value):
    product, notes = clean({**ROW, field: value}, None, 0)
    assert len(notes) == 1
    assert notes[0].startswith(field)
    assert product.asin == "B0"


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

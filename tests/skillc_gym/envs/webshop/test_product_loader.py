"""Cleaning rows: upstream's recordings, and what is said of rows that break the rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


PRICES = {
    None: (100.0,), "": (100.0,), "$19.99": (19.99,), "$1,299.00": (1299.0,), "$25.00 - $10.00": (25.0, 10.0),
    "$5$7$9": (5.0, 7.0), "from $9.99 each": (9.99,), "$٣": (3.0,),
}  # fmt: skip


def test_prices():
    assert {text: read_pricing(text) for text in PRICES} == PRICES
    for text in ("19.99", "Free", "$", "$1.2.3", "5$", "$19.99 $", "€5", 19.99, ["$5"], "$" + "9" * 400):
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

"""Generated products: the same from a seed everywhere, like the real ones in what goals need."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.envs.webshop.catalog import open_catalog
from skillc_gym.envs.webshop.catalog.generate import GeneratedSource, generate_row, generate_rows
from skillc_gym.envs.webshop.catalog.product import clean
from skillc_gym.errors import ConfigError


@pytest.fixture(scope="module")
def rows():
    return list(generate_rows(3_000, seed=1))


def test_a_row_depends_on_its_number_and_the_seed_alone(rows):
    assert generate_row(1_234, 1) == rows[1_234]
    assert generate_row(1_234, 2) != rows[1_234]
    small, large = open_catalog("generated", size=20, seed=5), open_catalog("generated", size=40, seed=5)
    assert [small.product(place) for place in range(20)] == [large.product(place) for place in range(20)]


def test_rows_stay_what_they_are_on_every_machine():
    text = json.dumps(list(generate_rows(200, 0)), sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "b9ae035786ae336f"


def test_every_row_is_clean_and_every_id_new(rows):
    cleaned = [clean(row.row, row.attributes, place) for place, row in enumerate(rows)]
    assert not any(notes for _, notes in cleaned)
    assert len({product.asin for product, _ in cleaned}) == len(rows)
    assert all(len(product.asin) == 10 for product, _ in cleaned)


def test_instructions_ask_for_what_the_product_has(rows):
    for row in rows:
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

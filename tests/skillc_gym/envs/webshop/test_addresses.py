"""Addresses say all there is to know of a page: reading one back gives the page, whatever words and options hold."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_shop import SmallShop
from test_pages import ODD

from skillc_gym.envs.webshop.shop.compat import FIXED, UPSTREAM
from skillc_gym.envs.webshop.shop.pages import HOME, read_address
from skillc_gym.envs.webshop.shop.store import Store

SHOP = SmallShop(makers=("Alderon", "Brivane"), extra=ODD)


@pytest.mark.parametrize("fixes", [FIXED, UPSTREAM])
def test_every_page_of_a_walk_can_be_come_back_to(fixes):
    store, generator, rng = Store(SHOP, fixes, attributes=True), np.random.default_rng(0), random.Random(1)
    page, kinds = HOME, set()
    for _ in range(3_000):
        again = store.page_at(store.address(page))
        assert again == page
        kinds.add(page.kind)
        words = rng.choice(["rug", "a/b", "../..", '"red" & <b>', "röd 100%", "?q=1#x", "search_results", " "])
        action = rng.choice([f"search[{words}]", *store.body(page).actions, *store.body(page).actions])
        page = store.act(page, action, generator) or page
        page = HOME if page.kind == "done" and rng.random() < 0.5 else page
    assert kinds == {"index", "results", "item", "sub", "done"}


@given(words=st.text(min_size=1, max_size=40).filter(lambda words: "\n" not in words))
@settings(max_examples=200, deadline=None)
def test_queries_of_any_characters(words):
    store = Store(SHOP, FIXED)
    page = store.act(HOME, f"search[{words}]", np.random.default_rng(0))
    if page is not None:
        address = store.address(page)
        assert address.isascii()
        assert store.page_at(address) == page


@given(st.text(max_size=60) | st.text("aq=&%o.page12itemresults?;", max_size=40).map("results?q=x&page=1&".__add__))
@settings(max_examples=300, deadline=None)
def test_any_other_address_is_none_or_a_page(address):
    store = Store(SHOP, FIXED)
    page = store.page_at(address)
    assert page is None or store.page_at(store.address(page)) == page


@pytest.mark.parametrize(
    "address",
    [
        "nowhere",
        "results",
        "results?q=&page=1",
        "results?q=rug&page=0",
        "results?q=rug&page=-1",
        "results?q=rug&page=99999999999999999999",
        "results?q=rug&page=1&asin=B000000001",
        "results?q=rug&page=1&o.color=red",
        "item?q=rug&page=1",
        "item?q=rug&page=1&asin=nothing",
        "item?q=rug&page=1&asin=B000000001&o.color=plaid",
        "item?q=rug&page=1&asin=B000000001&o.color=red&o.color=navy+blue",
        "item?q=rug&page=1&asin=B000000001&tab=Features",
        "details?q=rug&page=1&asin=B000000001&tab=Secrets",
        "results?q=rug&page=1&seen=nothing",
        "results?q=%ff%fe&page=1",
    ],
)
def test_addresses_of_no_page(address):
    assert Store(SHOP, FIXED).page_at(address) is None


def test_addresses_name_no_goal():
    assert read_address("item?q=rug&page=1&asin=B0&goal=7") == read_address("item?q=rug&page=1&asin=B0")

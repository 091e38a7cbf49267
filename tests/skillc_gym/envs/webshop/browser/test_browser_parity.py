"""What is read off the page in the browser is what the text environment says, over both transports."""

from __future__ import annotations

import pytest
from hostile_shop import SHOP
from shop_trio import Comparison, Trio, draw


@pytest.fixture(scope="module")
def trio(chromium):
    trio = Trio("served", "swap", data=SHOP, show_attributes=True)
    yield trio
    trio.close()


def play(trio, found, *actions):
    script = iter(actions)
    trio.play(trio.task_ids[0], lambda *_: lambda *_: next(script, ""), 0, found, limit=len(actions))


def test_episodes_are_the_same(trio):
    found = Comparison()
    for task_id, style, seed in draw(trio, 2, 11):
        trio.play(task_id, style, seed, found, limit=8)
    assert found.differences == []
    assert found.counts["info"] > 10


@pytest.mark.slow
def test_episodes_with_upstreams_defects_are_the_same(chromium):
    found, trio = Comparison(), Trio("served", "swap", data=SHOP, compat="upstream", show_attributes=True)
    for task_id, style, seed in draw(trio, 6, 5):
        trio.play(task_id, style, seed, found)
    trio.close()
    assert found.differences == []


@pytest.mark.parametrize("place", range(-4, 0))
def test_hostile_products_are_the_same(trio, place):
    product, found = SHOP.products[place], Comparison()
    values = [value for values in product.options.values() for value in values][:6]
    labels = (product.asin.lower(), *values, "description", "< prev", "features")
    play(trio, found, f"search[{product.title[-12:]}]", *(f"click[{label}]" for label in labels))
    assert found.differences == []
    assert trio.browsers["served"].parsed_page.kind == "sub"


def test_any_words_can_be_searched_for(trio):
    found = Comparison()
    odd = (
        "a/b rug",
        "../..",
        '"><script>x</script> rug',
        "röd 😀",
        "rug\x07bell",
        "rug\ud800",
        "a[",
        "]",
        "\u200brug",
        " ",
    )
    play(trio, found, *(f"search[{words}]" for words in odd), "click[next >]", "click[< prev]")
    assert found.differences == []

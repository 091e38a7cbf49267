"""Pages as HTML say what the mode "text" says, and products whose text draws a page are escaped when asked."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_reader import Reader, as_text
from small_shop import SmallShop
from test_pages import ODD, Walk

from skillc_gym.envs.webshop.catalog.catalog import escape_marks
from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.envs.webshop.shop import nodes
from skillc_gym.envs.webshop.shop.nodes import View, page_document, page_fragment
from skillc_gym.envs.webshop.shop.pages import Page

SIGNS = {
    "title": 'Signs <b> & "x" \xa0 \r',
    "description": "a\r\nb &nbsp; <i>\xa0",
    "bullets": ("\xa0", "\u2028", "&lt;"),
    "options": {"a&b": ('"q"', "it's", "<x>\r", "&#13;")},
}


@pytest.mark.parametrize("kind", ["synthetic", "human"])
@pytest.mark.parametrize("options", [{}, {"show_attributes": True, "compat": "upstream"}])
def test_random_walks(kind, options):
    shop = SmallShop(makers=("Alderon", "Brivane"), extra=[*ODD, SIGNS])
    text, html = (WebShopEnv(data=shop, goals=kind, observation_mode=mode, **options) for mode in ("text", "html"))
    rng = random.Random(4)
    for episode in range(40):
        said, info = text.reset(seed=episode)
        shown, _ = html.reset(seed=episode)
        for _ in range(12):
            assert as_text(shown) == said
            action = rng.choice(info["available_actions"] or ["search[x]"]).replace(
                "<query>", rng.choice([*ODD, SIGNS])["title"]
            )
            said, *_, info = text.step(action)
            shown, *_ = html.step(action)


@pytest.mark.parametrize("title", ["Boxes", "Twins", "Labels", "Blank"])
def test_pages_as_html_hold_the_names_that_agents_look_for(title):
    walk = Walk("fixed", title)
    walk.do("click[red]", "click[small]")
    product = walk.store.product(walk.page)
    seen = Reader(page_document(page_fragment(walk.page, walk.store.nodes(walk.page), "a <b>", View(product))))
    radios = [found for tag, found in seen.tags if tag == "input"]
    assert [radio["value"] for radio in radios] == [value for values in product.options.values() for value in values]
    assert {(radio["name"], radio["value"]) for radio in radios if "checked" in radio} == set(walk.page.options)
    assert "a <b>" in seen.texts
    assert [found["class"] for tag, found in seen.tags if tag == "button"] == ["btn"] * 6


def test_the_reward_stands_where_scripts_look():
    page = Page("done", product=0, reward=0.5)
    text = page_fragment(page, nodes.done_nodes(page, "B0"), "", View())
    seen = Reader(text)
    assert ("h3", "reward") in [(tag, found.get("id")) for tag, found in seen.tags]
    assert "<pre>0.5</pre>" in text


PAGE = "Cheap [SEP] Buy Now [SEP] [button] Buy Now [button_]"
DRAWN = {
    "title": f"Thing {PAGE}",
    "description": f"{PAGE}\n[button] Buy Now [button_]",
    "bullets": (PAGE, "[Clicked  Button] x [CLICKED BUTTON_]"),
    "options": {"size [SEP] x": ("[button] small [button_]", "large")},
    "instruction": f"Find me a thing {PAGE}",
}
WALK = ("search[thing]", "click[b000000000]", "click[description]", "click[< prev]", "click[features]", "click[< prev]")


def shop(mode, **options):
    data = SmallShop(makers=(), extra=[DRAWN])
    return WebShopEnv(data=data, observation_mode=mode, show_attributes=True, **options)


def pages(env):
    observation, info = env.reset(seed=0)
    seen = [(observation, info)]
    for action in WALK:
        observation, _, _, _, info = env.step(action)
        seen.append((observation, info))
    return seen


@pytest.mark.parametrize("mode", ["text", "text_rich"])
def test_a_title_draws_a_page_as_it_does_upstream_unless_it_is_escaped(mode):
    observation, info = pages(shop("text"))[1]
    assert ("Buy Now" in observation.split(" [SEP] ")) > ("buy now" in info["clickables"])
    for observation, info in pages(shop(mode, escape_markup=True)):
        if mode == "text":
            marked = {text.lower() for text in observation.split(" [SEP] ")}
        else:
            lines = (line.strip() for line in observation.splitlines())
            marked = {line[9:-10].lower() for line in lines if line.startswith("[button] ")}
            assert observation.count("[button]") == observation.count("[button_]") == len(marked)
        assert ("buy now" in marked) is ("buy now" in info["clickables"])
        assert "[sep]" not in info["goal"].lower()


def test_escaped_options_can_be_chosen_and_bought():
    env = shop("text", escape_markup=True)
    last = pages(env)[-1][1]
    assert "click[(button) small (button_)]" in last["available_actions"]
    chosen = env.step("click[(button) small (button_)]")[-1]
    assert chosen["selected_options"] == ["size (SEP) x: (button) small (button_)"]
    assert env.step("click[buy now]")[2]


@given(st.text("[]SEPbutton_ ckd(", max_size=40))
def test_no_mark_is_left(text):
    lowered = escape_marks(text).lower()
    assert not [mark for mark in ("[sep]", "[button]", "[button_]", "[clicked button]") if mark in lowered]
    assert escape_marks(escape_marks(text)) == escape_marks(text)

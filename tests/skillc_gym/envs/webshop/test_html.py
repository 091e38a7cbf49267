"""Pages as HTML: read the way upstream reads its own, they say what the mode "text" says."""

from __future__ import annotations

import random

import pytest
from page_reader import Reader, as_text
from small_shop import SmallShop
from test_pages import ODD, Walk

from benchmarks.parity_webshop_catalog import read_cases, sources
from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.envs.webshop.shop import nodes
from skillc_gym.envs.webshop.shop.nodes import View, page_document, page_fragment
from skillc_gym.envs.webshop.shop.pages import Page


@pytest.mark.parametrize("attributes", [False, True])
def test_random_walks(attributes):
    shop = SmallShop(makers=("Alderon", "Brivane"), extra=ODD)
    text, html = (WebShopEnv(data=shop, observation_mode=mode, show_attributes=attributes) for mode in ("text", "html"))
    rng = random.Random(4)
    for episode in range(80):
        said, info = text.reset(seed=episode)
        shown, _ = html.reset(seed=episode)
        for _ in range(12):
            assert as_text(shown) == said
            action = rng.choice(info["available_actions"] or ["search[x]"]).replace("<query>", rng.choice(ODD)["title"])
            said, *_, info = text.step(action)
            shown, *_ = html.step(action)


@pytest.mark.slow
def test_recorded_episodes(webshop_reference):
    shop = {"data": sources(webshop_reference), "observation_mode": "html", "compat": "upstream"}
    envs = {
        (kind, tab): WebShopEnv(goals=kind, show_attributes=tab, **shop)
        for kind in ("synthetic", "human")
        for tab in (False, True)
    }
    pages = 0
    for episode in read_cases(webshop_reference, "episodes.jsonl"):
        if episode["observation_mode"] != "text" or episode["extra"].get("num_prev_obs"):
            continue
        env = envs[episode["goals"], bool(episode["extra"].get("show_attrs"))]
        shown, _ = env.reset(options={"task_id": f"{episode['goals']}/{episode['goal_idx']}"})
        assert as_text(shown) == episode["reset"]["obs"]
        for step in episode["steps"]:
            shown, *_ = env.step(step["action"])
            if not episode["extra"].get("num_prev_actions"):
                assert as_text(shown) == step["obs"]
                pages += 1
    assert pages > 1_000


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

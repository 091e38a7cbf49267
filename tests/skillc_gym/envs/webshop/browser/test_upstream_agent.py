"""Upstream's own browser agent in our shop: the routes that it opens, the text that it reads, and its class itself."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import gymnasium
import pytest
from page_reader import Reader, as_text
from small_shop import SmallShop
from visitor import Visitor

from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.envs.webshop.site.server import ThreadedSite, open_site

CHECKOUT = "WEBSHOP_CHECKOUT"
SHOP = SmallShop()
WAY = ("search[brivane rug]", "click[b000000001]", "click[small]", "click[features]", "click[< prev]", "click[buy now]")


@pytest.fixture(scope="module")
def site():
    with ThreadedSite(open_site({"data": SHOP}, upstream_routes=True)) as running:
        yield running


@pytest.fixture
def native():
    return WebShopEnv(data=SHOP)


def test_a_session_is_an_episode_whose_pages_say_what_upstreams_say(site, native):
    visitor = Visitor(site.url)
    assert visitor.get("/fixed_3") == 200
    assert as_text(visitor.page) == native.reset(options={"task_id": "synthetic/3"})[0]
    for action in WAY:
        name, label = action.rstrip("]").split("[")
        links = [link for link in Reader(visitor.page).links if f"asin={label.upper()}&" in link]
        sent = ("search_query" if name == "search" else "size" if label == "small" else "click", label)
        assert (visitor.get(links[0]) if links else visitor.post(sent)) == 200
        assert as_text(visitor.page) == native.step(action)[0]


def test_which_goal_a_session_has(site, native):
    visitor, texts = Visitor(site.url), {}
    for session in ("abcde", "fghij", "abcde", "klmno", "some_fixed_7"):
        assert visitor.get(f"/{session}") == 200
        text = as_text(visitor.page)
        assert texts.setdefault(session, text) == text
    assert len(set(texts.values())) > 2
    assert texts["some_fixed_7"] == native.reset(options={"task_id": "synthetic/7"})[0]
    assert [visitor.get(f"/{odd}") for odd in ("fixed_x", "fixed_99999", "fixed_", "fixed_-1", "a/b")] == [404] * 5
    with ThreadedSite(open_site({"data": SHOP})) as other:
        assert Visitor(other.url).get("/fixed_3") == 404


@pytest.fixture
def upstream(monkeypatch, tmp_path, chromium, site):
    """Upstream's module, unaltered, with what is gone since: old names of Selenium's methods, and the package gym."""
    checkout = os.environ.get(CHECKOUT)
    if not checkout:
        pytest.skip(f"no checkout of upstream's WebShop: set {CHECKOUT} to the folder that holds web_agent_site")
    pytest.importorskip("bs4", reason="upstream's agent needs beautifulsoup4")
    pytest.importorskip("requests", reason="upstream's agent needs requests")
    from selenium import webdriver

    class Chrome(webdriver.Chrome):
        def __init__(self, service, options):
            port = site.url.rpartition(":")[2]
            options.add_argument(f"--host-resolver-rules=MAP 127.0.0.1:3000 127.0.0.1:{port}")
            options.add_argument("--no-sandbox")
            super().__init__(service=service, options=options)

        def find_element_by_id(self, name):
            return self.find_element("id", name)

        def find_elements_by_class_name(self, name):
            return self.find_elements("class name", name)

        def find_elements_by_css_selector(self, selector):
            return self.find_elements("css selector", selector)

    monkeypatch.syspath_prepend(checkout)
    monkeypatch.setitem(sys.modules, "gym", gymnasium)
    # Packages that its search and its site need, and its agent only imports.
    wanted = {"cleantext": (), "rank_bm25": ("BM25Okapi",), "flask": ("render_template_string",)}
    for name, parts in {**wanted, "pyserini.search.lucene": ("LuceneSearcher",), "pyserini.search": ()}.items():
        standing_in = ModuleType(name)
        standing_in.__dict__.update(dict.fromkeys(parts))
        monkeypatch.setitem(sys.modules, name, standing_in)
    monkeypatch.setitem(sys.modules, "pyserini", ModuleType("pyserini"))
    # It looks for the driver beside its own file, where there is one of 2022.
    place = tmp_path / "web_agent_site_env.py"
    place.symlink_to(Path(checkout) / "web_agent_site" / "envs" / place.name)
    (tmp_path / "chromedriver").symlink_to(shutil.which("chromedriver"))
    spec = importlib.util.spec_from_file_location("web_agent_site_env", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "webdriver", SimpleNamespace(Chrome=Chrome))
    yield module
    for name in [name for name in sys.modules if name.partition(".")[0] == "web_agent_site"]:
        del sys.modules[name]


def test_upstreams_own_agent_plays_an_episode(upstream, native):
    env = upstream.WebAgentSiteEnv(observation_mode="text", session="fixed_3")
    try:
        theirs, ours = env.observation, native.reset(options={"task_id": "synthetic/3"})[0]
        assert theirs == ours
        assert env.instruction_text == native.get_instruction_text()
        for action in [*WAY[:5], "click[back to search]", *WAY]:
            available = env.get_available_actions()["clickables"]
            assert [label.lower() for label in available] == native.get_available_actions()["clickables"]
            written = next((label for label in available if f"click[{label.lower()}]" == action), None)
            theirs, reward, done, _ = env.step(f"click[{written}]" if written else action)
            ours, gained, bought, *_ = native.step(action)
            assert (theirs, reward, done) == (ours, gained, bought)
        assert done
        assert reward > 0
        env.reset()
        assert env.instruction_text == native.get_instruction_text()
    finally:
        env.browser.quit()

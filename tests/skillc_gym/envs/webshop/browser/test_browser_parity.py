"""What is read off the page in the browser is what the text environment says; so does upstream's own agent there."""

import importlib.util
import os
import random
import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import gymnasium
import pytest
from page_reader import Reader, Visitor, as_text
from small_shop import SHOP, SmallShop

from skillc_gym.envs.webshop import WebShopEnv
from skillc_gym.envs.webshop.browser import WebShopBrowserEnv
from skillc_gym.envs.webshop.experts import Shopper
from skillc_gym.envs.webshop.site.server import ThreadedSite, open_site

MODES = ("text", "text_rich", "html")
ODD_QUERIES = (
    *("a/b & c", '"red" <b>rug</b>', "../../etc", "röd 100% 中文 😀", "?q=1#x;y", "search_results", " ", "'quoted'"),
    *("tab\tbetween", "<script>alert(1)</script>", "x" * 300),
)
GARBAGE = ("", "click[nothing]", "search[]", "Click[buy now]", "click[search]", "buy", "click[Buy Now] thanks", "\n")


def shopper(info, rng):
    """Plays as the rule-based customer does."""
    customer = Shopper(info["goal"])
    return lambda observation, info: customer.act(observation, list(info["available_actions"]))


def clicker(info, rng):
    """Clicks at random, searches from everywhere, for odd words too, and tries what is not possible."""

    def act(_, info):
        chance = rng.random()
        if chance < 0.08:
            return rng.choice(GARBAGE)
        if chance < 0.16:
            return f"search[{rng.choice(ODD_QUERIES)}]"
        action = rng.choice(info["available_actions"] or ["search[<query>]"])
        return action.replace("<query>", " ".join(info["goal"].split()[:6]))

    return act


class Trio:
    """The text environment and one in a browser for every transport, in the same moment of the same task."""

    def __init__(self, **shop):
        self.native = {mode: WebShopEnv(**shop, observation_mode=mode) for mode in MODES}
        self.browsers = {
            name: WebShopBrowserEnv(transport=name, observation_mode="html", browsers=1, **shop)
            for name in ("served", "swap")
        }
        self.task_ids = self.native["text"].task_ids

    def play(self, task_id, style, seed=0, limit=15):
        """Plays an episode in all of them and compares every moment; returns the number of actions."""
        observation, info = self.compare("reset", seed=seed, options={"task_id": task_id})
        act = style(info, random.Random(seed))
        for step in range(1, limit + 1):
            action = act(observation, info)
            observation, _, bought, _, info = self.compare("step", action)
            if bought:
                return step
        return limit

    def compare(self, method, *given, **named):
        """Calls a method of all of them; returns what the text environment says."""
        expected = {mode: getattr(env, method)(*given, **named) for mode, env in self.native.items()}
        for name, env in self.browsers.items():
            observation, *rest = getattr(env, method)(*given, **named)
            assert (observation, rest) == (expected["html"][0], [*expected["text"][1:]]), (name, *given, named)
            for mode in MODES:
                assert env.parsed_page.observation(mode) == expected[mode][0], (name, mode, *given, named)
            assert env.address == self.native["text"].address, (name, *given, named)
        return expected["text"]

    def play_some(self, episodes, seed, limit=15):
        """Half of the tasks, which are drawn, are played by the rule-based customer and half by random clicks."""
        rng = random.Random(seed)
        styles = [(shopper, clicker)[number % 2] for number in range(episodes)]
        return sum(self.play(rng.choice(self.task_ids), style, seed + n, limit) for n, style in enumerate(styles))

    def play_script(self, *actions):
        script = iter(actions)
        self.play(self.task_ids[0], lambda *_: lambda *_: next(script, ""), limit=len(actions))

    def close(self):
        for env in self.browsers.values():
            env.close()


@pytest.fixture(scope="module")
def trio(chromium):
    trio = Trio(data=SHOP, show_attributes=True)
    yield trio
    trio.close()


def test_episodes_are_the_same(trio):
    assert trio.play_some(2, 11, limit=8) > 4


@pytest.mark.slow
def test_episodes_with_upstreams_defects_are_the_same(chromium):
    trio = Trio(data=SHOP, compat="upstream", show_attributes=True)
    trio.play_some(6, 5)
    trio.close()


@pytest.mark.parametrize("place", range(-4, 0))
def test_hostile_products_are_the_same(trio, place):
    product = SHOP.products[place]
    values = [value for values in product.options.values() for value in values][:6]
    labels = (product.asin.lower(), *values, "description", "< prev", "features")
    trio.play_script(f"search[{product.title[-12:]}]", *(f"click[{label}]" for label in labels))
    assert trio.browsers["served"].parsed_page.kind == "sub"


def test_options_without_a_groups_name_are_chosen(trio):
    trio.play_script(
        "search[blank]", f"click[{SHOP.products[12].asin.lower()}]", "click[two]", "click[color]", "click[one]"
    )
    assert trio.browsers["served"].parsed_page.selected == [": one", "color: color"]


def test_options_that_go_on_behind_a_line_are_chosen(chromium):
    trio = Trio(data=SmallShop(makers=(), extra=[{"title": "Odd", "options": {"form": ("x", "x] y\nz")}}]))
    trio.play_script("search[odd]", "click[b000000000]", "click[x] y\nz]", "click[x]\nmore", "click[x] y\nq]")
    assert trio.browsers["swap"].parsed_page.selected
    trio.close()


def test_any_words_can_be_searched_for(trio):
    odd = ("a/b rug", "../..", '"><script>x</script> rug', "röd 😀", "rug\x07bell", "rug\ud800", "a[", "]", "\u200brug")
    trio.play_script(*(f"search[{words}]" for words in (*odd, " ")), "click[next >]", "click[< prev]")


@pytest.mark.usefixtures("chromium")
def test_a_page_that_is_too_long_is_cut_as_in_text():
    options = {"data": SmallShop(extra=[{"title": "odd thing", "description": "x " * 600_000}])}
    native, browser = WebShopEnv(**options), WebShopBrowserEnv(**options, transport="swap")
    task_id = native.task_ids[0]
    first = [env.reset(options={"task_id": task_id})[0] for env in (native, browser)]
    asin = native.catalog.product(len(native.catalog) - 1).asin.lower()
    for action in ("search[odd thing]", f"click[{asin}]", "click[description]"):
        first = [env.step(action)[0] for env in (native, browser)]
    browser.close()
    assert first[0] == first[1]
    assert len(first[0]) == native.observation_space.max_length == browser.observation_space.max_length


# Upstream's own agent: the routes that it opens, the text that it reads, and its class itself ------------------------

CHECKOUT = "WEBSHOP_CHECKOUT"
PLAIN = SmallShop()
WAY = ("search[brivane rug]", "click[b000000001]", "click[small]", "click[features]", "click[< prev]", "click[buy now]")


@pytest.fixture(scope="module")
def site():
    with ThreadedSite(open_site({"data": PLAIN}, upstream_routes=True)) as running:
        yield running


@pytest.fixture
def native():
    return WebShopEnv(data=PLAIN)


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
    with ThreadedSite(open_site({"data": PLAIN})) as other:
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

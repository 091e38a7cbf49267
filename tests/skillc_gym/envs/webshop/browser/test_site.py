"""The site without a browser: what it serves, whom it serves, and what it does with anything else."""

import copy
import json
import random
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from html import unescape
from urllib.parse import quote

import pytest
from page_reader import Reader, Visitor
from small_shop import HOSTILE, SHOP, SmallShop

from skillc_gym.envs.webshop.browser.parsed_page import Control, ParsedPage
from skillc_gym.envs.webshop.browser.transports import RemoteSite
from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.envs.webshop.shop.pages import HOME
from skillc_gym.envs.webshop.site.access import AGENT, HEADERS, PERSON, TicketIssuer
from skillc_gym.envs.webshop.site.episodes import replay_rows
from skillc_gym.envs.webshop.site.front import ShopFront
from skillc_gym.envs.webshop.site.server import ThreadedSite, open_site
from skillc_gym.episodes import EpisodeRecorder, read_jsonl
from skillc_gym.errors import ConfigError

NATIVE = WebShopEnv(data=SHOP, observation_mode="html")
LARGE = SmallShop(makers=[f"Maker{number}" for number in range(20)])
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return tmp_path_factory.mktemp("kept") / "demonstrations.jsonl"


@pytest.fixture(scope="module")
def site(kept):
    with ThreadedSite(open_site({"data": SHOP}, record=kept)) as running:
        yield running


@pytest.fixture
def visitor(site):
    return Visitor(site.url)


def recorded(*actions, condition=0, task_id="synthetic/3", env=NATIVE):
    observation, info = env.reset(seed=0, options={"task_id": task_id})
    recorder = EpisodeRecorder(observation, {**info, "condition": condition, "skill_text": "<b>Look twice.</b>"})
    for action in actions:
        recorder.add(action, env.step(action))
    return recorder.episode()


def test_a_visitor_sees_what_the_text_environment_shows(visitor):
    """Random walks by links, buttons, options and the search field; every page is the environment's own."""
    rng, kinds = random.Random(3), set()
    asins = {quote(product.asin, safe=""): product.asin.lower() for product in SHOP.products}
    for episode in range(12):
        NATIVE.reset(seed=episode)
        visitor.begin(int(NATIVE.snapshot().task_id.partition("/")[2]))
        for _ in range(12):
            assert (visitor.fragment, visitor.address) == (NATIVE.fragment(), NATIVE.address)
            reader = Reader(visitor.page)
            assert reader.wrong == []
            kinds.add(visitor.address.partition("?")[0])
            values = [value for _, value in reader.options]
            pairs = reader.buttons + [pair for pair in reader.options if values.count(pair[1]) == 1]
            words = rng.choice([*(given["title"] for given in HOSTILE), "a/b rug", "rug"])
            ways = [(visitor.get, link, asins[re.search("asin=(.*?)&", link)[1]]) for link in reader.links]
            ways = [(visit, sent, f"click[{label}]") for visit, sent, label in ways]
            ways += [(visitor.post, pair, f"click[{pair[1]}]") for pair in pairs]
            ways += [(visitor.search, words, f"search[{words}]") for _ in reader.fields]
            if not ways:
                break
            visit, sent, action = rng.choice(ways)
            visit(sent)
            NATIVE.step(action)
    assert kinds == {"home", "results", "item", "details", "receipt"}


def test_a_choice_is_made_in_its_own_group(visitor):
    """A value that stands in several groups is chosen where it was clicked on."""
    visitor.begin(0)
    visitor.search(HOSTILE[1]["title"])
    visitor.open(SHOP.products[-4].asin)
    for group in ("o.color", "click"):
        visitor.post((group, "red"))
        assert f"o.{group}=red" in visitor.address


def test_every_answer_has_the_guarding_headers_and_escaped_texts(visitor):
    for path in ("/", "/nothing", "/static/shop.css", "/e/x/home", "/picture?asin=" + quote(SHOP.products[-3].asin)):
        visitor.get(path)
        assert {name: visitor.headers.get(name) for name in HEADERS} == HEADERS
    assert (visitor.status, visitor.headers["content-type"]) == (200, "image/svg+xml")
    assert SHOP.products[-3].asin not in visitor.page
    assert "'unsafe" not in HEADERS["content-security-policy"]
    visitor.begin(0)
    assert visitor.search('"><script>alert(1)</script>') == 200
    assert "<script>alert" not in visitor.page
    assert "%22%3E%3Cscript%3E" in visitor.address


def test_tickets_cannot_be_forged_or_changed(visitor, site, monkeypatch):
    visitor.begin(3)
    good, tickets = visitor.ticket, TicketIssuer()
    assert tickets.read(good) is None
    monkeypatch.setattr(site.site.front, "page_at", None)  # nothing is searched for without a ticket
    last = "a" if good[-1] != "a" else "b"
    for forged in (good[:-1] + last, "p" + good[1:], good.replace("a3-", "a4-", 1), "", "-", "é"):
        assert visitor.get(f"/e/{quote(forged)}/home") == 404
    name = tickets.issue(7, PERSON)
    assert tickets.read(name)[:2] == (PERSON, 7)
    assert tickets.read(name) != tickets.read(tickets.issue(7, AGENT))


def test_foreign_names_and_forms_of_foreign_pages_are_turned_away(visitor):
    for host, status in (("evil.example", 403), ("evil.example:1", 403), ("[::1", 403), ("localhost:9", 200)):
        assert visitor.ask("GET", "/", host=host) == status
    visitor.begin(0)
    for origin, status in (("http://evil.example", 403), ("null", 403), (f"http://{visitor.host}", 303)):
        assert visitor.ask("POST", visitor.at, b"search_query=rug", origin=origin) == status


def test_forms_and_requests_that_make_no_sense(visitor):
    visitor.begin(0)
    assert visitor.ask("POST", visitor.at, b"x" * 70_000) == 413
    assert visitor.ask("POST", visitor.at, b"\xff=%ff&search_query=") == 303
    assert visitor.ask("PUT", visitor.at) == 405
    visitor.begin(0, person=True)
    assert visitor.ask("GET", visitor.at, referer="http://[") == 200
    for body in (b"{", b"[]", b"3", b"[" * 50_000):
        assert visitor.ask("POST", "/episodes", body, **JSON) == 400
    for task in (10**9, -1, "synthetic/x", [1], {"a": 1}, 1.5):
        assert visitor.ask("POST", "/episodes", json.dumps({"task": task}).encode(), **JSON) == 404


def test_many_visitors_at_once(site):
    def shop(number):
        visitor = Visitor(site.url)
        visitor.begin(number)
        for _ in range(5):
            visitor.search(f"rug {number}")
            assert NATIVE.goals.goal(number).instruction in unescape(visitor.page)
            assert f"q=rug+{number}&" in visitor.address

    with ThreadPoolExecutor(24) as visitors:
        list(visitors.map(shop, range(24)))


def test_what_people_do_is_kept_as_demonstrations(visitor, kept):
    lines = len(read_jsonl(kept))
    visitor.begin(3, person=True)
    visitor.search("brivane [rug]")
    results = visitor.at
    visitor.get(Reader(visitor.page).links[0])
    visitor.at = results  # the button "back" of a browser
    visitor.ask("GET", results)
    visitor.get(Reader(visitor.page).links[1])
    for label in ("features", "< prev", "buy now"):
        visitor.post(("click", label))
    bought = visitor.page
    visitor.begin(3)  # an agent is not recorded
    visitor.search("rug")
    *before, episode = read_jsonl(kept)
    assert len(before) == lines
    actions = [turn.action[:9] for turn in episode.turns]
    assert actions == ["search[br", "click[b00", "click[fea", "click[< p", "click[buy"]
    assert episode.turns[0].action == "search[brivane  rug ]"
    assert episode.task_id == "synthetic/3"
    assert all(turn.action_valid for turn in episode.turns)
    assert f"<pre>{episode.task_score:.2f}</pre>" in bought


def test_a_receipt_is_that_of_the_one_purchase(visitor):
    visitor.begin(3)
    visitor.search("alderon rug")
    results = visitor.at
    visitor.get(Reader(visitor.page).links[0])
    item = visitor.at
    assert visitor.get(item.replace("item?", "receipt?")) == 404
    visitor.at = item
    assert visitor.post(("click", "buy now")) == 200
    receipt = visitor.at
    visitor.get(results)
    visitor.get(Reader(visitor.page).links[-1])
    assert visitor.post(("click", "buy now")) == 200
    assert visitor.at == receipt


def test_agents_are_not_told_the_parts_of_their_score(visitor):
    visitor.buy(3)
    assert "Your score" in visitor.page
    goal, parts = NATIVE.goals.goal(3), ("part by part", "What would have fitted", "r_type", "r_price", "title_score")
    for hidden in (*parts, goal.asin, goal.name, goal.query, goal.product_category):
        assert hidden not in visitor.page


def test_a_persons_receipt_says_what_would_have_fitted(visitor):
    visitor.buy(0, person=True)
    assert "Your score" in visitor.page
    said = " ".join(re.sub("<[^>]*>", " ", unescape(visitor.page.partition("part by part")[2])).split())
    for part in (
        "Options share of the options asked for 0 %",
        "machine wash fits color: titanium does not fit",
        "at most $50.00 fits",
        "What you bought Alderon Soft Rug for Home B000000000, $12.50 to $32.50 What would have fitted",
        'Alderon Soft Lamp for Home B000000002, $18.50, color: titanium, size: large 12" [xl]',
    ):
        assert part in said


def test_who_bought_the_best_there_is_reads_of_nothing_better(visitor):
    visitor.begin(0, person=True)
    visitor.search("alderon lamp")
    visitor.open("B000000002")
    for pair in (("color", "titanium"), ("size", 'large 12" [xl]'), ("click", "buy now")):
        visitor.post(pair)
    assert "color: titanium</span> <strong>does not fit" in visitor.page
    assert "What would have fitted" not in visitor.page


def test_tasks_are_drawn_as_in_the_text_environment():
    """Upstream's draw is one place late: of two goals it never gives the first."""
    shop = SmallShop(makers=(), extra=[{"options": {"color": ("red", "blue")}}])
    with ThreadedSite(open_site({"data": shop, "compat": "upstream"})) as running:
        visitor = Visitor(running.url)
        for _ in range(12):
            visitor.begin(None)
            assert running.site.tickets.read(visitor.ticket).task == 1


def test_upstreams_random_results_are_those_of_the_episodes_generator():
    env = WebShopEnv(data=LARGE, compat="upstream")
    env.reset(seed=4, options={"task_id": env.task_ids[0]})
    drawn = copy.deepcopy(env.np_random)
    env.step("search[<r>]")
    front = ShopFront(WebShopEnv(data=LARGE, compat="upstream"))
    assert front.act(0, HOME, "search[<r>]", drawn) == env.snapshot().state.page._replace(reward=0.0)
    assert front.act(0, HOME, "search[<r>]") == front.act(0, HOME, "search[<r>]") != front.act(1, HOME, "search[<r>]")


def test_what_a_person_found_by_upstreams_random_results_is_kept_as_it_was(tmp_path):
    kept, shop = tmp_path / "kept.jsonl", {"data": LARGE, "compat": "upstream"}
    with ThreadedSite(open_site(shop, record=kept)) as running:
        visitor = Visitor(running.url)
        visitor.begin(3, person=True)
        visitor.search("<r> x")
        visitor.get(Reader(visitor.page).links[0])
        visitor.post(("click", "buy now"))
    (episode,) = read_jsonl(kept)
    assert [turn.action_valid for turn in episode.turns] == [True] * 3
    front = ShopFront(WebShopEnv(**shop))
    assert replay_rows([episode], front)
    moved = replace(episode, turns=[replace(episode.turns[0], action="search[nothing at all]"), *episode.turns[1:]])
    with pytest.raises(ConfigError, match="leads nowhere here"):
        replay_rows([moved], front)


def test_a_site_with_other_goals_is_another_shop(site):
    RemoteSite(site.url, ShopFront(WebShopEnv(data=SHOP)))
    for options, said in (({"goal_order": "verl-agent"}, "goals_sha256"), ({"seed_prices": 3}, "prices_sha256")):
        with pytest.raises(ConfigError, match=f"another shop: .*{said}"):
            RemoteSite(site.url, ShopFront(WebShopEnv(data=SHOP, **options)))


def test_a_site_of_a_split_is_refused_to_who_plays_others_and_a_locked_one_wants_its_token():
    data = {"generator": {"size": 500}, "data": "generated"}
    with ThreadedSite(open_site({**data, "split": "test"})) as running:
        RemoteSite(running.url, ShopFront(WebShopEnv(**data, split="test")))
        with pytest.raises(ConfigError, match=r"has the goals 0 to 499 alone, .*--split all"):
            RemoteSite(running.url, ShopFront(WebShopEnv(**data)))


def test_a_locked_site_asks_for_its_token():
    with ThreadedSite(open_site({"data": SHOP}, token="secret-token")) as running:
        address = running.url.partition("?")[0]
        with pytest.raises(ConfigError, match=r"401 .*give its token"):
            RemoteSite(address, ShopFront(WebShopEnv(data=SHOP)))


def test_people_read_prices_scores_and_buttons_as_people_write_them(visitor):
    dear = SHOP.products[-5]
    for person, price, turns in ((True, "$1,299.50 to $2,000.00", 0), (False, "$1299.5 to $2000.0", 1)):
        visitor.begin(3, person=person)
        visitor.search(dear.title)
        assert price in visitor.page
        assert visitor.page.count(">Next &gt;<") == turns
        visitor.open(dear.asin)
        assert f"Price: {price}" in visitor.page
        visitor.post(("click", "buy now"))
        assert (re.search(r"<pre>\d\.\d\d</pre>", visitor.page) is not None) == person


def test_recorded_episodes_are_shown_side_by_side():
    way = ("search[alderon rug]", "click[b000000000]", "click[nothing]", "click[buy now]")
    episodes = [recorded(*way, condition=1), recorded(*way[:2]), recorded(*way, task_id="synthetic/4")]
    with ThreadedSite(open_site({"data": SHOP}, episodes=episodes)) as running:
        visitor = Visitor(running.url)
        assert visitor.get("/replays") == 200
        assert visitor.page.count('href="/replays/') == 2
        assert visitor.get("/replays/0?step=2") == 200
        for said in ("click[nothing]", "not possible", "&lt;b&gt;Look twice."):
            assert said in visitor.page
        for step, shown in (("2", ["item", "item"]), ("4", ["receipt", "item"])):
            visitor.get(f"/replays/0?step={step}")
            frames = [unescape(frame) for frame in re.findall('<iframe src="(.*?)"', visitor.page)]
            assert [frame.split("/")[3].partition("?")[0] for frame in frames] == shown
            assert all(visitor.get(frame) == 200 for frame in frames)
        for odd in ("?step=99999999999", "?step=-1", "?step=%C2%B2", ""):
            assert visitor.get("/replays/0" + odd) == 200
        assert visitor.get("/replays/9") == visitor.get("/replays/" + "9" * 5_000) == 404
    with pytest.raises(ConfigError, match="data and the options"):
        open_site({"data": SHOP, "seed_prices": 5}, episodes=episodes)


@pytest.mark.parametrize("options", [{"observation_mode": "text_rich"}, {"escape_markup": True}])
def test_episodes_are_shown_by_a_site_with_their_options(options):
    shop = {"data": SmallShop(makers=(), extra=[{"instruction": "Find me [SEP] things"}]), **options}
    assert open_site(shop, episodes=[recorded("search[things]", task_id=None, env=WebShopEnv(**shop))])


def test_a_taken_port_is_named(site):
    with pytest.raises(ConfigError, match="another host or port"):
        ThreadedSite(site.site, port=int(site.url.rpartition(":")[2]))


@pytest.mark.parametrize(("seen", "opened"), [((False, False), 0), ((True, False), 1), ((True, True), 1)])
def test_of_products_with_one_label_the_first_is_opened_that_was_not_looked_at(seen, opened):
    links = tuple(
        Control("link", text, "", "/", chosen) for text, chosen in zip(("b0twin", "B0TWIN"), seen, strict=True)
    )
    page = ParsedPage(0, "", "", "results", {}, [], frozenset(), links, None, False, None)
    assert page.control("b0twin") == opened

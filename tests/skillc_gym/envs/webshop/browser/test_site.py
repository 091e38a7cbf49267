"""The site without a browser: what it serves, whom it serves, and what it does with anything else."""

import json
import random
import re
import threading
from html import unescape
from urllib.parse import quote, urlencode

import pytest
from hostile_shop import HOSTILE, SHOP
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from page_reader import Reader
from small_shop import SmallShop
from visitor import Visitor

from skillc_gym.envs.webshop.browser.transports import RemoteSite
from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.envs.webshop.site.access import AGENT, HEADERS, PERSON, TicketIssuer
from skillc_gym.envs.webshop.site.front import ShopFront
from skillc_gym.envs.webshop.site.server import ThreadedSite, open_site
from skillc_gym.episodes import EpisodeRecorder, read_jsonl
from skillc_gym.errors import ConfigError

NATIVE = WebShopEnv(data=SHOP, observation_mode="html")


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


def recorded(*actions, condition=0, task_id="synthetic/3"):
    env = WebShopEnv(data=SHOP)
    observation, info = env.reset(seed=0, options={"task_id": task_id})
    recorder = EpisodeRecorder(observation, {**info, "condition": condition, "skill_text": "<b>Look twice.</b>"})
    for action in actions:
        recorder.add(action, env.step(action))
    return recorder.episode()


def test_a_visitor_sees_what_the_text_environment_shows(visitor):
    """Random walks by links, buttons, options and the search field; every page is the environment's own."""
    rng, kinds = random.Random(3), set()
    for episode in range(12):
        NATIVE.reset(seed=episode)
        visitor.begin(int(NATIVE.snapshot().task_id.partition("/")[2]))
        for _ in range(12):
            assert visitor.fragment == NATIVE.fragment()
            assert visitor.address == NATIVE.address
            reader = Reader(visitor.page)
            assert reader.wrong == []
            kinds.add(visitor.address.partition("?")[0])
            choices = [*reader.links, *reader.buttons, *reader.options, *["search"] * len(reader.fields)]
            if not choices:
                break
            choice = rng.choice(choices)
            if choice == "search":
                words = rng.choice([*(given["title"] for given in HOSTILE), "a/b rug", "rug"])
                visitor.post(("search_query", words))
                NATIVE.step(f"search[{words}]")
            elif isinstance(choice, str):
                visitor.get(choice)
                asin = dict(part.split("=") for part in choice.partition("?")[2].split("&"))["asin"]
                asin = next(product.asin for product in SHOP.products if quote(product.asin, safe="") == asin)
                NATIVE.step(f"click[{asin.lower()}]")
            elif choice in reader.options and sum(value == choice[1] for _, value in reader.options) > 1:
                continue
            else:
                visitor.post(choice)
                NATIVE.step(f"click[{choice[1]}]")
    assert kinds == {"home", "results", "item", "details", "receipt"}


def test_a_choice_is_made_in_its_own_group(visitor):
    """A value that stands in several groups is chosen where it was clicked on."""
    visitor.begin(0)
    visitor.post(("search_query", HOSTILE[1]["title"]))
    visitor.get(next(link for link in Reader(visitor.page).links if f"asin={SHOP.products[-4].asin}&" in link))
    visitor.post(("o.color", "red"))
    assert "o.o.color=red" in visitor.address
    visitor.post(("click", "red"))
    assert "o.click=red" in visitor.address


def test_every_answer_has_the_guarding_headers_and_escaped_texts(visitor):
    for path in ("/", "/nothing", "/static/shop.css", "/e/x/home", "/picture?asin=" + quote(SHOP.products[-3].asin)):
        visitor.get(path)
        assert {name: visitor.headers.get(name) for name in HEADERS} == HEADERS
    assert (visitor.status, visitor.headers["content-type"]) == (200, "image/svg+xml")
    assert SHOP.products[-3].asin not in visitor.page
    assert "'unsafe" not in HEADERS["content-security-policy"]
    visitor.begin(0)
    assert visitor.post(("search_query", '"><script>alert(1)</script>')) == 200
    assert "<script>alert" not in visitor.page
    assert "%22%3E%3Cscript%3E" in visitor.address


def test_tickets_cannot_be_forged_or_changed(visitor):
    visitor.begin(3)
    good, tickets = visitor.ticket, TicketIssuer()
    assert tickets.read(good) is None
    last = "a" if good[-1] != "a" else "b"
    for forged in (good[:-1] + last, "p" + good[1:], good.replace("a3-", "a4-", 1), "", "-", "é"):
        assert visitor.get(f"/e/{quote(forged)}/home") == 404
    name = tickets.issue(7, PERSON)
    assert tickets.read(name)[:2] == (PERSON, 7)
    assert tickets.read(name) != tickets.read(tickets.issue(7, AGENT))


def test_only_people_are_told_the_parts_of_their_score(visitor):
    pages = {}
    for person in (False, True):
        visitor.buy(3, person=person)
        assert "Your score" in visitor.page
        pages[person] = visitor.page
    assert "part by part" in pages[True]
    assert "part by part" not in pages[False]
    assert "What would have fitted" in pages[True]
    goal = NATIVE.goals.goal(3)
    for hidden in (goal.asin, goal.name, goal.query, goal.product_category, "r_type", "r_price", "title_score"):
        assert hidden not in pages[False]


def test_foreign_names_and_forms_of_foreign_pages_are_turned_away(visitor):
    for host in ("evil.example", "evil.example:1", "[::1"):
        assert visitor.ask("GET", "/", host=host) == 403
    assert visitor.ask("GET", "/", host="localhost:9") == 200
    visitor.begin(0)
    for origin, status in (("http://evil.example", 403), ("null", 403), (f"http://{visitor.host}", 303)):
        assert visitor.ask("POST", visitor.at, b"search_query=rug", origin=origin) == status


def test_forms_and_requests_that_make_no_sense(visitor):
    visitor.begin(0)
    assert visitor.ask("POST", visitor.at, b"x" * 70_000) == 413
    assert visitor.ask("POST", visitor.at, b"\xff=%ff&search_query=") == 303
    assert visitor.ask("PUT", visitor.at) == 405
    json_body = {"content-type": "application/json"}
    for body in (b"{", b"[]", b"3", b"[" * 50_000):
        assert visitor.ask("POST", "/episodes", body, **json_body) == 400
    for task in (10**9, -1, "synthetic/x", [1], {"a": 1}, 1.5):
        assert visitor.ask("POST", "/episodes", json.dumps({"task": task}).encode(), **json_body) == 404


paths = st.sampled_from(["/", "/e/", "/e/TICKET/", "/static/", "/picture", "/replays/", "/episodes", "/about.json"])
kinds = st.sampled_from(["home", "results", "item", "details", "receipt", ""])
texts = st.text(st.characters(codec="utf-8"), max_size=30)
names = st.sampled_from(["asin", "q", "page", "tab", "o.color", "seen", "hit", "step"])
values = texts | st.sampled_from(["1", "red", "B000000001", "Features", "rug"])
queries = st.lists(st.tuples(names, values), max_size=6)


@given(paths, kinds | texts, queries, st.sampled_from(["GET", "POST", "HEAD"]), st.binary(max_size=60))
@settings(max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_request_breaks_the_site(site, path, kind, query, method, body):
    visitor = Visitor(site.url)
    where = path.replace("TICKET", site.site.tickets.issue(0)) + quote(kind, safe="")
    assert visitor.ask(method, f"{where}?{urlencode(query)}", body if method == "POST" else b"") < 500


def test_many_visitors_at_once(site):
    wrong = []

    def shop(number):
        visitor = Visitor(site.url)
        visitor.begin(number)
        goal = NATIVE.goals.goal(number).instruction
        for _ in range(5):
            visitor.post(("search_query", f"rug {number}"))
            if goal not in unescape(visitor.page) or f"q=rug+{number}&" not in visitor.address:
                wrong.append(number)

    threads = [threading.Thread(target=shop, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_what_people_do_is_kept_as_demonstrations(visitor, kept):
    lines = len(read_jsonl(kept))
    visitor.begin(3, person=True)
    visitor.post(("search_query", "brivane [rug]"))
    results = visitor.at
    visitor.get(Reader(visitor.page).links[0])
    visitor.at = results  # the button "back" of a browser
    visitor.ask("GET", results)
    visitor.get(Reader(visitor.page).links[1])
    visitor.post(("click", "features"))
    visitor.post(("click", "< prev"))
    visitor.post(("click", "buy now"))
    bought = visitor.page
    visitor.begin(3)  # an agent is not recorded
    visitor.post(("search_query", "rug"))
    *_, episode = read_jsonl(kept)
    assert len(read_jsonl(kept)) == lines + 1
    actions = [turn.action for turn in episode.turns]
    assert actions[0] == "search[brivane  rug ]"
    assert [action[:9] for action in actions[1:]] == ["click[b00", "click[fea", "click[< p", "click[buy"]
    assert episode.task_id == "synthetic/3"
    assert all(turn.action_valid for turn in episode.turns)
    assert f"<pre>{episode.task_score:.2f}</pre>" in bought


def test_a_receipt_is_that_of_the_one_purchase(visitor):
    visitor.begin(3)
    visitor.post(("search_query", "alderon rug"))
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


def test_a_persons_receipt_says_what_would_have_fitted(visitor):
    visitor.buy(0, person=True)
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
    visitor.post(("search_query", "alderon lamp"))
    visitor.get(next(link for link in Reader(visitor.page).links if "asin=B000000002&" in link))
    visitor.post(("color", "titanium"))
    visitor.post(("size", 'large 12" [xl]'))
    visitor.post(("click", "buy now"))
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


def test_a_site_with_other_goals_is_another_shop(site):
    RemoteSite(site.url, ShopFront(WebShopEnv(data=SHOP, observation_mode="url")))
    for options, said in (({"goal_order": "verl-agent"}, "goals_sha256"), ({"seed_prices": 3}, "prices_sha256")):
        with pytest.raises(ConfigError, match=f"another shop: .*{said}"):
            RemoteSite(site.url, ShopFront(WebShopEnv(data=SHOP, observation_mode="url", **options)))


def test_people_read_prices_scores_and_buttons_as_people_write_them(visitor):
    dear = SHOP.products[-5]
    for person, price, turns in ((True, "$1,299.50 to $2,000.00", 0), (False, "$1299.5 to $2000.0", 1)):
        visitor.begin(3, person=person)
        visitor.post(("search_query", dear.title))
        assert price in visitor.page
        assert visitor.page.count(">Next &gt;<") == turns
        visitor.get(next(link for link in Reader(visitor.page).links if dear.asin in link))
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
        assert "click[nothing]" in visitor.page
        assert "not possible" in visitor.page
        assert "&lt;b&gt;Look twice." in visitor.page
        for step, shown in (("2", ["item", "item"]), ("4", ["receipt", "item"])):
            visitor.get(f"/replays/0?step={step}")
            frames = [part.partition('"')[0].replace("&amp;", "&") for part in visitor.page.split('<iframe src="')[1:]]
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
    env = WebShopEnv(**shop)
    recorder = EpisodeRecorder(*env.reset(seed=0))
    recorder.add("search[things]", env.step("search[things]"))
    assert open_site(shop, episodes=[recorder.episode()])


def test_a_taken_port_is_named(site):
    with pytest.raises(ConfigError, match="another host or port"):
        ThreadedSite(site.site, port=int(site.url.rpartition(":")[2]))

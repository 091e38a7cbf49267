"""The site without a browser: what it serves, whom it serves, and what it does with anything else."""

from __future__ import annotations

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
from visitor import Visitor

from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.envs.webshop.site.access import AGENT, HEADERS, PERSON, TicketIssuer
from skillc_gym.envs.webshop.site.server import ThreadedSite, open_site
from skillc_gym.episodes import read_jsonl
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


def bought(visitor):
    """Searches, opens the last product found and buys it; returns the address of the results."""
    visitor.post(("search_query", "alderon rug"))
    results = visitor.at
    visitor.get(Reader(visitor.page).links[-1])
    assert visitor.post(("click", "buy now")) == 200
    return results


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


paths = st.sampled_from(["/", "/e/", "/e/TICKET/", "/static/", "/picture", "/episodes", "/about.json"])
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
    visitor.begin(3)  # an agent is not recorded
    visitor.post(("search_query", "rug"))
    *_, episode = read_jsonl(kept)
    assert len(read_jsonl(kept)) == lines + 1
    actions = [turn.action for turn in episode.turns]
    assert actions[0] == "search[brivane  rug ]"
    assert [action[:9] for action in actions[1:]] == ["click[b00", "click[fea", "click[< p", "click[buy"]
    assert episode.task_id == "synthetic/3"
    assert all(turn.action_valid for turn in episode.turns)


def test_a_receipt_is_that_of_the_one_purchase_and_tells_no_part_of_the_goal(visitor):
    visitor.begin(3)
    results = bought(visitor)
    receipt, page, goal = visitor.at, visitor.page, NATIVE.goals.goal(3)
    assert "Your score" in page
    for hidden in (goal.asin, goal.name, goal.query, goal.product_category, "r_type", "r_price", "title_score"):
        assert hidden not in page
    visitor.get(results)
    visitor.get(Reader(visitor.page).links[0])
    visitor.post(("click", "buy now"))
    assert visitor.at == receipt
    visitor.begin(3)
    assert visitor.get(f"/e/{visitor.ticket}/{receipt.split('/')[3]}") == 404


def test_a_taken_port_is_named(site):
    with pytest.raises(ConfigError, match="another host or port"):
        ThreadedSite(site.site, port=int(site.url.rpartition(":")[2]))


@pytest.mark.parametrize("compat", ["fixed", "upstream"])
def test_a_query_of_200_kb_is_refused(compat):
    with ThreadedSite(open_site({"data": SHOP, "compat": compat})) as site:
        visitor = Visitor(site.url)
        visitor.begin(0)
        for letters, status in ((200_000, 414), (5_000, 404 if compat == "fixed" else 200)):
            words = "rug+" * (letters // 4)
            assert visitor.ask("GET", f"{visitor.at.replace('home', 'results')}?q={words}&page=1") == status
        assert visitor.ask("POST", visitor.at, b"search_query=" + b"a" * 200_000) == 413


def test_demonstrations_fill_no_disk(tmp_path, caplog):
    kept = tmp_path / "kept.jsonl"
    with ThreadedSite(open_site({"data": SHOP}, record=kept, record_limit=1)) as site:
        kept.write_text("\n" * ((1 << 20) - 100))
        visitor = Visitor(site.url)
        visitor.begin(3, person=True)
        visitor.post(("search_query", "alderon rug"))
        visitor.get(Reader(visitor.page).links[0])
        assert visitor.post(("click", "buy now")) == 200
    assert kept.stat().st_size < 1 << 20
    assert "is full" in caplog.text
    kept.write_text("\n" * (1 << 20))
    with pytest.raises(ConfigError, match="--record-limit"):
        open_site({"data": SHOP}, record=kept, record_limit=1)


def test_a_site_for_others_asks_for_its_token():
    site = open_site({"data": SHOP}, host="0.0.0.0")
    assert re.fullmatch(r"[\w-]{22}", site.token)
    with ThreadedSite(site) as running:
        visitor = Visitor(running.url)
        json = {"content-type": "application/json"}
        for path in ("/", "/about.json", "/?token=wrong", "/?token=", "/nothing", "/picture_3"):
            assert visitor.ask("GET", path) == 401
        assert visitor.ask("POST", "/episodes", b"{}", **json) == 401
        assert visitor.ask("POST", "/episodes", b"{}", authorization=f"Bearer {site.token}", **json) == 200
        assert visitor.ask("GET", f"//evil.example?token={site.token}") == 303
        assert visitor.headers["location"] == "/evil.example"
        assert visitor.ask("GET", f"/?token={site.token}") == 303
        assert (visitor.headers["location"], "HttpOnly" in visitor.headers["set-cookie"]) == ("/", True)
        assert visitor.ask("GET", "/", cookie="a=b; " + visitor.headers["set-cookie"].partition(";")[0]) == 200
        visitor.ask("GET", f"/e/{site.tickets.issue(0)}/home")  # whoever has a ticket was let in
        assert visitor.status == 200


def test_which_sites_have_a_token():
    asked = [{}, {"token": "a-long-one"}, {"host": "::", "token": "none"}]
    assert [open_site({"data": SHOP}, **options).token for options in asked] == [None, "a-long-one", None]
    with pytest.raises(ConfigError, match="at least 8"):
        open_site({"data": SHOP}, token="a b")

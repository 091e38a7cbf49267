"""The site among visitors who mean no good: what they cannot make it do, and whom it lets in."""

from __future__ import annotations

import re

import pytest
from hostile_shop import SHOP
from page_reader import Reader
from visitor import Visitor

from skillc_gym.envs.webshop.site.server import ThreadedSite, open_site
from skillc_gym.errors import ConfigError


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

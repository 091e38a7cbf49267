"""The site among visitors who mean no good, over real sockets: what they cannot make it do."""

import contextlib
import logging
import re
import socket
import subprocess
import time
from pathlib import Path

import pytest
from page_reader import Visitor
from small_shop import SHOP, process

from skillc_gym.envs.webshop.site import limits
from skillc_gym.envs.webshop.site.server import ThreadedSite, open_site
from skillc_gym.episodes import read_jsonl
from skillc_gym.errors import ConfigError

HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "
FORM = b"POST /episodes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\ntask"
SERVER = """
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    from small_shop import SHOP
    from skillc_gym.envs.webshop.site import address_of_socket, bound_socket, open_site, serve
    listener = bound_socket("127.0.0.1", 0)
    print(address_of_socket(listener), flush=True)
    serve(open_site({"data": SHOP}), listener)
"""


def opened(host, *sent):
    """A connection to the site that has said something."""
    connection = socket.create_connection((host.partition(":")[0], int(host.partition(":")[2])), timeout=10)
    for part in sent:
        connection.sendall(part)
    return connection


@pytest.mark.parametrize("unfinished", [HEAD, FORM], ids=["heads", "forms"])
def test_unfinished_requests_lock_nobody_out_and_fill_no_log(tmp_path, unfinished):
    starting = process(SERVER)
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(**starting, stdout=-1, stderr=log) as server:
        try:
            visitor = Visitor(server.stdout.readline().strip())
            assert visitor.get("/") == 200
            idle = [opened(visitor.host, unfinished) for _ in range(300)]
            time.sleep(1)  # until the site has taken as many as it ever will
            start = time.monotonic()
            assert [visitor.get("/") for _ in range(3)] == [200] * 3
            assert time.monotonic() - start < limits.SECONDS / 2  # not because the others were cut off meanwhile
            for connection in idle:
                connection.close()
        finally:
            server.kill()
    assert (tmp_path / "log").stat().st_size < 20_000


@pytest.mark.parametrize("said", [b"", HEAD, FORM])
def test_who_does_not_finish_is_cut_off(monkeypatch, caplog, said):
    monkeypatch.setattr(limits, "SECONDS", 0.4)
    with ThreadedSite(open_site({"data": SHOP})) as site, opened(site.url.partition("//")[2], said) as connection:
        start = time.monotonic()
        with contextlib.suppress(ConnectionResetError):
            assert b"200" not in connection.recv(1 << 16)
        assert 0.2 < time.monotonic() - start < 8
        assert Visitor(site.url).get("/") == 200
    assert caplog.records == []


def test_a_log_has_so_many_lines_a_minute(caplog):
    logger = logging.getLogger("uvicorn.error")
    with limits.quiet_log():
        for number in range(1_000):
            logger.warning("line %d", number)
    assert len(caplog.records) == 20
    quiet = limits.Quiet(most=1, seconds=0.05)
    records = [logging.LogRecord("x", logging.INFO, "", 0, "said", (), None) for _ in range(3)]
    assert [quiet.filter(record) for record in records] == [True, False, False]
    time.sleep(0.1)
    assert quiet.filter(records[0])
    assert "2 lines left out" in records[0].getMessage()


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
        assert Visitor(site.url).buy(3, person=True) == 200
    assert kept.stat().st_size < 1 << 20
    assert "is full" in caplog.text
    kept.write_text("\n" * (1 << 20))
    with pytest.raises(ConfigError, match="--record-limit"):
        open_site({"data": SHOP}, record=kept, record_limit=1)


def test_a_file_that_cannot_be_written_breaks_no_purchase_and_no_other_demonstration(tmp_path, monkeypatch, caplog):
    kept, plain = tmp_path / "kept.jsonl", Path.open

    def full(self, *how, **kind):
        file = plain(self, *how, **kind)
        write = file.write

        def half(line):
            write(line[:40])
            raise OSError(28, "No space left on device")

        file.write = half
        return file

    with ThreadedSite(open_site({"data": SHOP}, record=kept)) as site:
        assert Visitor(site.url).buy(3, person=True) == 200
        monkeypatch.setattr(Path, "open", full)
        assert Visitor(site.url).buy(3, person=True) == 200
        monkeypatch.setattr(Path, "open", plain)
        assert Visitor(site.url).buy(3, person=True) == 200
    assert "No space left" in caplog.text
    assert len(read_jsonl(kept)) == 2


@pytest.mark.parametrize(
    ("options", "names"),
    [({"host": "127.0.0.2"}, ["127.0.0.2"]), ({"names": ["Desk.local"]}, ["desk.local", "DESK.local"])],
)
def test_a_site_answers_to_the_names_that_it_was_given(options, names):
    with ThreadedSite(open_site({"data": SHOP}, **options)) as running:
        asked = [*names, "localhost", "elsewhere"]
        found = [Visitor(running.url).ask("GET", "/", host=name) for name in asked]
        assert found == [200] * (len(asked) - 1) + [403]


def test_two_sites_on_a_machine_do_not_take_each_others_cookies():
    cookies = []
    for token in ("one-long-token", "two-long-token"):
        with ThreadedSite(open_site({"data": SHOP}, token=token)) as running:
            visitor = Visitor(running.url)
            assert visitor.ask("GET", f"/?token={token}") == 303
            cookies.append(visitor.headers["set-cookie"].partition(";")[0])
            assert visitor.ask("GET", "/", cookie="; ".join(cookies)) == 200
    assert len({cookie.partition("=")[0] for cookie in cookies}) == 2


def test_a_site_for_others_asks_for_its_token():
    site = open_site({"data": SHOP}, host="0.0.0.0", upstream_routes=True)
    assert re.fullmatch(r"[\w-]{22}", site.token)
    with ThreadedSite(site) as running:
        visitor = Visitor(running.url)
        for path in ("/", "/about.json", "/replays", "/?token=wrong", "/?token=", "/nothing", "/fixed_3", "/picture_3"):
            assert visitor.ask("GET", path) == 401
        for token, status in (("", 401), (site.token, 200)):
            said = {"content-type": "application/json", "authorization": f"Bearer {token}"}
            assert visitor.ask("POST", "/episodes", b"{}", **said) == status
        assert visitor.ask("GET", f"//evil.example?token={site.token}") == 303
        assert visitor.headers["location"] == "/evil.example"
        assert visitor.ask("GET", f"/?token={site.token}") == 303
        assert (visitor.headers["location"], "HttpOnly" in visitor.headers["set-cookie"]) == ("/", True)
        assert visitor.ask("GET", "/", cookie="a=b; " + visitor.headers["set-cookie"].partition(";")[0]) == 200
        assert visitor.ask("GET", f"/e/{site.tickets.issue(0)}/home") == 200  # whoever has a ticket was let in
    asked = [{}, {"token": "a-long-one"}, {"host": "::", "token": "none"}]
    assert [open_site({"data": SHOP}, **options).token for options in asked] == [None, "a-long-one", None]
    with pytest.raises(ConfigError, match="at least 8"):
        open_site({"data": SHOP}, token="a b")

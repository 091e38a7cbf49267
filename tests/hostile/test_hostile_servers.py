"""What servers and language models answer, and what visitors type into the site's address line."""

import asyncio
import functools
import gzip
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from string import punctuation
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pytest
from hypothesis import strategies as st

pytest.importorskip("openai", reason="needs the openai extra")

from benchmarks.fuzz import TARGETS
from skillc_gym.envs.webshop.site import open_site
from skillc_gym.errors import SkillCError
from tests.conftest import EPISODE
from tests.hostile.changes import changed, hostile
from tests.hostile.test_hostile_players import shop_catalog
from trainers.engines import OpenAIEngine, ServerOptions, TextRequest
from trainers.writers import ModelWriter, NotedWriter, PolicyWriter

KEY = "sk-A-KEY-THAT-NOBODY-SAYS"
HEADS = (
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n",
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n",
    "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n",
    "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\n",
    "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\n",
)
BODIES = (
    '{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop",'
    '"message":{"role":"assistant","content":"<action>look</action>"}}],"usage":{"prompt_tokens":5,'
    '"completion_tokens":3,"total_tokens":8}}',
    'data: {"id":"1","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'
    'data: {"id":"1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}\n\n'
    "data: [DONE]\n\n",
    '{"error":{"message":"This model\'s maximum context length is 9 tokens","code":"context_length_exceeded"}}',
    f'{{"error":"no entry for {KEY}"}}',
)
OF_ANSWERS = (
    *("[", '{"a":', "null", "Infinity", "NaN", "-1", "1e999", '"\\ud800"', "\\u202e", "\x1b[2J", "\r\n", "data: "),
    *(KEY, '"choices":[]', '"usage":', "true", "9" * 400, "\x00", '"reasoning_content":[]', "event: error\n"),
    *("Retry-After: 1e308\r\n", "Content-Encoding: gzip\r\n", "Transfer-Encoding: chunked\r\n"),
    *("Content-Type: text/plain; charset=idna\r\n", "Content-Type: application/json; charset=zlib_codec\r\n"),
)
REPLIES = (
    *('{"skills": ["Look first."]}', '```json\n{"note": "The fridge was shut."}\n```', '{"plan": "Open it."}'),
    *('{"skills": ["a"], "mistakes": ["b"]}', '{"facts": ["Cups lie low.", "Doors creak."]}'),
    *("ADD: be quick\nREMOVE 1: be slow", "EDIT 2: be kind\nAGREE 1: yes"),
    '{"operation": "UPDATE", "number": 2, "text": "Cups lie high."}',
)
OF_REPLIES = (
    *("[", "{", '"', "\\ud800", "\ud800", "\x00", "\x1b[2J", "\r", "9" * 5000, "NaN", "null", "true", "1.0", " "),
    *("```", "```json\n", "ADD: ", "EDIT 0: x", "REMOVE 999999999: x", "AGREE ٣: x", "\u2028", "x" * 700, '"skills":'),
)
OF_ADDRESSES = (
    *("/", "//", "..", "%00", "%2f", "%ff", "%", "?", "#", "&", "=", "+", ";", "\\"),
    *("a", "0", "-1", "9" * 30, "é", "😀"),
    *("q=red", "page=2", "page=1e9", "page=-1", "options=", "size=large", "step=3", "token=", "B0lower000", "home"),
    *("results", "item", "details", "receipt", "search_query=", "task=1", "task=all/1", "<script>alert(1)</script>"),
    *("asin=B0lower000", "tab=Features", "o.size=", "seen=B0lower000", "hit=B0lower000"),
    *('"onload="x', "%22%3E%3Cimg%20src=x%3E", "[SEP]", "buy now", "b0[x]", "a/b?c"),
)
FIXED = (
    *("/", "/about.json", "/replays", "/replays/0", "/picture?asin=a", "/static/shop.css", "/fixed_1", "/abc"),
    "/episodes",
)


class Server:
    """A server on this machine that says the same to whoever asks."""

    def __init__(self) -> None:
        self.loop, self.answer = asyncio.new_event_loop(), b""
        self.server = self.loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        address = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}/v1"
        options = ServerOptions(base_url=address, timeout=0.4, deadline=0.8, retries=0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OPENAI_API_KEY", KEY)
            self.engines = [OpenAIEngine("m", replace(options, stream=stream)) for stream in (False, True)]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(self.answer)
        writer.close()


server = functools.cache(Server)


@hostile
def test_an_answer_becomes_a_reply_or_a_short_printable_error_without_the_key(data: Any) -> None:
    server().answer = answer(data)
    request = TextRequest([{"role": "user", "content": "go"}], 0, 8, 0.0)
    said = ""
    try:
        reply = server().loop.run_until_complete(data.draw(st.sampled_from(server().engines)).reply(request))
        assert 0 <= reply.prompt_tokens < 10**13
        assert 0 <= reply.completion_tokens < 10**13
        reply.text.encode()
    except SkillCError as error:
        said = str(error)
    assert KEY not in said, "an error quotes the key"
    assert len(said) < 2_000
    assert all(letter.isprintable() or letter == "\n" for letter in said), "an error that steers a terminal"


def answer(data: Any) -> bytes:
    head = changed(data, data.draw(st.sampled_from(HEADS)), OF_ANSWERS, changes=1, repeats=50)
    body = changed(data, data.draw(st.sampled_from(BODIES)), OF_ANSWERS, repeats=20_000)
    content = body.encode("utf-8", "surrogatepass")
    if data.draw(st.integers(0, 7)) == 0:
        head, content = head + "Content-Encoding: gzip\r\n", gzip.compress(content, 1)
    length = data.draw(st.sampled_from([f"Content-Length: {len(content)}\r\n", "Connection: close\r\n"]))
    return f"{head}{length}\r\n".encode("utf-8", "surrogatepass") + content


@hostile
def test_what_writers_keep_of_replies_is_bounded_and_can_be_stored(data: Any) -> None:
    def reply(chats: Sequence[Any]) -> list[str]:
        return [changed(data, data.draw(st.sampled_from(REPLIES)), OF_REPLIES, 2, 3_000) for _ in chats]

    lost, policy = replace(EPISODE, task_type="cook", won=False), PolicyWriter(reply)
    writers = (ModelWriter(reply), NotedWriter(reply))
    kept = [draft.text for writer in writers for draft in writer.write([EPISODE, lost])]
    kept += [text for text in policy.reflect([lost], [["Look."]]) if text]
    kept += [edit.text for edit in policy.edit(["one", "two"], [EPISODE, lost])] + policy.facts(EPISODE)
    decision = policy.decide("Cups.", ["one", "two"])
    assert 0 <= decision.number <= 2, "a fact that was not shown"
    for text in (*kept, decision.text, policy.last_fault):
        text.encode()
        assert len(text) <= 1_100


@functools.cache
def site() -> Any:
    return open_site({"data": shop_catalog()}, upstream_routes=True)


@functools.cache
def addresses() -> list[str]:
    episodes = [f"/e/{site().tickets.issue(1, audience)}" for audience in "apu"]
    kinds = ("home", "results?q=red&page=1", "item?asin=B000000001&q=red&page=1")
    return [*FIXED, *(f"{episode}/{kind}" for episode in episodes for kind in kinds)]


@hostile
def test_no_address_fails_runs_code_or_leads_out_of_the_site(data: Any) -> None:
    address = changed(data, data.draw(st.sampled_from(addresses())), OF_ADDRESSES, repeats=400)
    form = data.draw(st.booleans()) and changed(data, "search_query=red thing", OF_ADDRESSES, repeats=4_000)
    status, headers, page = asyncio.run(asked(site(), address, form or "", data.draw(st.sampled_from(["GET", "HEAD"]))))
    assert 200 <= status < 500, f"status {status} for {address!r}"
    assert "<script>alert" not in page, "what was typed stands in the page as code"
    place = headers.get("location", "/")
    assert urlsplit(place).hostname in (None, "127.0.0.1"), f"sent away, to {place!r}"
    assert status != 303 or asyncio.run(asked(site(), place, ""))[0] < 500


async def asked(
    app: Callable[..., Any], address: str, form: str, method: str = "GET"
) -> tuple[int, Mapping[str, str], str]:
    """Calls an ASGI application as a server would."""
    # A server takes ASCII alone, and reads what is quoted as UTF-8, with a sign in place of what is none.
    raw, _, query = quote(address.encode("utf-8", "surrogatepass"), punctuation.encode()).encode().partition(b"?")
    scope = {
        **{"type": "http", "http_version": "1.1", "scheme": "http", "root_path": "", "extensions": {}},
        **{"method": "POST" if form else method, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)},
        **{"path": unquote(raw.decode()), "raw_path": raw, "query_string": query},
        "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/x-www-form-urlencoded")],
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": form.encode("utf-8", "surrogatepass"), "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in sent[0]["headers"]}
    page = b"".join(message.get("body", b"") for message in sent[1:])
    return int(sent[0]["status"]), headers, page.decode("utf-8", "replace")


@pytest.mark.parametrize("place", TARGETS.values())
def test_every_target_of_the_fuzzer_takes_any_bytes(place: str) -> None:
    module, _, name = place.partition(":")
    getattr(importlib.import_module(f"tests.hostile.test_hostile_{module}"), name).hypothesis.fuzz_one_input(b"")

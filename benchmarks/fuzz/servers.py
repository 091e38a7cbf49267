"""What servers and language models answer, and what visitors type into the site's address line."""

from __future__ import annotations

import asyncio
import gzip
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from string import punctuation
from typing import Any
from unittest.mock import patch
from urllib.parse import quote, unquote, urlsplit

from benchmarks.fuzz.actions import shop_catalog
from benchmarks.fuzz.target import FuzzTarget, Run, changed_text
from benchmarks.fuzz.texts import EPISODE
from skillc_gym.envs.webshop.site import open_site
from skillc_gym.errors import SkillCError
from trainers.engines import OpenAIEngine, ServerOptions, TextRequest
from trainers.writers import ModelWriter, NotedWriter, PolicyWriter

# Answers of servers ---------------------------------------------------------------------------------------------------

_KEY = "sk-A-KEY-THAT-NOBODY-SAYS"
_HEADS = (
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n",
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n",
    "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n",
    "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\n",
    "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\n",
)
_BODIES = (
    '{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop",'
    '"message":{"role":"assistant","content":"<action>look</action>"}}],"usage":{"prompt_tokens":5,'
    '"completion_tokens":3,"total_tokens":8}}',
    'data: {"id":"1","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'
    'data: {"id":"1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}\n\n'
    "data: [DONE]\n\n",
    '{"error":{"message":"This model\'s maximum context length is 9 tokens","code":"context_length_exceeded"}}',
    f'{{"error":"no entry for {_KEY}"}}',
)
_OF_ANSWERS = (
    *("[", '{"a":', "null", "Infinity", "NaN", "-1", "1e999", '"\\ud800"', "\\u202e", "\x1b[2J", "\r\n", "data: "),
    *(_KEY, '"choices":[]', '"usage":', "true", "9" * 400, "\x00", '"reasoning_content":[]', "event: error\n"),
    *(
        "Retry-After: 1e308\r\n",
        "Content-Encoding: gzip\r\n",
        "Content-Encoding: br\r\n",
        "Transfer-Encoding: chunked\r\n",
    ),
    *("Content-Type: text/plain; charset=idna\r\n", "Content-Type: application/json; charset=zlib_codec\r\n"),
)


def answers_target(atheris: Any) -> Run:
    """Asks a server on this machine whose answers are mutated; a reply has finite counts, an error keeps the key."""
    loop, served = asyncio.new_event_loop(), [b""]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(served[0])
        writer.close()

    server = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0))
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    with patch.dict(os.environ, {"OPENAI_API_KEY": _KEY}):
        engines = [
            OpenAIEngine("m", ServerOptions(base_url=address, timeout=0.4, deadline=0.8, retries=0, stream=stream))
            for stream in (False, True)
        ]
    request = TextRequest([{"role": "user", "content": "go"}], 0, 8, 0.0)

    def target(data: bytes) -> None:
        provider = atheris.FuzzedDataProvider(data)
        engine = engines[provider.ConsumeIntInRange(0, 1)]
        served[0] = _answer(provider)
        try:
            reply = loop.run_until_complete(engine.reply(request))
        except SkillCError as error:
            _check_error(str(error))
            return
        assert 0 <= reply.prompt_tokens < 10**13, "tokens that cannot be"
        assert 0 <= reply.completion_tokens < 10**13, "tokens that cannot be"
        reply.text.encode()
        reply.finish_reason.encode()

    target.__dict__["server"] = server
    return target


def _check_error(said: str) -> None:
    assert _KEY not in said, "an error quotes the key"
    assert len(said) < 2_000, "an endless message"
    assert all(letter.isprintable() or letter == "\n" for letter in said), "an error that steers a terminal"


def _answer(provider: Any) -> bytes:
    head, body = (options[provider.ConsumeIntInRange(0, len(options) - 1)] for options in (_HEADS, _BODIES))
    for _ in range(provider.ConsumeIntInRange(0, 3)):
        body = changed_text(provider, body, _OF_ANSWERS, 20_000)
    if provider.ConsumeIntInRange(0, 3) == 0:
        head = changed_text(provider, head, _OF_ANSWERS, 50)
    content = body.encode("utf-8", "surrogatepass")
    if provider.ConsumeIntInRange(0, 7) == 0:
        head, content = head + "Content-Encoding: gzip\r\n", gzip.compress(content, 1)
    length = f"Content-Length: {len(content)}\r\n" if provider.ConsumeBool() else "Connection: close\r\n"
    return f"{head}{length}\r\n".encode("utf-8", "surrogatepass") + content


ANSWERS = FuzzTarget(
    "Answers of a chat server, plain and streamed, with heads and bodies changed; each becomes a reply with counts "
    "that can be, or an error that is short, printable and without the key.",
    answers_target,
    ("trainers.engines.openai", "openai._streaming", "openai._response", "httpx._decoders", "json"),
)

# Replies to writers ---------------------------------------------------------------------------------------------------

_REPLIES = (
    *('{"skills": ["Look first."]}', '```json\n{"note": "The fridge was shut."}\n```', '{"plan": "Open it."}'),
    *('{"skills": ["a"], "mistakes": ["b"]}', '{"facts": ["Cups lie low.", "Doors creak."]}'),
    *("ADD: be quick\nREMOVE 1: be slow", "EDIT 2: be kind\nAGREE 1: yes"),
    '{"operation": "UPDATE", "number": 2, "text": "Cups lie high."}',
)
_OF_REPLIES = (
    *("[", "{", '"', "\\ud800", "\ud800", "\x00", "\x1b[2J", "\r", "9" * 5000, "NaN", "null", "true", "1.0", " "),
    *("```", "```json\n", "ADD: ", "EDIT 0: x", "REMOVE 999999999: x", "AGREE ٣: x", "\u2028", "x" * 700, '"skills":'),
)
_LONGEST = 600


def writers_target(atheris: Any) -> Run:
    """Lets writers ask a model whose replies are mutated: what they keep is bounded and can be stored."""
    lost = replace(EPISODE, task_type="cook", won=False)

    def target(data: bytes) -> None:
        provider = atheris.FuzzedDataProvider(data)

        def answer(chats: Sequence[Any]) -> list[str]:
            return [_reply(provider) for _ in chats]

        policy = PolicyWriter(answer)
        kept = [
            draft.text
            for writer in (ModelWriter(answer), NotedWriter(answer))
            for draft in writer.write([EPISODE, lost])
        ]
        kept += [text for text in policy.reflect([lost], [["Look."]]) if text]
        kept += [edit.text for edit in policy.edit(["one", "two"], [EPISODE, lost])] + policy.facts(EPISODE)
        decision = policy.decide("Cups.", ["one", "two"])
        assert 0 <= decision.number <= 2, "a fact that was not shown"
        for text in (*kept, decision.text, policy.last_fault):
            text.encode()
            assert len(text) <= _LONGEST + 500, "a text longer than asked for"

    return target


def _reply(provider: Any) -> str:
    text = _REPLIES[provider.ConsumeIntInRange(0, len(_REPLIES) - 1)]
    for _ in range(provider.ConsumeIntInRange(0, 2)):
        text = changed_text(provider, text, _OF_REPLIES, 3_000)
    return text


WRITERS = FuzzTarget(
    "Replies of language models to every kind of writer, with pieces put in, dropped or repeated; a reply is read or "
    "counted as a bad one, and what is kept can be stored.",
    writers_target,
    ("trainers.writers", "json", "re"),
)

# Addresses of the shop's site -----------------------------------------------------------------------------------------

_OF_ADDRESSES = (
    *(
        "/",
        "//",
        "..",
        "%00",
        "%2f",
        "%ff",
        "%",
        "?",
        "#",
        "&",
        "=",
        "+",
        ";",
        "\\",
        "a",
        "0",
        "-1",
        "9" * 30,
        "é",
        "😀",
    ),
    *("q=red", "page=2", "page=1e9", "page=-1", "options=", "size=large", "step=3", "token=", "B0lower000", "home"),
    *("results", "item", "details", "receipt", "search_query=", "task=1", "task=all/1", "<script>alert(1)</script>"),
    *('"onload="x', "%22%3E%3Cimg%20src=x%3E", "[SEP]", "buy now", "b0[x]", "a/b?c"),
)
_ASCII = punctuation.encode()
_FIXED = ("/", "/about.json", "/replays", "/replays/0", "/picture?text=a", "/static/shop.css", "/fixed_1", "/abc")


def addresses_target(atheris: Any) -> Run:
    """Calls the site with mutated addresses and forms; it always answers, never with a failure of its own."""
    site = open_site({"data": shop_catalog()}, upstream_routes=True)
    tickets = [site.tickets.issue(1, audience) for audience in "apu"]
    known = [*_FIXED, *(f"/e/{ticket}/{kind}" for ticket in tickets for kind in ("home", "results?q=red&page=1"))]
    known += [f"/e/{ticket}/item?asin=B000000001&q=red&page=1" for ticket in tickets]
    loop = asyncio.new_event_loop()

    def target(data: bytes) -> None:
        provider = atheris.FuzzedDataProvider(data)
        address, form = known[provider.ConsumeIntInRange(0, len(known) - 1)], ""
        for _ in range(provider.ConsumeIntInRange(0, 4)):
            address = changed_text(provider, address, _OF_ADDRESSES, 400)
        if provider.ConsumeBool():
            form = changed_text(provider, "search_query=red thing", _OF_ADDRESSES, 4_000)
        status, headers, page = loop.run_until_complete(_asked(site, address, form))
        assert 200 <= status < 500, f"status {status} for {address!r}"
        assert "<script>alert" not in page, "what was typed stands in the page as code"
        place = headers.get("location", "/")
        assert urlsplit(place).hostname in (None, "127.0.0.1"), f"sent away, to {place!r}"
        if status == 303 and provider.remaining_bytes() > 4:
            assert loop.run_until_complete(_asked(site, place, ""))[0] < 500

    return target


async def _asked(app: Callable[..., Any], address: str, form: str) -> tuple[int, Mapping[str, str], str]:
    """Calls an ASGI application as a server would."""
    body = form.encode("utf-8", "surrogatepass")
    # A server takes ASCII alone, and reads what is quoted as UTF-8, with a sign in place of what is none.
    raw, _, query = quote(address.encode("utf-8", "surrogatepass"), _ASCII).encode().partition(b"?")
    scope = {
        **{"type": "http", "http_version": "1.1", "scheme": "http", "root_path": "", "extensions": {}},
        **{"method": "POST" if form else "GET", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)},
        **{"path": unquote(raw.decode()), "raw_path": raw, "query_string": query},
        "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/x-www-form-urlencoded")],
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in sent[0]["headers"]}
    page = b"".join(message.get("body", b"") for message in sent[1:])
    return int(sent[0]["status"]), headers, page.decode("utf-8", "replace")


ADDRESSES = FuzzTarget(
    "Addresses and forms of the shop's site, those that it gives out and changed ones; each is answered, none with a "
    "failure, with code of the visitor's or with a way out of the site.",
    addresses_target,
    ("skillc_gym.envs.webshop.site", "skillc_gym.envs.webshop.shop", "urllib.parse"),
)

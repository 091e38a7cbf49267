"""The engine openai: what it asks, what it tries again, what it refuses, and what it never tells."""

import asyncio
import email.utils
import gzip
import json
import socket
import time
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError, ServerError
from tests.openai_server import Handler, openai_server
from trainers.engines import openai
from trainers.engines.openai import OpenAIEngine, RateLimiter
from trainers.engines.openai_options import ServerOptions
from trainers.engines.text import ContextFullError, TextReply, TextRequest, TransientError

client = pytest.importorskip("trainers.engines.openai_client", reason="needs the openai extra", exc_type=ImportError)
REQUEST = TextRequest([{"role": "user", "content": "one two"}], seed=5, max_tokens=7, temperature=0.3)


def engine(base_url: str, **options: Any) -> OpenAIEngine:
    quick = {"timeout": 5.0, "first_wait": 0.0, "retries": 3}
    return OpenAIEngine("m", ServerOptions(**{"base_url": base_url, **quick, **options}))


def ask(asked: OpenAIEngine) -> TextReply:
    async def run() -> TextReply:
        try:
            return await asked.reply(REQUEST)
        finally:
            await asked.aclose()

    return asyncio.run(run())


def server_with(fault: Any = None) -> Any:
    return openai_server(lambda chat: "x", lambda number, body: fault)


def failed(fault: Any, words: str, **options: Any) -> tuple[str, int]:
    """What an engine says when every request is answered by a fault, and how often it asked."""
    with server_with(fault) as server:
        with pytest.raises(ServerError, match=words) as caught:
            ask(engine(server.base_url, **options))
        return str(caught.value), len(server.requests)


def hang_up(handler: Handler, body: Any) -> bool:
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)
    return True


def sends(content: bytes, kind: str = "application/json", headers: Any = None, code: int = 200) -> Any:
    """Answers with this content."""

    def fault(handler: Handler, body: Any) -> bool:
        told = {"Content-Type": kind, "Content-Length": str(len(content)), **(headers or {})}
        handler.send_response(code)
        for name, text in told.items():
            handler.send_header(name, text)
        handler.end_headers()
        handler.wfile.write(content)
        handler.close_connection = int(told["Content-Length"]) > len(content)
        return True

    return fault


def status(code: int, error: Any = "busy", headers: Any = None) -> Any:
    return sends(json.dumps({"error": error}).encode(), headers=headers, code=code)


GZIP = {"Content-Encoding": "gzip"}
UNCOUNTED = b'{"choices": [{"message": {"content": "x"}}]}'


def half_a_stream(handler: Handler, body: Any) -> bool:
    handler.stream("a reply that is longer than three pieces of eight letters", {}, up_to=3)
    return True


@pytest.mark.parametrize(
    ("stream", "key", "sent"),
    [(False, " sk-secret\n", "Bearer sk-secret"), (False, "", None), (True, "", None)],
)
def test_what_is_asked_and_how_it_is_read(
    stream: bool, key: str, sent: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    said = "une réponse, plus longue\nque huit lettres \u2028 €"
    with openai_server(lambda chat: said) as server:
        assert ask(engine(server.base_url, stream=stream, body={"top_p": 0.9})) == TextReply(said, 2, 8)
    asked = {"model": "m", "messages": [{"role": "user", "content": "one two"}], "temperature": 0.3, "seed": 5}
    streamed = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    assert server.requests == [{**asked, **streamed, "max_tokens": 7, "top_p": 0.9}]
    assert server.headers[0].get("Authorization") == sent


@pytest.mark.parametrize(
    "fault",
    [
        *(status(429, headers={"Retry-After": patience}) for patience in ("0", "1e9")),
        *(status(code) for code in (408, 409, 425, 429, 500, 502, 503, 529)),
        hang_up,
        sends(b'{"choices": [{"message"', headers={"Content-Length": "500"}),
        half_a_stream,
        sends(b'{"choices": []}'),
        # Half a reply, since the model behind a gateway failed; and errors that come when it had begun.
        sends(b'{"choices": [{"finish_reason": "error", "error": {"code": 502}, "message": {"content": ""}}]}'),
        sends(b'{"choices": [{"finish_reason": "insufficient_system_resource", "message": {"content": "I sho"}}]}'),
        sends(b'{"error": {"message": "upstream is gone", "code": 502}}'),
    ],
)
def test_what_may_pass_is_tried_again_and_no_server_asks_for_more_patience_than_there_is(fault: Any) -> None:
    with openai_server(lambda chat: "x", lambda number, body: fault if number < 3 else None) as server:
        asked = engine(server.base_url, longest_wait=0.01)
        assert ask(asked).text == "x"
    assert (len(server.requests), asked.repeated) == (3, 2)
    assert server.requests[0] == server.requests[2]


@pytest.mark.parametrize(
    ("fault", "words", "asked"),
    [
        (status(500, "on fire"), r"4 tries.*status 500: on fire.*same command again", 4),
        (status(401, "bad key"), "status 401: bad key", 1),
        (status(429, {"message": "pay first", "code": "insufficient_quota"}), "pay first", 1),
        *(
            (sends(b"{}", f"application/json; charset={name}", code=500), "status 500", 4)  # of which none is of text
            for name in ("zlib", "utf-16", "idna", "none-such")
        ),
        (sends(b'{"error": {"message": "No credits left", "code": 402}}'), "status 402: No credits left", 1),
        (sends(b'{"error": {"message": "bad key", "code": "401"}}'), "status 401: bad key", 1),
        (sends(UNCOUNTED, headers=GZIP), "cannot be unpacked", 4),
        (sends(UNCOUNTED, headers={"Content-Encoding": "br"}), "encoding br", 4),
        (sends(gzip.compress(UNCOUNTED)[:-9], headers=GZIP), "does not end", 4),
        (sends(UNCOUNTED + b" " * 10_000), "more than 10,000 bytes", 4),
        (sends(gzip.compress(UNCOUNTED + b" " * 10_000), headers=GZIP), "more than 10,000 bytes", 4),
    ],
)
def test_it_gives_up_in_words_and_tries_no_refusal_again(
    fault: Any, words: str, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MAX_ANSWER_BYTES", 10_000)
    assert failed(fault, words)[1] == asked


@pytest.mark.parametrize(
    "error",
    [
        {"message": "too long", "code": "context_length_exceeded"},
        {"message": "This model's maximum context length is 4096 tokens"},
        {"message": "the request exceeds the available context size"},
        {"message": "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens"},
        {"message": "litellm.ContextWindowExceededError: prompt is too long: 210000 tokens > 200000 maximum"},
        {"message": "The input token count (9000) exceeds the maximum number of tokens allowed (8192)."},
        {"message": "This model's maximum prompt length is 131072"},
    ],
)
def test_a_full_context_is_no_failure_of_the_server(error: dict[str, str]) -> None:
    faults: list[Any] = [(status(400, error), False)]
    for said in ({"code": 400, **error}, {"code": "400", **error}, error):
        told = json.dumps({"error": said}).encode()
        faults += [(sends(told), False), (sends(b"data: " + told + b"\n\n", "text/event-stream"), True)]
    for fault, stream in faults:
        with server_with(fault) as server, pytest.raises(ContextFullError):
            ask(engine(server.base_url, stream=stream))


def test_a_busy_server_is_given_more_time_than_it_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waited = list[float]()

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    asked = engine("http://127.0.0.1:1/v1", first_wait=1.0)
    monkeypatch.setattr(openai, "asyncio", SimpleNamespace(sleep=sleep))
    for attempt in range(5):
        asyncio.run(asked._back_off(attempt, TransientError("busy", 1.0)))
    assert all(max(1.0, 2**n / 2) <= seconds <= max(1.0, 2**n) for n, seconds in enumerate(waited))
    asyncio.run(asked._back_off(5000, TransientError("busy")))
    assert waited[-1] == asked.options.longest_wait


@pytest.mark.parametrize("code", [401, 500])
def test_what_a_server_says_is_cut_without_the_key_and_steers_no_terminal(
    code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret")
    fault = status(code, "Incorrect key: sk-secret \x1b[2J\u202e" + "long " * 10_000)
    said, _ = failed(fault, r"\[key\]", key_variable="MY_KEY", retries=0)
    assert "sk-secret" not in said
    assert said.isprintable()
    assert len(said) < 600


@pytest.mark.parametrize(("key", "named"), [("sk-\u20ac", None), ("sk-\n1", None), ("", "OPENAI_API_KEY")])
def test_what_is_no_key_is_refused_before_anything_is_sent(
    key: str, named: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY") as caught:
        engine("http://x/v1", key_variable=named)
    assert "sk-" not in str(caught.value)


def test_the_budget_stops_and_needs_a_server_that_counts() -> None:
    with server_with() as server:
        asked = engine(server.base_url, token_budget=5)  # a request takes 2 + 1 tokens
        assert [ask(asked).completion_tokens for _ in range(2)] == [1, 1]
        with pytest.raises(ServerError, match="budget of 5 tokens"):
            ask(asked)
    assert (asked.spent_tokens, len(server.requests)) == (6, 2)
    assert ServerOptions(input_price=2.0, output_price=10.0).cost(1_000_000, 500_000) == 7.0
    assert ServerOptions().cost(1, 1) is None
    with pytest.raises(ConfigError, match="belong together"):
        ServerOptions(input_price=2.0)
    with server_with(sends(gzip.compress(UNCOUNTED), headers=GZIP)) as server:
        assert ask(engine(server.base_url)) == TextReply("x", 0, 0)
        with pytest.raises(ServerError, match="counts no tokens"):
            ask(engine(server.base_url, token_budget=5))


def test_requests_are_spaced_and_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    now, sent, limiter = [100.0], list[float](), RateLimiter(per_minute=120.0)

    async def sleep(seconds: float) -> None:
        now[0] += max(0.0, seconds)

    async def send() -> None:
        await limiter.wait()
        sent.append(now[0])
        if len(sent) == 2:
            limiter.hold(10.0)

    async def at_once() -> None:
        await asyncio.gather(*(send() for _ in range(4)))

    monkeypatch.setattr(openai, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(openai, "asyncio", SimpleNamespace(Lock=asyncio.Lock, sleep=sleep))
    asyncio.run(at_once())
    assert sent == [100.0, 100.5, 110.5, 111.0], "those that are queued already wait too"
    limiter.reset()
    asyncio.run(at_once())
    assert sent[4:] == [111.5, 112.0, 112.5, 113.0], "what is asked next keeps the limit too"


END = {"choices": [{"delta": {}, "finish_reason": "length"}]}


@given(st.text(), st.lists(st.integers(0, 40)), st.integers(0, 50))
def test_a_stream_is_read_whole_or_refused(text: str, cuts: list[int], end: int) -> None:
    places = sorted({min(cut, len(text)) for cut in cuts})
    pieces = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    parts: list[Any] = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    parts += [END, {"choices": [], "usage": {}}]
    assert client.read_reply(parts) == TextReply(text)
    if end < len(parts) - 1:
        with pytest.raises(ValueError, match="ends before"):
            client.read_reply(parts[:end])


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thoughts_that_a_server_takes_apart_are_put_together_again(field: str) -> None:
    whole = {"choices": [{"message": {field: "Where?", "content": "<action>look</action>"}}]}
    deltas = [{field: "Whe", "content": None}, {field: "re?"}, {"content": "<action>look"}, {"content": "</action>"}]
    parts = [*({"choices": [{"delta": delta}]} for delta in deltas), END]
    for answer in (whole, parts):
        assert client.read_reply(answer).text == "<think>Where?</think><action>look</action>"


HOSTILE = [
    b"",
    b"null",
    b"[]",
    b"[" * 100_000,
    b"\xff\xfe",
    b'{"choices": 1}',
    b'{"choices": [{"message": "text"}]}',
    b'{"choices": [{"message": {"content": 5}}]}',
    b'{"choices": [{"message": {"content": "x", "reasoning": {"a": 1}}}]}',
    b'{"choices": [{"message": {"content": "\\ud800"}}]}',
    *(
        json.dumps({**json.loads(UNCOUNTED), "usage": {"prompt_tokens": count, "completion_tokens": 1}}).encode()
        for count in (-1, 1e999, float("nan"), 10**15, "many", True, [])
    ),
]


@pytest.mark.parametrize("content", HOSTILE)
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", "text/html"])
def test_an_answer_of_another_form_is_tried_again_and_told_in_one_way(content: bytes, kind: str) -> None:
    assert failed(sends(content, kind), "in 2 tries", retries=1, stream=kind == "text/event-stream")[1] == 2


def test_an_event_of_many_lines_costs_no_minutes() -> None:
    started = time.process_time()
    failed(sends(b"data: a\n" * 100_000, "text/event-stream"), "lines", retries=0, stream=True)
    assert time.process_time() - started < 2


def test_an_address_without_a_server_is_told_soon() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(ServerError, match="in 3 tries"):
        ask(engine(address, retries=8))


def test_retry_after_is_read() -> None:
    unreadable = ("soon", "", "inf", "nan", "Wed, 21 Oct 99999999 07:28:00 GMT")
    asked = {"2.5": 2.5, "-1": 0.0, "Wed, 21 Oct 2015 07:28:00 GMT": 0.0, **dict.fromkeys(unreadable)}
    assert {text: client.retry_after({"retry-after": text}) for text in asked} == asked


def test_a_date_without_a_zone_is_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        soon = email.utils.formatdate(time.time() + 600)
        assert soon.endswith("-0000")
        assert 590 < (client.retry_after({"retry-after": soon}) or 0.0) <= 600
    finally:
        monkeypatch.undo()
        time.tzset()

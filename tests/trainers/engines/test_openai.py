"""The engine openai: what it asks, what it tries again, what it refuses, and what it never tells."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import time
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError, ServerError, UnknownNameError
from tests.openai_server import Handler, openai_server
from trainers.config import TrainConfig
from trainers.engines import openai
from trainers.engines.openai import OpenAIEngine, RateLimiter
from trainers.engines.openai_options import ServerOptions
from trainers.engines.registry import engine_spec
from trainers.engines.text import ContextFullError, FunctionEngine, TextEngine, TextReply, TextRequest

client = pytest.importorskip("trainers.engines.openai_client", reason="needs the openai extra", exc_type=ImportError)
REQUEST = TextRequest([{"role": "user", "content": "one two"}], seed=5, max_tokens=7, temperature=0.3)


def engine(base_url: str, **options: Any) -> OpenAIEngine:
    quick = {"timeout": 5.0, "first_wait": 0.0, "retries": 3}
    return OpenAIEngine("m", ServerOptions(**{"base_url": base_url, **quick, **options}))


def ask(asked: OpenAIEngine, request: TextRequest = REQUEST) -> TextReply:
    async def run() -> TextReply:
        try:
            return await asked.reply(request)
        finally:
            await asked.aclose()

    return asyncio.run(run())


def failed(fault: Any, words: str, **options: Any) -> tuple[str, int]:
    """What an engine says when every request is answered by a fault, and how often it asked."""
    with openai_server(lambda chat: "x", lambda number, body: fault) as server:
        with pytest.raises(ServerError, match=words) as caught:
            ask(engine(server.base_url, **options))
        return str(caught.value), len(server.requests)


def status(code: int, error: Any = "busy", headers: dict[str, str] | None = None, **more: Any) -> Any:
    def fault(handler: Handler, body: Any) -> bool:
        handler.json(code, {"error": error if isinstance(error, str) else {**error, **more}}, headers)
        return True

    return fault


def hang_up(handler: Handler, body: Any) -> bool:
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)
    return True


def sends(
    content: bytes, kind: str = "application/json", headers: dict[str, str] | None = None, code: int = 200
) -> Any:
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


half_an_answer = sends(b'{"choices": [{"message"', headers={"Content-Length": "500"})
nonsense = sends(b'{"choices": []}')


def half_a_stream(handler: Handler, body: Any) -> bool:
    handler.stream("a reply that is longer than three pieces of eight letters", {}, up_to=3)
    return True


def test_what_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with openai_server(lambda chat: "three words here") as server:
        reply = ask(engine(server.base_url, body={"top_p": 0.9}))
    assert reply == TextReply("three words here", 2, 3)
    asked = {"model": "m", "messages": [{"role": "user", "content": "one two"}], "temperature": 0.3, "seed": 5}
    assert server.requests == [{**asked, "max_tokens": 7, "top_p": 0.9}]
    assert server.headers[0]["Authorization"] == "Bearer sk-secret"


@pytest.mark.parametrize("stream", [False, True])
def test_a_streamed_reply_is_the_same_and_without_a_key_none_is_sent(
    stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with openai_server(lambda chat: "une réponse, plus longue\nque huit lettres \u2028 €") as server:
        reply = ask(engine(server.base_url, stream=stream))
    assert reply == TextReply("une réponse, plus longue\nque huit lettres \u2028 €", 2, 8)
    assert bool(server.requests[0].get("stream")) is stream
    assert "Authorization" not in server.headers[0]


@pytest.mark.parametrize(
    "fault",
    [
        status(429, headers={"Retry-After": "0"}),
        *(status(code) for code in (408, 409, 425, 429, 500, 502, 503, 529)),
        hang_up,
        half_an_answer,
        half_a_stream,
        nonsense,
    ],
)
def test_what_may_pass_is_tried_again(fault: Any) -> None:
    with openai_server(lambda chat: "x", lambda number, body: fault if number < 3 else None) as server:
        asked = engine(server.base_url)
        assert ask(asked).text == "x"
    assert len(server.requests) == 3
    assert asked.repeated == 2
    assert server.requests[0] == server.requests[2]


@pytest.mark.parametrize(
    ("fault", "words", "asked"),
    [
        (status(500, "on fire"), r"4 tries.*status 500: on fire.*same command again", 4),
        (status(401, "bad key"), "status 401: bad key", 1),
        (status(429, {"message": "pay first", "code": "insufficient_quota"}), "pay first", 1),
    ],
)
def test_it_gives_up_in_words_and_tries_no_refusal_again(fault: Any, words: str, asked: int) -> None:
    assert failed(fault, words)[1] == asked


@pytest.mark.parametrize(
    "error",
    [
        {"message": "too long", "code": "context_length_exceeded"},
        {"message": "This model's maximum context length is 4096 tokens"},
        {"message": "the request exceeds the available context size"},
    ],
)
def test_a_full_context_is_no_failure_of_the_server(error: dict[str, str]) -> None:
    with (
        openai_server(lambda chat: "x", lambda number, body: status(400, error)) as server,
        pytest.raises(ContextFullError),
    ):
        ask(engine(server.base_url))


def test_a_key_is_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret")
    for fault in (status(401, "Incorrect key: sk-secret"), status(500, "sk-secret")):
        said, _ = failed(fault, r"\[key\]", key_variable="MY_KEY", retries=0)
        assert "sk-secret" not in said


def test_the_budget_stops() -> None:
    with openai_server(lambda chat: "x") as server:
        asked = engine(server.base_url, token_budget=5)  # a request takes 2 + 1 tokens
        assert ask(asked).completion_tokens == 1
        ask(asked)
        with pytest.raises(ServerError, match="budget of 5 tokens"):
            ask(asked)
    assert asked.spent_tokens == 6
    assert len(server.requests) == 2
    assert ServerOptions(input_price=2.0, output_price=10.0).cost(1_000_000, 500_000) == 7.0
    assert ServerOptions(input_price=2.0).cost(1, 1) is None


def test_a_budget_needs_a_server_that_counts() -> None:
    uncounted = sends(b'{"choices": [{"message": {"content": "x"}}]}')
    with openai_server(lambda chat: "x", lambda number, body: uncounted) as server:
        assert ask(engine(server.base_url)).prompt_tokens == 0
        with pytest.raises(ServerError, match="counts no tokens"):
            ask(engine(server.base_url, token_budget=5))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"api_key": "sk-secret"}, ConfigError),
        ({"base_ulr": "http://x/v1"}, UnknownNameError),
        ({"base_url": "x/v1"}, ConfigError),
        ({"base_url": "http://user:word@x/v1"}, ConfigError),
        ({"base_url": "http://x/v1?key=1"}, ConfigError),
        ({"timeout": 0}, ConfigError),
    ],
)
def test_options_are_checked(options: dict[str, Any], error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(error) as caught:
        ServerOptions.of(options)
    assert "sk-secret" not in str(caught.value)
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(ConfigError, match="MY_KEY"):
        ServerOptions(key_variable="MY_KEY").key()


def test_it_answers_in_words_and_cannot_train() -> None:
    spec = engine_spec("openai")
    for make in (spec.for_trainer, spec.for_checkpoint):
        with pytest.raises(ConfigError, match="words"):
            make(None)  # type: ignore[arg-type]
    assert spec.for_text is not None
    made = spec.for_text(TrainConfig(model="m", engine="openai", engine_options={"retries": 1}))
    assert isinstance(made, OpenAIEngine)
    assert (made.model, made.options.retries) == ("m", 1)
    assert isinstance(made, TextEngine)
    assert isinstance(FunctionEngine(None), TextEngine)  # type: ignore[arg-type]


class Clock:
    """Stands in for asyncio: sleeping moves its time."""

    def __init__(self) -> None:
        self.now = 100.0

    def get_running_loop(self) -> Any:
        return SimpleNamespace(time=lambda: self.now)

    async def sleep(self, seconds: float) -> None:
        self.now += max(0.0, seconds)


def test_requests_are_spaced_and_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(openai, "asyncio", clock)
    limiter, sent = RateLimiter(per_minute=120.0), []

    async def send() -> None:
        for number in range(4):
            await limiter.wait()
            sent.append(clock.now)
            if number == 1:
                limiter.hold(10.0)

    asyncio.run(send())
    assert sent == [100.0, 100.5, 110.5, 111.0]


STREAM = [{"choices": [{"delta": {"content": "a b"}}]}, {"choices": [{"delta": {}, "finish_reason": "length"}]}]


@given(st.text(), st.lists(st.integers(0, 40)), st.integers(0, 50))
def test_a_stream_is_read_whole_or_refused(text: str, cuts: list[int], end: int) -> None:
    places = sorted({min(cut, len(text)) for cut in cuts})
    pieces = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    parts: list[Any] = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    parts += [STREAM[1], {"choices": [], "usage": {}}]
    assert client.read_reply(parts) == TextReply(text)
    if end < len(parts) - 1:
        with pytest.raises(ValueError, match="ends before"):
            client.read_reply(parts[:end])


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thoughts_that_a_server_takes_apart_are_put_together_again(field: str) -> None:
    whole = {"choices": [{"message": {field: "Where?", "content": "<action>look</action>"}}]}
    assert client.read_reply(whole).text == "<think>Where?</think><action>look</action>"
    deltas = [{field: "Whe", "content": None}, {field: "re?"}, {"content": "<action>look"}, {"content": "</action>"}]
    parts: list[Any] = [{"choices": [{"delta": delta}]} for delta in deltas]
    assert client.read_reply([*parts, STREAM[1]]).text == "<think>Where?</think><action>look</action>"


USED = {"prompt_tokens": 1, "completion_tokens": 1}
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
        json.dumps({"choices": [{"message": {"content": "x"}}], "usage": {**USED, "prompt_tokens": count}}).encode()
        for count in (-1, 1e999, float("nan"), 10**15, "many", True, [])
    ),
]


@pytest.mark.parametrize("content", HOSTILE)
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", "text/html"])
def test_an_answer_of_another_form_is_tried_again_and_told_in_one_way(content: bytes, kind: str) -> None:
    assert failed(sends(content, kind), "in 2 tries", retries=1, stream=kind == "text/event-stream")[1] == 2


@pytest.mark.parametrize("packed", [False, True])
def test_an_answer_without_end_is_not_read(packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_ANSWER_BYTES", 10_000)
    content = json.dumps({"choices": [{"message": {"content": "x" * 20_000}}]}).encode()
    how = {"Content-Encoding": "gzip"} if packed else {}
    failed(sends(gzip.compress(content) if packed else content, headers=how), "more than 10,000 bytes", retries=0)


def test_an_event_of_many_lines_costs_no_minutes() -> None:
    started = time.process_time()
    failed(sends(b"data: a\n" * 100_000, "text/event-stream"), "lines", retries=0, stream=True)
    assert time.process_time() - started < 2


@pytest.mark.parametrize("charset", ["zlib", "utf-16", "idna", "none-such"])
def test_a_charset_that_is_none_of_text_ends_nothing(charset: str) -> None:
    failed(sends(b"{}", f"application/json; charset={charset}", code=500), "status 500", retries=1)


def test_what_a_server_says_is_cut_and_steers_no_terminal() -> None:
    said, _ = failed(status(400, "\x1b[2J\u202e" + "long " * 10_000), "status 400")
    assert said.isprintable()
    assert len(said) < 500


def test_an_address_without_a_server_is_told_soon() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(ServerError, match="in 3 tries"):
        ask(engine(address, retries=8))


def test_packed_answers_are_read_and_unknown_packings_refused() -> None:
    content = json.dumps({"choices": [{"message": {"content": "x"}}]}).encode()
    faults = [sends(gzip.compress(content), headers={"Content-Encoding": "gzip"})]
    faults += [sends(content, headers={"Content-Encoding": name}) for name in ("gzip", "br")]
    faults += [sends(gzip.compress(content)[:-9], headers={"Content-Encoding": "gzip"})]
    with openai_server(lambda chat: "x", lambda number, body: faults[number - 1]) as server:
        assert ask(engine(server.base_url)).text == "x"
        for words in ("cannot be unpacked", "encoding br", "does not end"):
            with pytest.raises(ServerError, match=words):
                ask(engine(server.base_url, retries=0))


@pytest.mark.parametrize(("key", "sent"), [(" sk-secret\n", "Bearer sk-secret"), ("sk-\u20ac", None), ("sk-\n1", None)])
def test_a_key_is_looked_at_before_anything_is_sent(
    key: str, sent: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with openai_server(lambda chat: "x") as server:
        if sent is None:
            with pytest.raises(ConfigError, match="OPENAI_API_KEY") as caught:
                engine(server.base_url)
            assert "sk-" not in str(caught.value)
        else:
            ask(engine(server.base_url))
            assert server.headers[0]["Authorization"] == sent


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2.5", 2.5),
        ("-1", 0.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        *((text, None) for text in ("soon", "", "inf", "nan", "Wed, 21 Oct 99999999 07:28:00 GMT")),
    ],
)
def test_retry_after_is_read(text: str, seconds: float | None) -> None:
    assert client.retry_after({"retry-after": text}) == seconds


def test_a_server_may_not_ask_for_more_patience_than_there_is() -> None:
    fault = status(429, headers={"Retry-After": "1e9"})
    with openai_server(lambda chat: "x", lambda number, body: fault if number == 1 else None) as server:
        assert ask(engine(server.base_url, longest_wait=0.01)).text == "x"

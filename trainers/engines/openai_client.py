"""One request to a server through the package openai: whatever comes back is bounded, and read strictly."""

from __future__ import annotations

import asyncio
import email.utils
import json
import math
import re
import time
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC
from typing import Any, NoReturn

import httpx
import openai

from skillc_gym.errors import ServerError
from skillc_gym.wrappers.action_format import with_thoughts
from trainers.engines.openai_options import ServerOptions
from trainers.engines.text import ContextFullError, TextReply, TextRequest, TransientError

MAX_ANSWER_BYTES = 16 * 2**20
"""Longest answer, as it comes and unpacked; a reply of a hundred thousand tokens has a tenth of it."""

_TRANSIENT = frozenset({408, 409, 425, 429})
"""Statuses below 500 that pass by themselves."""
_MOST_TOKENS = 10**12
_THOUGHTS = ("reasoning_content", "reasoning")
"""Fields in which servers give thoughts."""
_CONTEXT = re.compile(
    r"context[ _]?(?:length|size|window)|maximum (?:context|prompt length)|too many tokens|exceeds? the .*context"
    r"|(?:prompt|input) is too long|input token count.*exceeds|max_new_tokens.{0,3} must be <=",
    re.I,
)
"""How vLLM, llama.cpp, TGI, LiteLLM and the large services say that a chat is too long."""


def _check_events(content: bytes) -> None:
    """Refuses an event of very many lines: what reads streams copies all of an event for each of its lines."""
    if any(event.count(b"\n") + event.count(b"\r") > _MOST_LINES for event in _EVENT_ENDS.split(content)):
        raise httpx.RemoteProtocolError(f"an event of more than {_MOST_LINES} lines")


_EVENT_ENDS = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_MOST_LINES = 100
_REPLACED = ("content-encoding", "content-length", "content-type", "transfer-encoding")
_UNREADABLE = (openai.OpenAIError, ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError)
"""What reading an answer of another form ends in."""


class BoundedClient(httpx.AsyncClient):  # type: ignore[misc]
    """Reads every answer as a whole, none longer than :data:`MAX_ANSWER_BYTES`, and of ``streams`` no endless event."""

    def __init__(self, *, streams: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self._streams = streams

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Sends a request; an httpx.RemoteProtocolError for what is too long, or packed in a way nobody asked for."""
        answer = await super().send(request, **{**options, "stream": True})
        try:
            packed = bytearray()
            async for part in answer.aiter_raw():
                packed += part
                self._check(packed)
        finally:
            await answer.aclose()
        kept = [(name, value) for name, value in answer.headers.multi_items() if name.lower() not in _REPLACED]
        # JSON and streams of events are UTF-8; other codecs that an answer may name are no codecs of text.
        kind = answer.headers.get("content-type", "application/json").partition(";")[0]
        content = self._unpacked(bytes(packed), answer.headers.get("content-encoding", "identity"))
        if self._streams and answer.is_success:
            _check_events(content)
        headers = [*kept, ("content-type", f"{kind}; charset=utf-8")]
        return httpx.Response(answer.status_code, headers=headers, content=content, request=request)

    def _unpacked(self, packed: bytes, how: str) -> bytes:
        if how.lower() in ("", "identity"):
            return packed
        if how.lower() not in ("gzip", "deflate"):
            raise httpx.RemoteProtocolError(f"an answer in the encoding {_plain(how)}")
        try:
            # Never more is unpacked than is allowed: a kilobyte may stand for a gigabyte.
            unpacking = zlib.decompressobj(zlib.MAX_WBITS | 32)
            content = unpacking.decompress(packed, MAX_ANSWER_BYTES + 1)
        except zlib.error as error:
            raise httpx.RemoteProtocolError(f"an answer that cannot be unpacked ({error})") from error
        self._check(content)
        if not unpacking.eof or unpacking.unused_data:
            raise httpx.RemoteProtocolError("an answer whose packing does not end where it does")
        return content

    @staticmethod
    def _check(content: bytes | bytearray) -> None:
        if len(content) > MAX_ANSWER_BYTES:
            raise httpx.RemoteProtocolError(f"an answer of more than {MAX_ANSWER_BYTES:,} bytes")


class ServerClient:
    """Asks a server once; the key is sent with every request, and cut out of whatever the server says."""

    def __init__(self, model: str, options: ServerOptions, key: str | None) -> None:
        self._model, self._options, self._key = model, options, key
        self._client: openai.AsyncOpenAI | None = None

    async def ask(self, request: TextRequest) -> TextReply:
        """Sends a request and reads the answer; a TransientError for what may pass, other errors as of TextEngine."""
        options = self._options
        # Usage comes with the last piece of a stream, and only if it is asked for.
        streamed: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}} if options.stream else {}
        # An organisation and a project of the environment are OpenAI's affair, not that of any server.
        absent = ["OpenAI-Organization", "OpenAI-Project", *(["Authorization"] if self._key is None else [])]
        try:
            async with asyncio.timeout(options.deadline):
                answer = await self._open().chat.completions.create(
                    model=self._model,
                    messages=list(request.messages),
                    temperature=request.temperature,
                    seed=request.seed,
                    extra_headers={name: openai.Omit() for name in absent},
                    extra_body={options.max_tokens_field: request.max_tokens, **options.body},
                    **streamed,
                )
                if options.stream:
                    return read_reply([part.to_dict(warnings=False) async for part in answer])
                whole = answer.to_dict(warnings=False)
                if isinstance(told := whole.get("error"), Mapping):
                    self._refuse_told(told)
                return read_reply(whole)
        except openai.APIStatusError as error:
            self._refuse(error.response)
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            reached = not isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout)
            raise TransientError(self._clean(f"{type(cause).__name__}: {cause}"), reached=reached) from error
        except TimeoutError as error:
            raise TransientError(f"no whole answer in {options.deadline:g} seconds") from error
        except _UNREADABLE as error:
            if isinstance(error, openai.APIError) and isinstance(error.body, Mapping):
                self._refuse_told(error.body)
            said = self._clean(f"{type(error).__name__}: {error}")
            raise TransientError(f"an answer that cannot be read ({said})") from error

    async def aclose(self) -> None:
        """Closes the connections; the next request opens them again."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _open(self) -> openai.AsyncOpenAI:
        if self._client is None:
            self._client = openai.AsyncOpenAI(
                api_key=self._key or "none",
                base_url=self._options.base_url.rstrip("/") + "/",
                max_retries=0,
                default_headers={"Accept-Encoding": "gzip"},
                http_client=BoundedClient(
                    streams=self._options.stream,
                    timeout=httpx.Timeout(self._options.timeout, pool=None),
                    limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
                ),
            )
        return self._client

    def _refuse(self, answer: httpx.Response) -> NoReturn:
        message, code = _said_in_error(answer.text)
        words = self._clean(f"status {answer.status_code}: {message or 'no reason given'}")
        if answer.status_code in (400, 413, 422) and _tells_of_length(message, code):
            raise ContextFullError(words)
        if code != "insufficient_quota" and (answer.status_code in _TRANSIENT or answer.status_code >= 500):
            raise TransientError(words, retry_after(answer.headers))
        raise ServerError(f"{self._options.base_url} refuses the model {self._model!r}: {words}")

    def _refuse_told(self, error: Mapping[str, Any]) -> NoReturn:
        """An error that comes with status 200, since the model had begun: as if it had the status that it names."""
        code = str(error.get("code"))
        number = int(code) if code.isdecimal() and len(code) == 3 else 0
        unnamed = 400 if _tells_of_length(str(error.get("message")), code) else 500
        status = number if 400 <= number < 600 else unnamed
        self._refuse(httpx.Response(status, json={"error": error}))

    def _clean(self, words: str) -> str:
        """What a server said, for a message: without the key, cut, and without what would steer a terminal."""
        return _plain(words.replace(self._key, "[key]") if self._key else words)


def read_reply(answer: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> TextReply:
    """Reads a completion, or the pieces of a stream; errors of many kinds (``_UNREADABLE``) for what is none."""
    if isinstance(answer, Mapping):
        choice = answer["choices"][0]
        _require_whole(choice)
        return _reply(choice["message"], answer.get("usage"))
    choices = [choice for piece in answer for choice in piece.get("choices") or () if choice.get("index", 0) == 0]
    if not any(choice.get("finish_reason") for choice in choices):
        raise ValueError("the stream ends before its reply does")
    for choice in choices:
        _require_whole(choice)
    usage = next((piece["usage"] for piece in reversed(answer) if piece.get("usage")), None)
    deltas = [choice.get("delta") or {} for choice in choices]
    said = {name: "".join(delta.get(name) or "" for delta in deltas) for name in (*_THOUGHTS, "content")}
    return _reply(said, usage)


_BROKEN_OFF = ("error", "abort", "insufficient_system_resource")
"""Of gateways, of vLLM, of DeepSeek's service."""


def _require_whole(choice: Mapping[str, Any]) -> None:
    """Gateways give half a reply where the model behind them fails."""
    if choice.get("error") or choice.get("finish_reason") in _BROKEN_OFF:
        raise ValueError(f"the server broke the reply off: {str(choice.get('error') or choice['finish_reason'])[:200]}")


def _reply(message: Mapping[str, Any], usage: Mapping[str, Any] | None) -> TextReply:
    """A reply in one text: servers that parse thoughts take them, tags and all, out of the content."""
    thoughts = next((message[name] for name in _THOUGHTS if message.get(name)), None)
    said = message.get("content") or ""
    if not isinstance(said, str) or not isinstance(thoughts, str | None):
        raise TypeError("a reply that is no text")
    text = with_thoughts(said, thoughts)
    # Half a surrogate pair is no text: the next request could not quote it.
    text.encode()
    read, written = (_tokens((usage or {}).get(name)) for name in ("prompt_tokens", "completion_tokens"))
    return TextReply(text, read, written)


def _tokens(count: Any) -> int:
    """A count of tokens; 0 where the server does not count."""
    if count is None:
        return 0
    if isinstance(count, bool) or not isinstance(count, int | float) or not 0 <= count <= _MOST_TOKENS:
        raise ValueError("a count of tokens that cannot be")
    return int(count)


def _said_in_error(text: str) -> tuple[str, str]:
    """Message and code of an error answer; the text itself if it is none of OpenAI's form."""
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        error = json.loads(text)["error"]
        if isinstance(error, Mapping):
            return str(error.get("message", "")), str(error.get("code") or error.get("type") or "")
        return str(error), ""
    return text.strip(), ""


def _tells_of_length(message: str, code: str) -> bool:
    """Whether an error says that the chat is too long for the model."""
    return code == "context_length_exceeded" or bool(_CONTEXT.search(message[:10_000]))


def _plain(words: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in words[:300])


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait: ``Retry-After`` in seconds or as a date (RFC 9110, 10.2.3)."""
    text = headers.get("retry-after") or ""
    with suppress(ValueError):
        return max(0.0, float(text)) if math.isfinite(float(text)) else None
    with suppress(TypeError, ValueError, OverflowError):
        when = email.utils.parsedate_to_datetime(text)  # without a zone for "-0000", which is UTC
        return max(0.0, (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - time.time())
    return None

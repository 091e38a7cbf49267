"""Requests and answers of OpenAI's chat completions: pure functions between our words and the server's."""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from trainers.engines.openai_options import ServerOptions
from trainers.engines.text import TextReply, TextRequest

__all__ = ["BrokenReplyError", "parse_reply", "request_body", "retry_after", "said_in_error", "says_context_is_full"]

_THOUGHTS = ("reasoning_content", "reasoning")
"""Fields in which servers give thoughts."""

_CONTEXT = re.compile(r"context[ _](?:length|size|window)|maximum context|too many tokens|exceeds? the .*context", re.I)


class BrokenReplyError(ValueError):
    """An answer that is no reply, or ends in the middle."""


def request_body(model: str, request: TextRequest, options: ServerOptions) -> dict[str, Any]:
    """The JSON of a request."""
    streamed = {"stream": True, "stream_options": {"include_usage": True}} if options.stream else {}
    return {
        "model": model,
        "messages": list(request.messages),
        "temperature": request.temperature,
        "seed": request.seed,
        options.max_tokens_field: request.max_tokens,
        **streamed,
        **options.body,
    }


def parse_reply(text: str, content_type: str) -> TextReply:
    """Reads an answer, whole or streamed.

    Raises:
        BrokenReplyError: It is neither; or a stream that ends before its reply does.
    """
    try:
        return _streamed(text) if "event-stream" in content_type else _whole(json.loads(text))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise BrokenReplyError(f"{type(error).__name__}: {error}") from error


def _whole(answer: Mapping[str, Any]) -> TextReply:
    choice = answer["choices"][0]
    return _reply(_said(choice["message"]), answer.get("usage"), choice.get("finish_reason"))


def _streamed(text: str) -> TextReply:
    # Not splitlines: a reply may hold any of the other line separators unescaped.
    lines = [line.strip() for line in text.split("\n") if line.startswith("data:")]
    events = [json.loads(line[len("data:") :]) for line in lines if line != "data: [DONE]"]
    broken = next((event["error"] for event in events if "error" in event), None)
    if broken is not None:
        raise BrokenReplyError(f"the server broke off: {broken}")
    choices = [choice for event in events for choice in event.get("choices") or () if choice.get("index", 0) == 0]
    reason = next((choice["finish_reason"] for choice in choices if choice.get("finish_reason")), None)
    if reason is None:
        raise BrokenReplyError("the stream ends before its reply does")
    usage = next((event["usage"] for event in reversed(events) if event.get("usage")), None)
    deltas = [choice.get("delta") or {} for choice in choices]
    return _reply(_said({name: _joined(deltas, name) for name in (*_THOUGHTS, "content")}), usage, reason)


def _said(message: Mapping[str, Any]) -> str:
    """A reply in one text: servers that parse thoughts take them, tags and all, out of the content."""
    thoughts = next((message[name] for name in _THOUGHTS if message.get(name)), None)
    said = str(message.get("content") or "")
    return said if thoughts is None else f"<think>{thoughts}</think>{said}"


def _joined(deltas: Sequence[Mapping[str, Any]], name: str) -> str:
    return "".join(delta.get(name) or "" for delta in deltas)


def _reply(text: str, usage: Mapping[str, Any] | None, reason: str | None) -> TextReply:
    counted = usage or {}
    read, written = (int(counted.get(name) or 0) for name in ("prompt_tokens", "completion_tokens"))
    return TextReply(text, read, written, reason or "stop")


def said_in_error(text: str) -> tuple[str, str]:
    """Message and code of an error answer; the beginning of the text if it is none of OpenAI's form."""
    try:
        error = json.loads(text)["error"]
        if isinstance(error, Mapping):
            return str(error.get("message", "")), str(error.get("code") or error.get("type") or "")
        return str(error), ""
    except (ValueError, KeyError, TypeError):
        return text.strip()[:300], ""


def says_context_is_full(message: str, code: str) -> bool:
    """Whether an error says that the prompt is too long; servers have a code for it or say so in words."""
    return code == "context_length_exceeded" or bool(_CONTEXT.search(message))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait: ``Retry-After`` in seconds or as a date (RFC 9110, 10.2.3)."""
    text = headers.get("retry-after")
    if not text:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError):
        return None

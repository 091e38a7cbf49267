"""A server of OpenAI's chat completions on the loopback interface, scripted, with faults on request."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Policy = Callable[[Sequence[Mapping[str, Any]]], str]
Fault = Callable[["Handler", Mapping[str, Any]], bool]
"""Answers a request wrongly and returns True, or leaves it alone."""
Faults = Callable[[int, Mapping[str, Any]], Fault | None]
"""What is wrong with a request, by its number (from 1) and body."""


@dataclass
class Server:
    """What a test sees of the server."""

    base_url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    """Bodies of all requests, in the order of their arrival; those of faults too."""
    headers: list[dict[str, str]] = field(default_factory=list)
    most_at_once: int = 0
    """Requests that clients waited for at one time."""


class Handler(BaseHTTPRequestHandler):
    """Answers POST /v1/chat/completions."""

    protocol_version = "HTTP/1.1"
    server: _Listener

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        state = self.server.state
        with self.server.lock:
            state.requests.append(body)
            state.headers.append(dict(self.headers))
            self.server.waiting.add(self)
            state.most_at_once = max(state.most_at_once, sum(each.is_awaited() for each in self.server.waiting))
            number = len(state.requests)
        try:
            time.sleep(self.server.delay)
            fault = self.server.faults(number, body)
            if fault is None or not fault(self, body):
                self._answer(body)
        finally:
            with self.server.lock:
                self.server.waiting.discard(self)

    def is_awaited(self) -> bool:
        """Whether the client still waits for the answer; one that gave up has hung up."""
        try:
            return self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def send_response(self, code: int, message: str | None = None) -> None:
        # The client may ask again as soon as it has read this, before the handler is through.
        with self.server.lock:
            self.server.waiting.discard(self)
        super().send_response(code, message)

    def _answer(self, body: Mapping[str, Any]) -> None:
        text = self.server.policy(body["messages"])
        usage = {"prompt_tokens": sum(len(m["content"].split()) for m in body["messages"])}
        usage["completion_tokens"] = len(text.split())
        usage["total_tokens"] = sum(usage.values())
        if body.get("stream"):
            self.stream(text, usage)
            return
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        common = {"id": "c1", "object": "chat.completion", "created": 0, "model": body["model"]}
        self.json(200, {**common, "choices": [choice], "usage": usage})

    def json(self, status: int, value: Any, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {**(headers or {}), "Content-Type": "application/json"}.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, text: str, usage: Mapping[str, int], *, up_to: int | None = None) -> None:
        """Sends a reply in pieces of eight letters; the connection is closed after ``up_to`` pieces."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        pieces = [text[i : i + 8] for i in range(0, len(text), 8)]
        for number, piece in enumerate(pieces):
            if number == up_to:
                return
            self._event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": piece}}]})
        self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        self._event({"choices": [], "usage": dict(usage)})
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, value: Mapping[str, Any]) -> None:
        common = {"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": "scripted"}
        self.wfile.write(b"data: " + json.dumps({**common, **value}).encode() + b"\n\n")
        self.wfile.flush()

    def log_message(self, *_args: Any) -> None:
        """Says nothing."""


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, policy: Policy, faults: Faults, delay: float, port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.policy, self.faults, self.delay = policy, faults, delay
        self.state = Server(f"http://127.0.0.1:{self.server_address[1]}/v1")
        self.lock, self.waiting = threading.Lock(), set[Handler]()


@contextmanager
def openai_server(
    policy: Policy, faults: Faults = lambda number, body: None, delay: float = 0.0, port: int = 0
) -> Iterator[Server]:
    """Serves while the context is open; answers after ``delay`` seconds, on a free port where none is named."""
    server = _Listener(policy, faults, delay, port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server.state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

"""Who is let in: which callers are turned away before anything is looked at, and tickets that name episodes."""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import urlsplit

__all__ = ["AGENT", "HEADERS", "LOOPBACK", "PERSON", "Guard", "Ticket", "TicketIssuer"]

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
"""Names by which a site on this machine is called."""
_POLICY = (
    "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; form-action 'self'; frame-src 'self'; "
    "frame-ancestors 'self'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), browsing-topics=()",
}
"""Sent with every answer."""
_RAW = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
AGENT, PERSON = "a", "p"
_MAC_BYTES = 10
_LONGEST = 80

Message = MutableMapping[str, Any]
App = Callable[[Any, Any, Any], Awaitable[None]]


class Guard:
    """Turns away requests under a foreign name or from a foreign page, and adds `HEADERS` to every answer.

    A page elsewhere can make a visitor's browser call this site under a name of its own, or send it forms; neither
    gets through.

    Args:
        app: What answers the others.
        hosts: Names by which the site may be called; None for any.
    """

    def __init__(self, app: App, hosts: frozenset[str] | None) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_RAW]
            await send(message)

        refused = self._refused(scope)
        if refused is None:
            await self._app(scope, receive, guarded)
            return
        await guarded({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": refused.encode()})

    def _refused(self, scope: Any) -> str | None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host, origin = headers.get(b"host", ""), headers.get(b"origin")
        if self._hosts is not None and _name(f"//{host}") not in self._hosts:
            return "This site is not called by that name; see --allow-host.\n"
        if scope["method"] not in ("GET", "HEAD") and origin is not None and origin != f"{scope['scheme']}://{host}":
            return "Forms come from this site's own pages only.\n"
        return None


def _name(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


class Ticket(NamedTuple):
    """What a ticket says: who plays, `AGENT` or `PERSON` (who sees the parts of the score), and the goal's index."""

    audience: str
    task: int


class TicketIssuer:
    """Issues and reads tickets. It remembers nothing: who knows the secret reads all tickets issued with it.

    Args:
        secret: Signs tickets; a random one by default, so that tickets end with the site.
    """

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = secrets.token_bytes(32) if secret is None else secret

    def issue(self, task: int, audience: str = AGENT) -> str:
        """Returns a new ticket for a task, in letters, digits and hyphens; a nonce tells those of one task apart."""
        return self._signed(f"{audience}{task}-{secrets.token_hex(5)}")

    def read(self, name: str) -> Ticket | None:
        """Reads a ticket; None for one that was not issued here."""
        said, _, _ = name.rpartition("-")
        if len(name) > _LONGEST or not name.isascii() or not hmac.compare_digest(self._signed(said), name):
            return None
        return Ticket(said[0], int(said[1:].partition("-")[0]))

    def _signed(self, said: str) -> str:
        mac = hmac.new(self._secret, said.encode(), sha256).digest()[:_MAC_BYTES]
        return f"{said}-{base64.b32encode(mac).decode().lower()}"

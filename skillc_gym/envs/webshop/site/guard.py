"""What every answer of the site is sent with, and which callers are turned away before anything is looked at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

__all__ = ["HEADERS", "LOOPBACK", "Guard"]

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

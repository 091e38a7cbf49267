"""Who is let in: which callers are turned away before anything is looked at, tokens, and tickets that name episodes."""

from __future__ import annotations

import base64
import hmac
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from hashlib import sha256
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from skillc_gym.errors import ConfigError

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
AGENT, PERSON, UPSTREAM = "a", "p", "u"
_MAC_BYTES = 10
_LONGEST = 80
_TOKEN = re.compile(r"[A-Za-z0-9_-]{8,200}")
_COOKIE = "shop-token"
_LONGEST_ADDRESS = 1 << 16
"""Addresses hold whole queries: this is room for one of 4,096 letters of any alphabet."""
_FREE = re.compile(r"/e/|/static/|/picture\Z")
"""Behind these nobody asks for the token: whoever knows an episode's ticket has been let in, and the rest is drawn."""

Message = MutableMapping[str, Any]
App = Callable[[Any, Any, Any], Awaitable[None]]
Answer = tuple[int, list[tuple[bytes, bytes]], str]
_PLAIN = [(b"content-type", b"text/plain")]


def is_loopback(host: str) -> bool:
    """Tells whether only this machine can come to an address."""
    try:
        return host in LOOPBACK or ip_address(host).is_loopback
    except ValueError:
        return False


def chosen_token(asked: str, host: str) -> str | None:
    """Returns the token of a site that listens on ``host``: see `open_site`; ConfigError if no address can hold it."""
    if asked == "auto":
        return None if is_loopback(host) else secrets.token_urlsafe(16)
    if asked == "none":
        return None
    if not _TOKEN.fullmatch(asked):
        raise ConfigError("A token has at least 8 letters, digits, hyphens or underscores; or it is 'auto' or 'none'.")
    return asked


class Guard:
    """Turns away requests under a foreign name, of a foreign page or without the token; adds `HEADERS` to answers.

    A page elsewhere can make a visitor's browser call this site under a name of its own, or send it forms; neither gets
    through. The token may come as ``?token=...``, which leaves a cookie, or as ``Authorization: Bearer ...``. ``hosts``
    and ``token`` are None where any name may call, and nothing must be known.
    """

    def __init__(self, app: App, hosts: frozenset[str] | None, token: str | None = None) -> None:
        self._app, self._hosts, self._token = app, hosts, token
        # Browsers keep cookies by name whatever the port, and there may be two sites on a machine.
        self._cookie = f"{_COOKIE}-{sha256((token or '').encode()).hexdigest()[:8]}"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_RAW]
            await send(message)

        turned_away = self._turned_away(scope)
        if turned_away is None:
            await self._app(scope, receive, guarded)
            return
        status, headers, said = turned_away
        await guarded({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": said.encode()})

    def _turned_away(self, scope: Any) -> Answer | None:
        """What is answered to a caller that goes no further."""
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host, origin = headers.get(b"host", ""), headers.get(b"origin")
        if self._hosts is not None and _name(f"//{host}") not in self._hosts:
            return 403, _PLAIN, "This site is not called by that name; see --allow-host.\n"
        if max(len(scope["query_string"]), len(scope["path"])) > _LONGEST_ADDRESS:
            return 414, _PLAIN, "That address is too long.\n"
        if scope["method"] not in ("GET", "HEAD") and origin is not None and origin != f"{scope['scheme']}://{host}":
            return 403, _PLAIN, "Forms come from this site's own pages only.\n"
        return None if self._token is None or _FREE.match(scope["path"]) else self._without_token(scope, headers)

    def _without_token(self, scope: Any, headers: Mapping[bytes, str]) -> Answer | None:
        if self._knows(scope["query_string"].decode("latin-1").removeprefix("token=")):
            cookie = f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Lax"
            here = quote(f"/{scope['path'].lstrip('/')}").encode()  # two slashes would lead to another site
            return 303, [(b"location", here), (b"set-cookie", cookie.encode())], ""
        cookies = [one.strip().removeprefix(f"{self._cookie}=") for one in headers.get(b"cookie", "").split(";")]
        if any(map(self._knows, [headers.get(b"authorization", "").removeprefix("Bearer "), *cookies])):
            return None
        return 401, _PLAIN, "This site has a token: open the address that it printed when it started.\n"

    def _knows(self, said: str) -> bool:
        return hmac.compare_digest(said.encode(), (self._token or "").encode())


def _name(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


class Ticket(NamedTuple):
    """What a ticket says: who plays, `AGENT`, `PERSON` or `UPSTREAM` (upstream's own agents), and the goal's index."""

    audience: str
    task: int


class TicketIssuer:
    """Issues and reads tickets, signed with a random secret, which ends with the site; it remembers nothing."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

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

"""What a site bears: so many connections, so long for a request and its answer, so many lines in its log."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from uvicorn import Server
from uvicorn.protocols.http.h11_impl import H11Protocol

if sys.platform != "win32":
    import resource

SECONDS = 20.0
"""How long a visitor may take over a request, and over reading its answer."""
AT_ONCE = 16
"""Connections taken before any of them can be turned away: asyncio logs every one for which it has no file left."""
_MOST = 512
_WAITING = 2_048
_SITE = "skillc_gym.envs.webshop.site"
_NOISY = ("uvicorn.error", "asyncio", f"{_SITE}.app", f"{_SITE}.episodes")


class Connection(H11Protocol):
    """A connection that is cut when its request has not come, or its answer has not gone, in `SECONDS`.

    Beyond half the files that this process may open, whoever has kept the site waiting longest gives way to the newest:
    unfinished requests push out each other, and not those that are being answered.
    """

    # uvicorn narrows the transport's type in a way that asyncio's own protocol does not allow.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Starts the clock, and makes room."""
        super().connection_made(transport)
        self._start_clock()
        if len(self.connections) > _most_connections():
            kept = [one for one in self.connections if isinstance(one, Connection) and one.keeps_waiting]
            min(kept, key=lambda one: one.since).cut()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the clock."""
        self._clock.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Starts the clock again, for what is still to be read and the next request."""
        self._clock.cancel()
        self._start_clock()
        super().on_response_complete()

    @property
    def keeps_waiting(self) -> bool:
        """Whether the visitor has to do the next thing: send a request, or the rest of one."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def cut(self) -> None:
        """Ends the connection at once, whatever has not been sent or read."""
        self.connections.discard(self)
        self.transport.abort()

    def _start_clock(self) -> None:
        self.since = self.loop.time()
        self._clock = self.loop.call_later(SECONDS, self.cut)


class PatientServer(Server):
    """A server that takes few connections at once and lets many wait in the system's own queue."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts listening."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_WAITING)


def _most_connections() -> int:
    files = -1 if sys.platform == "win32" else resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MOST if files < 0 else min(_MOST, max(AT_ONCE, files // 2))


class Quiet(logging.Filter):
    """Lets so many lines through in a period; the first one after it says how many were left out."""

    def __init__(self, most: int = 20, seconds: float = 60.0) -> None:
        super().__init__()
        self._most, self._seconds = most, seconds
        self._since, self._lines = -seconds, 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Tells whether a line is written."""
        now = time.monotonic()
        if now - self._since >= self._seconds:
            if self._lines > self._most:
                record.msg, record.args = f"{record.getMessage()} ({self._lines - self._most:,} lines left out)", ()
            self._since, self._lines = now, 0
        self._lines += 1
        return self._lines <= self._most


@contextmanager
def quiet_log() -> Iterator[None]:
    """Keeps what visitors can make a server say within bounds."""
    quiet, loggers = Quiet(), [logging.getLogger(name) for name in _NOISY]
    for logger in loggers:
        logger.addFilter(quiet)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(quiet)

"""Putting a site together and running it: in a thread of this process, or until it is ended."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.envs.webshop.site.access import LOOPBACK, chosen_token, is_loopback
from skillc_gym.envs.webshop.site.episodes import Recording, replay_rows
from skillc_gym.envs.webshop.site.front import ShopFront
from skillc_gym.episodes import Episode
from skillc_gym.errors import ConfigError, EngineError, needs_extra

if TYPE_CHECKING:
    from uvicorn import Server

    from skillc_gym.envs.webshop.site.app import Site

_LONGEST_HEAD = 1 << 18
"""Longer than any address, so that one that is too long is answered in words."""
_START_SECONDS = 30


def open_site(
    shop: Mapping[str, Any],
    *,
    host: str = "127.0.0.1",
    names: Sequence[str] = (),
    token: str = "auto",
    record: Path | None = None,
    record_limit: int = 64,
    episodes: Sequence[Episode] = (),
    upstream_routes: bool = False,
) -> Site:
    """Makes a site.

    Args:
        shop: The arguments of `skillc_gym.envs.webshop.env.WebShopEnv`.
        host: Where the site will listen. On this machine alone, it answers to this machine's names only.
        names: Further names by which it may be called.
        token: What visitors must know: "auto" for a new one where others than this machine can come, "none" for
            nothing, or a text of your own; `Site.token` is what it came to.
        record: Where to keep what people do, as JSON lines.
        record_limit: How large that file may become, in MiB.
        episodes: Recorded episodes to show.
        upstream_routes: Whether ``/SESSION`` and ``/fixed_N`` open an episode as upstream's site does, with nothing on
            a page but what upstream's agents read.

    Raises:
        ConfigError: The episodes are of another shop, the file is full or cannot be written, or no address can hold
            the token.
    """
    from skillc_gym.envs.webshop.site.app import Site

    front = ShopFront(WebShopEnv(**{**shop, "observation_mode": "url"}))
    recording = None if record is None else Recording(record, front, WebShopEnv(**shop), limit=record_limit << 20)
    own = (host,) if is_loopback(host) else ()
    hosts = frozenset(name.lower() for name in (*LOOPBACK, *own, *names)) if own or names else None
    return Site(
        front,
        hosts=hosts,
        token=chosen_token(token, host),
        recording=recording,
        replays=replay_rows(episodes, front),
        upstream_routes=upstream_routes,
    )


def bound_socket(host: str, port: int) -> socket.socket:
    """Takes a port, 0 for any that is free; ConfigError if the address cannot be listened on."""
    if not 0 <= port < 1 << 16:
        raise ConfigError(f"A port is a number from 0, for any that is free, to 65535; got {port}.")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # By the named protocol asyncio knows that small answers need not wait for an acknowledgement.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen()  # visitors may come from now on; they wait until the server runs
    except OSError as error:
        raise ConfigError(f"The site cannot listen on {host}:{port} ({error}); choose another host or port.") from error
    return listener


def address_of_socket(listener: socket.socket) -> str:
    """Returns the address under which visitors find what listens there."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _server(site: Site) -> Server:
    with needs_extra("uvicorn", "browser"):
        import uvicorn

        from skillc_gym.envs.webshop.site.limits import AT_ONCE, Connection, PatientServer
    config = uvicorn.Config(
        site,
        http=Connection,
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=_LONGEST_HEAD,
        backlog=AT_ONCE,
        timeout_graceful_shutdown=1,
    )
    return PatientServer(config)


def serve(site: Site, listener: socket.socket) -> None:
    """Serves until the process is interrupted or terminated."""
    server = _server(site)
    from skillc_gym.envs.webshop.site.limits import quiet_log

    with quiet_log():
        server.run(sockets=[listener])


class ThreadedSite:
    """A site that a thread of this process serves on loopback until it is closed; EngineError if it does not start."""

    def __init__(self, site: Site, port: int = 0) -> None:
        self.site = site
        listener = bound_socket("127.0.0.1", port)
        self.url = address_of_socket(listener)
        self._server = _server(site)
        self._thread = threading.Thread(target=self._server.run, args=([listener],), name="webshop-site", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                self.close()
                listener.close()
                raise EngineError(f"The site did not start on {self.url}; its log says why.")
            time.sleep(0.002)

    @property
    def running(self) -> bool:
        """Whether visitors are answered."""
        return self._thread.is_alive() and self._server.started and not self._server.should_exit

    def close(self) -> None:
        """Ends the site."""
        self._server.should_exit = True
        with contextlib.suppress(RuntimeError):
            self._thread.join(timeout=5)

    def __enter__(self) -> ThreadedSite:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

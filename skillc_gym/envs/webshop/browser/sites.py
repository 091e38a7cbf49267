"""Where an environment's pages come from: a site that the environments of this process share, or one elsewhere."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Hashable, Mapping
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener
from weakref import WeakValueDictionary, finalize

from skillc_gym.envs.webshop.browser.tabs import SiteLostError
from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.envs.webshop.site.front import ShopFront
from skillc_gym.errors import ConfigError

__all__ = ["LocalSite", "RemoteSite", "ShopSite", "local_site"]

_SECONDS = 30


class LocalSite:
    """A site in a thread of this process; it is started when it is first needed."""

    def __init__(self, front: ShopFront) -> None:
        self.front = front
        self._lock = threading.Lock()
        self._running: Any = None
        self._owner = os.getpid()

    def episode(self, task: int) -> str:
        """Opens an episode; returns its address."""
        site = self._started()
        return f"{site.url}/e/{site.site.tickets.issue(task)}/"

    def _started(self) -> Any:
        from skillc_gym.envs.webshop.site.access import LOOPBACK
        from skillc_gym.envs.webshop.site.app import Site
        from skillc_gym.envs.webshop.site.server import ThreadedSite

        with self._lock:
            # A process that was forked has the object, but not the thread.
            if self._running is None or not self._running.running or self._owner != os.getpid():
                self._owner = os.getpid()
                self._running = ThreadedSite(Site(self.front, hosts=LOOPBACK))
                finalize(self, self._running.close)
            return self._running


_sites: WeakValueDictionary[Hashable, LocalSite] = WeakValueDictionary()
_sites_lock = threading.Lock()


def local_site(core: WebShopEnv) -> LocalSite:
    """Returns the site that the environments of this process share which show the same shop."""
    key = (core.catalog, core.goals, core.tagger, core.fixes, core.show_attributes, core.escape_markup)
    with _sites_lock:
        site = _sites.get(key)
        if site is None:
            site = _sites[key] = LocalSite(ShopFront(core))
        return site


class RemoteSite:
    """A site that somebody else runs, as ``skillc serve-webshop`` does.

    Args:
        url: Its address.
        front: The same shop in this process.

    Raises:
        ConfigError: It is no address, or what runs there is another shop.
        SiteLostError: Nobody answers.
    """

    def __init__(self, url: str, front: ShopFront) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"url= is an address such as http://127.0.0.1:3000, got {url!r}.")
        self.front, self.host = front, parts.hostname
        self._url = f"{parts.scheme}://{parts.netloc}"
        self._compare(self._asked("/about.json", None).get("shop", {}))

    def episode(self, task: int) -> str:
        """Opens an episode; returns its address."""
        return f"{self._url}/e/{self._asked('/episodes', {'task': task})['ticket']}/"

    def _compare(self, theirs: Mapping[str, Any]) -> None:
        ours = self.front.identity
        names = [name for name in ours if theirs.get(name) != ours[name]]
        differing = [f"{name} ({theirs.get(name)!r} there, {ours[name]!r} here)" for name in names]
        if differing:
            raise ConfigError(
                f"The site {self._url} shows another shop: {'; '.join(differing)}. Give both the same data and options."
            )

    def _asked(self, path: str, sent: Any) -> dict[str, Any]:
        body = None if sent is None else json.dumps(sent).encode()
        request = Request(self._url + path, body, {"content-type": "application/json"})
        try:
            # Never over a proxy: a site is on this machine, or in its network.
            with build_opener(ProxyHandler({})).open(request, timeout=_SECONDS) as answer:
                found = json.load(answer)
        except HTTPError as error:
            raise ConfigError(f"{self._url}{path} answers {error.code} {error.reason}; is that the shop?") from error
        except (URLError, OSError, ValueError) as error:
            raise SiteLostError(
                f"The site {self._url} does not answer ({error}). Start it with: skillc serve-webshop --port "
                f"{urlsplit(self._url).port or 80}"
            ) from error
        return dict(found)


ShopSite = LocalSite | RemoteSite

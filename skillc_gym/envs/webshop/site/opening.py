"""Putting a site together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.envs.webshop.site.app import Site
from skillc_gym.envs.webshop.site.front import ShopFront
from skillc_gym.envs.webshop.site.guard import LOOPBACK
from skillc_gym.envs.webshop.site.recording import Recording
from skillc_gym.envs.webshop.site.replays import Replays
from skillc_gym.episodes import Episode

__all__ = ["open_site"]


def open_site(
    shop: Mapping[str, Any],
    *,
    host: str = "127.0.0.1",
    names: Sequence[str] = (),
    record: Path | None = None,
    episodes: Sequence[Episode] = (),
) -> Site:
    """Makes a site.

    Args:
        shop: The arguments of `skillc_gym.envs.webshop.env.WebShopEnv`.
        host: Where the site will listen. On this machine alone, it answers to this machine's names only.
        names: Further names by which it may be called.
        record: Where to keep what people do, as JSON lines.
        episodes: Recorded episodes to show.

    Raises:
        ConfigError: The episodes are of another shop, or the file cannot be written.
    """
    front = ShopFront(WebShopEnv(**shop, observation_mode="url"))
    recording = None if record is None else Recording(record, front, WebShopEnv(**shop))
    hosts = frozenset({*LOOPBACK, *names}) if host in LOOPBACK or names else None
    return Site(front, hosts=hosts, recording=recording, replays=Replays(episodes, front) if episodes else None)

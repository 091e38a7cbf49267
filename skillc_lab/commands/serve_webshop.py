"""``skillc serve-webshop``: serve the shop as a web site, for people and for agents with a browser."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillc_lab.cli.command import Command, say


@dataclass(frozen=True)
class ServeWebshopOptions:
    """Serve the shop as a web site, for people, and for agents with a browser, until Ctrl-C.

    Example: skillc serve-webshop --data generated --record demonstrations.jsonl
    """

    data: str | None = None
    """A catalogue's folder, one with upstream's files, or "generated"; none for the folder that WEBSHOP_DATA names."""
    goals: str = "synthetic"
    """"synthetic" or "human"."""
    split: str = "all"
    """"all", "train", "valid" or "test"."""
    host: str = "127.0.0.1"
    """Where to listen; this machine alone by default."""
    port: int = 3000
    """Port; 0 for any that is free."""
    allow_host: tuple[str, ...] = ()
    """Further names by which the site may be called."""
    token: str = "auto"
    """What visitors must know: "auto" for a new one, which stands in the address, with a --host beyond this machine;
    "none", or a text of your own."""
    record: Path | None = None
    """Keep what people do as demonstrations, a line each, in this file."""
    record_limit: int = 64
    """How large that file may become, in MiB."""
    upstream_routes: bool = False
    """Open episodes at /SESSION and /fixed_N, for agents made for upstream's own site."""
    env_options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the environment; singly as env.generator='{"size": 500}'."""

    def shop(self) -> dict[str, Any]:
        """The shop's arguments."""
        named = {"data": self.data, "goals": self.goals, "split": self.split}
        return {name: value for name, value in named.items() if value is not None} | dict(self.env_options)


def _run(options: ServeWebshopOptions) -> int:
    site = {name: getattr(options, name) for name in ("token", "record", "record_limit", "upstream_routes")}
    return serve_site(options.shop(), host=options.host, port=options.port, names=options.allow_host, **site)


def serve_site(shop: Mapping[str, Any], *, host: str = "127.0.0.1", port: int = 3000, **site: Any) -> int:
    """Serves a shop on a port, 0 for any that is free, and says where; ``site`` is what else `open_site` takes."""
    from skillc_gym.envs.webshop.site import address_of_socket, bound_socket, open_site
    from skillc_gym.envs.webshop.site import serve as serve_until_interrupted

    opened = open_site(shop, host=host, **site)
    listener = bound_socket(host, port)
    token = f"?token={opened.token}" if opened.token else ""
    say(f"{address_of_socket(listener)}/{'replays' if site.get('episodes') else ''}{token}")
    sys.stdout.flush()  # whoever started it may be waiting for the address
    serve_until_interrupted(opened, listener)
    return 0


COMMAND = Command(ServeWebshopOptions, _run, "the site has closed.")

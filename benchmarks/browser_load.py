"""Many visitors of the shop's site at once: latencies, and whether anybody sees what is another's."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from dataclasses import dataclass, field
from html import unescape
from urllib.parse import quote, urlsplit

from skillc_gym.envs.webshop import WebShopEnv

__all__ = ["Load", "load_site"]


@dataclass
class Load:
    """What visitors met with.

    Attributes:
        seconds: How long all of them took together.
        waits: The seconds that every request took.
        wrong: Answers that were errors, or pages of somebody else.
    """

    seconds: float = 0.0
    waits: list[float] = field(default_factory=list)
    wrong: int = 0

    @property
    def requests(self) -> int:
        """The number of requests."""
        return len(self.waits)

    @property
    def latencies(self) -> dict[str, float]:
        """Percentiles in seconds."""
        ordered = sorted(self.waits)
        places = {"median": 0.5, "95th percentile": 0.95, "99th percentile": 0.99, "longest": 1.0}
        return {name: ordered[min(int(place * len(ordered)), len(ordered) - 1)] for name, place in places.items()}


def load_site(data: str | None, sessions: int, requests: int) -> Load:
    """Serves the shop in a process of its own and lets visitors search and look, each in an episode of its own.

    Args:
        data: The shop's products.
        sessions: The number of visitors.
        requests: The requests of every visitor.
    """
    command = [sys.executable, "-m", "skillc_lab", "serve-webshop", "--port", "0"]
    command += [] if data is None else ["--data", data]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            return asyncio.run(_visit_all(url, WebShopEnv(data=data), sessions, requests))
        finally:
            process.terminate()


async def _visit_all(url: str, env: WebShopEnv, sessions: int, requests: int) -> Load:
    found, started = Load(), time.perf_counter()
    visits = [_visit(url, env.goals.goal(number).instruction, number, requests, found) for number in range(sessions)]
    await asyncio.gather(*visits)
    found.seconds = time.perf_counter() - started
    return found


async def _visit(url: str, goal: str, task: int, requests: int, found: Load) -> None:
    """One visitor: opens an episode, then searches for other words every time and looks at what came."""
    host, rng = urlsplit(url).netloc, random.Random(task)
    streams = await asyncio.open_connection(*host.split(":"))
    try:
        status, _, body = await _ask(streams, ("POST", "/episodes", json.dumps({"task": task})), host, found)
        home = json.loads(body)["address"]
        words = [word for word in goal.split() if word.isalpha()] or ["rug"]
        for number in range(requests - 1):
            query = quote(f"{rng.choice(words)} {rng.choice(words)}")
            if number % 2:
                status, headers, _ = await _ask(streams, ("POST", home, f"search_query={query}"), host, found)
                found.wrong += status != 303 or home.rpartition("/")[0] not in headers.get("location", "")
                continue
            address = f"{home.rpartition('/')[0]}/results?q={query}&page=1"
            status, _, body = await _ask(streams, ("GET", address, ""), host, found)
            found.wrong += status != 200 or goal not in unescape(body)
    finally:
        streams[1].close()


async def _ask(
    streams: tuple[asyncio.StreamReader, asyncio.StreamWriter], request: tuple[str, str, str], host: str, found: Load
) -> tuple[int, dict[str, str], str]:
    (reader, writer), (method, path, body) = streams, request
    kind = "application/json" if body.startswith("{") else "application/x-www-form-urlencoded"
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    started = time.perf_counter()
    writer.write((head + body).encode())
    await writer.drain()
    answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status, *lines = answer.rstrip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    text = await reader.readexactly(int(headers.get("content-length", "0")))
    found.waits.append(time.perf_counter() - started)
    return int(status.split()[1]), headers, text.decode()

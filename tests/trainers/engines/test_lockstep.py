"""Processes that share an engine: episodes of different lengths end as they would alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from skillc_gym.errors import ConfigError, EngineError
from trainers.base import Sampling
from trainers.engines.lockstep import LockstepEngine, ProcessExchange
from trainers.engines.types import Generation, Request, StreamingEngine

LENGTHS = ([1, 4], [2, 2], [])
"""How many turns each process's conversations have; the last process has none."""


class Threads:
    """An exchange between threads."""

    def __init__(self, place: int, shared: dict[str, Any]) -> None:
        self.place, self._shared = place, shared

    def gather(self, part: Any) -> list[Any]:
        return self._meet("parts", part)

    def result(self, ask: Callable[[], Any]) -> Any:
        # The first process alone has an engine.
        return self._meet("told", ask() if self.place == 0 else None)[0]

    def _meet(self, name: str, mine: Any) -> list[Any]:
        self._shared[name][self.place] = mine
        self._shared["barrier"].wait(timeout=20)
        found = list(self._shared[name])
        self._shared["barrier"].wait(timeout=20)
        return found


class Echo:
    """Says a prompt's first token back; counts its calls."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        assert len({request.key for request in requests}) == len(requests)
        self.calls.append(len(requests))
        return [Generation([request.prompt_ids[0]]) for request in requests]

    def release(self, keys: Any) -> None: ...

    def reset(self) -> None: ...


def play(engine: LockstepEngine, place: int, heard: list[tuple[int, int]]) -> None:
    def answer(replies: Any) -> list[Request]:
        heard.extend((request.key, reply.token_ids[0]) for request, reply in replies)
        return [
            Request(request.key, request.prompt_ids, 0, turn=request.turn + 1)
            for request, _ in replies
            if request.turn + 1 < LENGTHS[place][request.key]
        ]

    engine.reset()
    engine.stream(
        [Request(key, [100 * place + key], 0, turn=0) for key in range(len(LENGTHS[place]))], Sampling(), answer
    )


def test_all_play_to_their_ends_in_step() -> None:
    processes = len(LENGTHS)
    shared = {"parts": [None] * processes, "told": [None] * processes, "barrier": threading.Barrier(processes)}
    echo, sent = Echo(), list[int]()
    engines = [
        LockstepEngine(echo if place == 0 else None, Threads(place, shared), lambda: sent.append(1))
        for place in range(processes)
    ]
    assert isinstance(engines[0], StreamingEngine)
    heard: list[list[tuple[int, int]]] = [[] for _ in engines]
    threads = [threading.Thread(target=play, args=(engines[i], i, heard[i])) for i in range(processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    for place, lengths in enumerate(LENGTHS):
        assert sorted(heard[place]) == [(key, 100 * place + key) for key, n in enumerate(lengths) for _ in range(n)]
    assert echo.calls == [4, 3, 1, 1]
    assert len(sent) == processes


def test_one_process_alone_cannot_ask() -> None:
    with pytest.raises(ConfigError, match="in step"):
        LockstepEngine(Echo(), Threads(0, {}), lambda: None).generate([], Sampling())


def test_an_engine_that_dies_on_the_first_process_is_everybodys_error(monkeypatch: pytest.MonkeyPatch) -> None:
    exchange, told = ProcessExchange(first_asks=True), list[Any]()
    fake = type("Dist", (), {
        "get_rank": staticmethod(lambda group: 0),
        "broadcast_object_list": staticmethod(lambda box, src, group: told.append(box[0])),
    })  # fmt: skip
    monkeypatch.setattr(exchange, "_dist", fake)

    def dies() -> Any:
        raise ConnectionError("nobody listens")

    with pytest.raises(EngineError, match="ConnectionError: nobody listens"):
        exchange.result(dies)
    assert told == [(None, "ConnectionError: nobody listens")]

    def is_stopped() -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        exchange.result(is_stopped)
    assert told[1:] == [(None, "interrupted")]

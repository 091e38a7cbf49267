"""Ctrl-C and SIGTERM are one request: whoever stops a run from a shell, a scheduler or a container is heard alike."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["interrupts", "stop_requests"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_Handler = Callable[[int, Any], Any]


@contextmanager
def interrupts() -> Iterator[None]:
    """Turns SIGTERM into the ``KeyboardInterrupt`` of Ctrl-C; for whole commands.

    In a thread other than the main one nothing changes: signals are not delivered there.
    """
    with _handled((signal.SIGTERM,), _interrupt):
        yield


@contextmanager
def stop_requests(ask: Callable[[], object]) -> Iterator[None]:
    """Turns the first Ctrl-C or SIGTERM into a request; the second, of either kind, is a ``KeyboardInterrupt``.

    Args:
        ask: Called once, by the signal's handler.
    """
    asked = False

    def handle(number: int, frame: Any) -> None:
        nonlocal asked
        if asked:
            _interrupt(number, frame)
        asked = True
        ask()

    with _handled(_SIGNALS, handle):
        yield


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


@contextmanager
def _handled(signals: tuple[signal.Signals, ...], handler: _Handler) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, before in previous.items():
            # None stands for a handler that Python has not set, and cannot set again.
            signal.signal(number, signal.SIG_DFL if before is None else before)

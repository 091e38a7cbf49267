"""How processes are asked to stop and end together, and what cannot be spread over them."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from skillc_gym.errors import ConfigError

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_Handler = Callable[[int, Any], Any]


@contextmanager
def interrupts() -> Iterator[None]:
    """Turns SIGTERM into the ``KeyboardInterrupt`` of Ctrl-C; for whole commands, in the main thread."""
    with _handled((signal.SIGTERM,), _interrupt):
        yield


@contextmanager
def stop_requests(ask: Callable[[], object]) -> Iterator[None]:
    """Turns the first Ctrl-C or SIGTERM into a request; the second, of either kind, is a ``KeyboardInterrupt``."""
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


def end_together() -> None:
    """Waits for the launcher's other processes and ends their group; does nothing in a lone process.

    One that leaves early may be aborted by its group's threads, and the launcher then stops who still writes.
    """
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        distributed.barrier()
        distributed.destroy_process_group()


def check_sharded(heads: Collection[str], moving_reference: bool) -> None:
    """Refuses (ConfigError) what can't be spread over processes: heads of the losses, or a reference that moves."""
    if moving_reference:
        raise ConfigError(
            "reference_sync_every moves a reference of which each process would save its own part alone; start the run "
            "without sharding, or leave it out."
        )
    if heads:
        raise ConfigError(
            f"This recipe trains heads of its own ({', '.join(sorted(heads))}), which sharding would leave out; start "
            "it without sharding, or take a recipe without a critic."
        )

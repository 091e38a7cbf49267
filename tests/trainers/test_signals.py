"""SIGTERM is heard as Ctrl-C is."""

from __future__ import annotations

import signal
import threading

import pytest

from trainers.base import interrupts, stop_requests

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def handlers() -> list[object]:
    return [signal.getsignal(number) for number in SIGNALS]


@pytest.mark.parametrize("first", SIGNALS)
@pytest.mark.parametrize("second", SIGNALS)
def test_the_first_signal_asks_and_the_second_interrupts(first: signal.Signals, second: signal.Signals) -> None:
    before, asked = handlers(), []
    with pytest.raises(KeyboardInterrupt), stop_requests(lambda: asked.append(1)):  # noqa: PT012
        signal.raise_signal(first)
        assert asked == [1]
        signal.raise_signal(second)
    assert asked == [1]
    assert handlers() == before


def test_requests_within_a_command_come_first() -> None:
    asked: list[int] = []
    with pytest.raises(KeyboardInterrupt), interrupts():  # noqa: PT012
        with stop_requests(lambda: asked.append(1)):
            signal.raise_signal(signal.SIGTERM)
        assert asked == [1]
        signal.raise_signal(signal.SIGTERM)


def test_other_threads_leave_signals_alone() -> None:
    before, seen = handlers(), []

    def work() -> None:
        with interrupts(), stop_requests(lambda: None):
            seen.extend(handlers())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == before

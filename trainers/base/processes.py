"""How processes are asked to stop and end together, how many the launcher was asked for, what cannot be sharded."""

from __future__ import annotations

import itertools
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from skillc_gym.errors import ConfigError

_Handler = Callable[[int, Any], Any]


def interrupts() -> AbstractContextManager[None]:
    """Turns SIGTERM into the ``KeyboardInterrupt`` of Ctrl-C; for whole commands, in the main thread."""
    return _handled((signal.SIGTERM,), _interrupt)


def stop_requests(ask: Callable[[], object]) -> AbstractContextManager[None]:
    """Turns the first Ctrl-C or SIGTERM into a request; the second, of either kind, is a ``KeyboardInterrupt``."""
    asked = False

    def handle(number: int, frame: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        ask()

    return _handled((signal.SIGINT, signal.SIGTERM), handle)


def _interrupt(number: int, frame: Any) -> None:
    # A running event loop has a handler of its own for Ctrl-C alone, which cancels what it runs.
    handler = signal.getsignal(signal.SIGINT)
    if number != signal.SIGTERM or not callable(handler):
        raise KeyboardInterrupt
    handler(signal.SIGINT, frame)


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


def launch_warning(
    running: int, words: Sequence[str] | None = None, env: Mapping[str, str] | None = None
) -> str | None:
    """What to say where ``running`` processes train and the launcher was asked for another number; None elsewhere."""
    asked = asked_processes(launcher_words() if words is None else words, os.environ if env is None else env)
    if asked is None or asked == running:
        return None
    return (
        f"The launcher was asked for {asked} training processes, and {running} can be counted. On a processor "
        f"accelerate launch starts one in silence; torchrun --nproc_per_node {asked} starts them all."
    )


def asked_processes(words: Sequence[str], env: Mapping[str, str]) -> int | None:
    """How many processes a launcher was asked for: by its words, else by what it left in the environment."""
    count, world = _number(words, "--(?:num[_-]processes|nproc[_-]per[_-]node)"), env.get("WORLD_SIZE", "")
    # torchrun counts processes per machine, accelerate all; of machines it takes a range, too, and leaves their number.
    per_machine = any(word.startswith("--nproc") for word in words)
    if count is None or (per_machine and world.isdecimal()):
        return int(world) if world.isdecimal() else None
    return count * ((_number(words, "--nnodes") or 1) if per_machine else 1)


def _number(words: Sequence[str], option: str) -> int | None:
    for word, following in itertools.pairwise([*words, ""]):
        found = re.fullmatch(rf"{option}(?:=(\w+))?", word)
        if found and (value := found[1] or following).isdecimal():
            return int(value)
    return None


def launcher_words() -> list[str]:
    """The command line of this process's parent, if it is a launcher and the system tells."""
    try:
        words = Path(f"/proc/{os.getppid()}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []
    launchers = ("accelerate", "torchrun", "torch.distributed.run", "torch.distributed.launch")
    return words if any(launcher in word for word in words[:4] for launcher in launchers) else []


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

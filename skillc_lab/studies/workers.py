"""Jobs in processes of their own, one thread each, so many at a time; none outlives the process that asked for them."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TypeVar, cast

Job = TypeVar("Job")
_THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


def cores() -> int:
    """How many cores this process may use: what ``workers=0`` asks for."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_jobs(work: Callable[[Job], object], jobs: Mapping[Path, Job], workers: int) -> Iterator[tuple[Job, bool]]:
    """Runs jobs in their order, so many at a time, and yields each as it ends, and whether it ended well.

    Jobs stand by the file that their words (standard output and error) are added to; they and the work are pickled.
    Results are files, for whoever comes after an interruption, which is passed on once the processes have stopped.
    """
    waiting = list(jobs.items())
    running: dict[int, tuple[Job, BaseProcess]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                log, job = waiting.pop(0)
                process = _started(work, job, log)
                running[process.sentinel] = (job, process)
            for sentinel in wait(list(running)):
                job, process = running.pop(cast("int", sentinel))
                process.join()
                yield job, process.exitcode == 0
    finally:
        # Ctrl-C, or a caller that wants no more: they finish their update and save.
        for _, process in running.values():
            process.terminate()
        for _, process in running.values():
            process.join()


def _started(work: Callable[[Job], object], job: Job, log: Path) -> BaseProcess:
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(_THREADS)
    try:
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=_work, args=(work, job, log, os.getpid()))
        process.start()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    return process


def _work(work: Callable[[Job], object], job: Job, log: Path, parent: int) -> None:
    """What a process does."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()  # a terminal's Ctrl-C reaches the parent alone, which asks once
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    log.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(descriptor, stream.fileno())
    work(job)


def _leave_with(parent: int) -> None:
    """Ends this process as soon as its parent is gone: a checkpoint is there, and its lock must not stay."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)

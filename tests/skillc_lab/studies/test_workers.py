"""Jobs in processes of their own: as many at a time as asked for, failures passed over, none left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from skillc_lab.studies import cores, run_jobs


def work(folder: Path, job: int) -> None:
    if job == 2:
        raise ValueError("two is refused")
    (folder / f"done-{job}").write_text(os.environ["OMP_NUM_THREADS"])


def wait_for_ever(folder: Path, job: int) -> None:
    (folder / f"pid-{job}").write_text(str(os.getpid()))
    time.sleep(600)


def test_a_core_that_this_process_may_not_use_counts_for_nothing(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3}, raising=False)
    assert cores() == 1


def test_a_job_that_fails_leaves_its_words_and_lets_the_others_run(tmp_path):
    jobs = {tmp_path / "logs" / f"{job}.log": job for job in (1, 2, 3)}
    ended = dict(run_jobs(partial(work, tmp_path), jobs, workers=2))
    assert ended == {1: True, 2: False, 3: True}
    assert (tmp_path / "done-3").read_text() == "1"
    assert "two is refused" in (tmp_path / "logs" / "2.log").read_text()


def test_no_process_outlives_the_one_that_asked_for_it(tmp_path):
    script = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "from functools import partial; from pathlib import Path\n"
        "from tests.skillc_lab.studies.test_workers import run_jobs, wait_for_ever\n"
        "if __name__ == '__main__':\n"
        f"    folder = Path({str(tmp_path)!r})\n"
        "    list(run_jobs(partial(wait_for_ever, folder), {folder / '1.log': 1}, workers=1))\n"
    )
    path = tmp_path / "asks.py"
    path.write_text(script)
    with subprocess.Popen([sys.executable, str(path)]) as parent:
        number = int(_read(tmp_path / "pid-1"))
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    deadline = time.monotonic() + 20
    while _alive(number) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(number)


def _read(path: Path) -> str:
    deadline = time.monotonic() + 60
    while not (path.is_file() and path.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return path.read_text()


def _alive(number: int) -> bool:
    try:
        state = Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"

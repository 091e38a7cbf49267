"""The batch file for Slurm, with stand-ins for Slurm and the launcher."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "slurm" / "train.sbatch"
LAUNCHER = """#!/bin/bash
echo "$@" > asked
bash -c 'trap "echo saved > saved; exit 130" TERM; touch started; while :; do sleep 0.05; done' &
child=$!
[ "$STAND_IN" = ends ] && kill -KILL "$child" && exit 7
wait "$child"
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with stand-ins on the path."""
    programs = {
        "accelerate": LAUNCHER,
        "scontrol": "#!/bin/bash\necho $@ > requeued\n",
        "skillc": "#!/bin/bash\necho F\n",
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def start(place: Path, **env: str) -> subprocess.Popen[bytes]:
    path = f"{place}:{os.environ['PATH']}"
    known = {**os.environ, "PATH": path, "SLURM_JOB_ID": "17", "SLURM_GPUS_ON_NODE": "4", "STAND_IN": "", **env}
    return subprocess.Popen(["bash", str(SCRIPT), "steps=3"], cwd=place, env=known, start_new_session=True)


def wait_for(path: Path) -> None:
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_sigterm_reaches_the_training_and_the_job_is_queued_again(place: Path) -> None:
    job = start(place, SKILLC_LAUNCHER="fsdp2")
    wait_for(place / "started")
    job.send_signal(signal.SIGTERM)
    assert job.wait(timeout=60) == 0
    assert (place / "saved").exists()
    assert (place / "requeued").read_text() == "requeue 17\n"
    words = (place / "asked").read_text().split()
    assert words[:5] == ["launch", "--num_processes", "4", "--config_file", "F"]
    assert words[-3:] == ["train", "resume=auto", "steps=3"]


def test_a_run_that_ends_by_itself_is_not_queued_again(place: Path) -> None:
    assert start(place, STAND_IN="ends").wait(timeout=60) == 7
    assert not (place / "requeued").exists()

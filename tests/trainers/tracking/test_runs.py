from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from skillc_gym.errors import ConfigError
from trainers.tracking.run_folder import RunFolder

HOLD = """
import sys
from trainers.tracking.run_folder import RunFolder
with RunFolder(sys.argv[1]).locked():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_two_processes_cannot_write_to_one_run(tmp_path: Path):
    pytest.importorskip("fcntl", reason="the lock is made of flock")
    words = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(ConfigError, match="Another process trains in"), RunFolder(tmp_path).locked():
            pass
        other.kill()
    with RunFolder(tmp_path).locked():
        pass

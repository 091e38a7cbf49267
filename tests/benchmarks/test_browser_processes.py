"""Counting what a group of processes uses."""

from __future__ import annotations

import os
import subprocess

from benchmarks.browser_processes import KINDS, group_members, megabytes, processor_seconds


def test_a_group_is_counted_by_kind():
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        try:
            assert group_members(process.pid) == [process.pid]
            used = processor_seconds(process.pid)
        finally:
            process.kill()
    assert set(used) <= set(KINDS)
    assert used["Python"] > 0
    assert group_members(process.pid) == []


def test_memory_is_that_of_living_processes():
    assert megabytes([os.getpid()]) > 1
    assert megabytes([2**22 + 1]) == 0

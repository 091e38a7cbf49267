"""What the processes of a browser use: processor time by kind of process, and memory."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

__all__ = ["KINDS", "group_members", "megabytes", "processor_seconds"]

KINDS = ("Python", "driver", "browser", "renderer", "network", "other")
"""Kinds of processes; Python is this one, with the site."""
_TYPE = re.compile(r"--type=(\S+)")


def group_members(group: int) -> list[int]:
    """Returns the processes of a process group."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(place.name)) == group:
                found.append(int(place.name))
        except ProcessLookupError:
            continue
    return found


def processor_seconds(group: int) -> dict[str, float]:
    """Returns the processor time used so far by kind of process; unlike steps per second, it hardly depends on others.

    Args:
        group: The process group of a driver and its browser.
    """
    seconds = dict.fromkeys(KINDS, 0.0) | {"Python": time.process_time()}
    for process in group_members(group):
        try:
            fields = Path(f"/proc/{process}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            seconds[_kind(process, group)] += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except OSError:
            continue
    return seconds


def _kind(process: int, group: int) -> str:
    line = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    if process == group:
        return "driver"
    if "NetworkService" in line:
        return "network"
    found = _TYPE.search(line)
    return "browser" if found is None else "renderer" if found[1] == "renderer" else "other"


def megabytes(processes: list[int]) -> float:
    """Returns the memory that belongs to processes alone; what other browsers on the machine share does not count."""
    total = 0
    for process in processes:
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text("ascii").splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty:"))
    return total / 1024

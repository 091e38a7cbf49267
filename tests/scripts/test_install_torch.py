"""Torch's build for processors is found without anybody being asked, and never ends in a dead end.

The indexes are folders with tiny wheels, read by the real pip; uv, which would ask the net, is a stand-in among them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "install_torch.sh"
UV = '#!/bin/sh\necho "$@" > "$UV_ASKED"\n[ -z "$UV_SAYS" ] || { echo "$UV_SAYS" >&2; exit 1; }\n'


def wheel(folder: Path, name: str, version: str, **files: str) -> str:
    """Writes a wheel into a folder of an index; returns its SHA-256."""
    info = f"{name}-{version}.dist-info"
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, text in files.items():
            entry = zipfile.ZipInfo(inside)
            entry.external_attr = 0o100755 << 16
            archive.writestr(entry, text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def machine(tmp_path: Path):
    """Runs the script on a machine whose index has the builds named; uv ends as told."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPT, tmp_path / "scripts")
    for build, version in {"cpu": "==2.13.0+cpu", "cuda": "===2.13.0"}.items():
        hashed = wheel(tmp_path / "all" / build, "torch", version.strip("="), **{"torch.py": build})
        (tmp_path / f"constraints-torch-{build}.txt").write_text(f"torch{version} --hash=sha256:{hashed}\n")

    def run(builds: Sequence[str], uv_says: str = "not found", torch: str = "auto"):
        index = tmp_path / "index" / "torch"
        index.mkdir(parents=True)
        for build in builds:
            for path in (tmp_path / "all" / build).iterdir():
                shutil.copy(path, index)
        wheel(tmp_path / "index" / "uv", "uv", "1.0", **{"uv-1.0.data/scripts/uv": UV})
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "TORCH"))}
        env = {
            **plain,
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": f"{index} {index.parent / 'uv'}",
            "PIP_TARGET": str(tmp_path / "site"),
            "UV_ASKED": str(tmp_path / "asked"),
            "UV_SAYS": uv_says,
        }
        words = [str(tmp_path / "scripts" / SCRIPT.name), sys.executable, torch]
        return subprocess.run(words, env=env, capture_output=True, text=True, check=False)

    return run


def installed(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.glob("site/torch.py"))


def test_the_configured_index_comes_first(machine, tmp_path: Path):
    done = machine(["cpu", "cuda"])
    assert (done.returncode, done.stdout, installed(tmp_path)) == (0, "", "cpu")
    assert not (tmp_path / "asked").exists()


def test_uv_is_asked_for_the_pinned_build_without_naming_a_host(machine, tmp_path: Path):
    done = machine(["cuda"], uv_says="")
    asked = (tmp_path / "asked").read_text().strip()
    assert done.returncode == 0
    assert "--torch-backend cpu" in asked
    assert asked.endswith(f"--require-hashes -r {tmp_path}/constraints-torch-cpu.txt")
    assert "://" not in SCRIPT.read_text()


def test_the_default_build_is_taken_with_a_word_about_its_size(machine, tmp_path: Path):
    done = machine(["cuda"], uv_says="cause: no such host")
    assert (done.returncode, installed(tmp_path)) == (0, "cuda")
    assert "(no such host)" in done.stdout
    assert "GB" in done.stdout


def test_what_no_hash_knows_is_not_installed(machine, tmp_path: Path):
    wheel(tmp_path / "all" / "other", "torch", "2.13.0", **{"torch.py": "a stranger's"})
    done = machine(["other"])
    assert (done.returncode, installed(tmp_path)) == (1, "")
    assert "HASHES" in done.stderr


def test_the_default_build_can_be_asked_for(machine, tmp_path: Path):
    assert machine(["cpu", "cuda"], torch="default").returncode == 0
    assert (installed(tmp_path), (tmp_path / "asked").exists()) == ("cuda", False)

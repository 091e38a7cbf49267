"""Builds the wheel of a fresh clone, installs it into empty environments, and runs the commands away from the checkout.

python -m benchmarks.check_wheel                       # with this Python
python -m benchmarks.check_wheel --python python3.12   # with another one
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"skill_library", "skillc_gym", "skillc_lab", "trainers"}
LIGHT = "import sys, skillc_gym; assert not {'torch', 'transformers', 'trl'} & set(sys.modules); print('light')"
SMALL = "tasks_per_step=2 group_size=2 panel_per_type=1 max_episode_steps=4 max_reply_tokens=12 chat=compact"
PLAIN: Sequence[tuple[str, int]] = (
    ("skillc --help", 0),
    ("skillc doctor", 0),
    ("skillc tools make-games --out games --games-per-type 2 --splits train valid_seen", 0),
    ("skillc play --data games --split valid_seen --seed 0", 0),
    ("skillc play --env webshop --seed 0", 0),
    ("skillc train --model shipped", 2),
    ("skillc train --model shipped --stepz 3", 2),
)
"""Commands that need no extra, with the exit status that each must have."""
TRAINED: Sequence[tuple[str, int]] = (
    (f"skillc train --model shipped --data games --steps 1 --run run {SMALL}", 0),
    (f"skillc evaluate --model run/policy --data games --split valid_seen --per-type 1 --out eval {SMALL}", 0),
    ("skillc report run", 0),
    ("skillc report eval", 0),
    ("skillc replay run", 0),
    ("skillc doctor --env alfworld --data generated --model shipped --json", 0),
    ("skillc doctor --engine vllm", 2),
)
"""Commands that need the extra ``train``."""


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the check; exits with status 1 if a step failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="interpreter of the empty environments")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as work:
        check(args.python, Path(work).resolve())


def check(python: str, work: Path) -> None:
    """Builds, installs and runs, without the extra and with it."""
    wheel, own = build(python, work), str(work / "env/bin/python")
    step([python, "-m", "venv", "env"], work)
    (work / "outside").mkdir()
    for extra, lines in (("", PLAIN), ("[train]", TRAINED)):
        if extra:
            step([str(ROOT / "scripts/install_torch.sh"), own], work)
        step([own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel}{extra}"], work)
        step([own, "-c", LIGHT], work)
        for line, status in lines:
            program, *words = line.split()
            step([str(work / "env/bin" / program), *words], work / "outside", status)


def build(python: str, work: Path) -> Path:
    """The wheel of what is committed; it holds the libraries and nothing else."""
    step(["git", "clone", "--quiet", str(ROOT), "clone"], work)
    step([python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", "dist", "./clone"], work)
    (wheel,) = (work / "dist").glob("skillc_gym-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist() if ".dist-info" not in name.split("/")[0]}
    if tops != PACKAGES:
        sys.exit(f"failed: the wheel holds {sorted(tops)}, expected {sorted(PACKAGES)}")
    print(f"{wheel.name}: {wheel.stat().st_size / 2**20:.1f} MiB", flush=True)
    return wheel


def step(words: Sequence[str], work: Path, status: int = 0) -> None:
    """Runs one program and prints how it went; with another exit status, exits with what it said last."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "ALFWORLD_DATA")}
    began = time.perf_counter()
    done = subprocess.run(
        words, cwd=work, env=env, input=":quit\n", capture_output=True, text=True, check=False, timeout=1800
    )
    shown = " ".join([Path(words[0]).name, *words[1:]])
    print(f"{time.perf_counter() - began:6.1f} s  status {done.returncode}  {shown[:150]}", flush=True)
    if done.returncode != status or "Traceback" in done.stderr:
        said = f"{done.stdout[-1500:]}{done.stderr[-1500:]}"
        sys.exit(f"failed: {shown}: status {done.returncode}, expected {status}\n{said}")


if __name__ == "__main__":
    main()

"""A newcomer types what README and tutorial say, in a fresh home and a fresh clone, without caches; each line is timed.

python scripts/newcomer.py                       # as written: half an hour on two cores, most of it training
python scripts/newcomer.py --short --venv .venv  # fewer updates, in an environment that is there: two minutes

The first transcript of both conditions must stand there within a minute after the installation.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "docs/ten-minutes.md")
TRANSCRIPT = "start, with the skill"
TRANSCRIPT_SECONDS = 60
ELSEWHERE = {"make test": "what continuous integration runs"}
TOO_LONG = {"make demo": "minutes of training"}
INSTALLS = ("pip install", "python3 -m venv", ". .venv", "scripts/install_torch.sh")
SHORT = {
    "skillc train": "steps=1 tasks_per_step=2 group_size=2 panel_per_type=1 max_episode_steps=4",
    "skillc evaluate": "per_type=1 max_episode_steps=4",
}
"""What makes a line short; a later word wins."""
SERVER = "http://127.0.0.1:8000/v1"
SERVE = """import time
from openai_server import openai_server
with openai_server(lambda messages: "<think>On.</think><action>look</action>", port=8000):
    time.sleep(3600)
"""


@dataclass
class Line:
    """One line of a page, or one block of Python, and how it went."""

    text: str
    python: bool = False
    seconds: float = 0.0
    work: float = 0.0
    transcript: float | None = None
    failed: str = ""

    def transcript_at_work(self) -> float:
        """Seconds to the first transcript, without those in which a busy machine did something else."""
        return (self.transcript or float("inf")) * min(1.0, self.work / self.seconds if self.seconds else 1.0)


@dataclass
class Newcomer:
    """Where the newcomer sits, and what was typed there."""

    folder: Path
    venv: Path | None = None
    short: bool = False
    typed: list[Line] = field(default_factory=list)

    @property
    def clone(self) -> Path:
        """The fresh clone."""
        return self.folder / "clone"

    def environment(self) -> dict[str, str]:
        """A fresh home and nothing else of ours, but for where packages are found."""
        env = {"HOME": str(self.folder / "home"), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "COLUMNS": "120"}
        own = Path("~/.config/pip/pip.conf").expanduser()
        env |= {"PIP_CONFIG_FILE": str(own)} if own.exists() else {}
        env |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "TORCH_", "OMP_"))}
        if self.venv:
            env |= {"PATH": f"{self.venv / 'bin'}:{env['PATH']}", "PYTHONPATH": str(self.clone)}
        return env

    def settle(self) -> None:
        """Makes the home and the clone."""
        (self.folder / "home").mkdir(parents=True)
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(self.clone)], check=True)

    def left_out(self, line: Line) -> str:
        """Why a line is not typed."""
        if self.venv and line.text.startswith(INSTALLS):
            return "installed already"
        return {**ELSEWHERE, **(TOO_LONG if self.short else {})}.get(line.text, "")

    def words(self, line: Line) -> list[str]:
        """What is started for a line, by a person who leaves a game at once."""
        text = line.text
        if self.short:
            text += "".join(f" {more}" for start, more in SHORT.items() if text.startswith(start))
        if self.venv:
            text = re.sub(r"^make ", f"make -o {self.venv}/.train VENV={self.venv} ", text)
        if line.python:
            text = f"python - <<'END'\n{text}\nEND"
        active = "[ ! -f .venv/bin/activate ] || . .venv/bin/activate"
        return ["bash", "-c", f"echo :quit | {{ {active}\n{text}\n}}"]

    def type(self, line: Line) -> None:
        """Runs a line, shows what it cost, and keeps its last words if it failed."""
        shown = "a block of Python" if line.python else line.text[:100]
        if reason := self.left_out(line):
            print(f"      -  {shown}  ({reason})", flush=True)
            return
        began, worked = time.monotonic(), worked_by_children()
        said = []
        place: dict[str, Any] = {"cwd": self.clone, "env": self.environment(), "text": True, "errors": "replace"}
        with subprocess.Popen(self.words(line), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **place) as process:
            assert process.stdout
            for answer in process.stdout:
                said.append(answer)
                if line.transcript is None and TRANSCRIPT in answer:
                    line.transcript = time.monotonic() - began
        line.seconds, line.work = time.monotonic() - began, worked_by_children() - worked
        if process.returncode or any("Traceback" in answer for answer in said):
            line.failed = f"status {process.returncode}\n{''.join(said[-30:])}"
        self.typed.append(line)
        if line.transcript:
            shown += f"  (transcript after {line.transcript:.0f} s, {line.transcript_at_work():.0f} of work)"
        print(f"{line.seconds:7.1f}  {shown}{'  FAILED' if line.failed else ''}", flush=True)


def worked_by_children() -> float:
    """Seconds of processors that children, and theirs, have taken."""
    spent = os.times()
    return spent.children_user + spent.children_system


def lines_of(page: str) -> Iterator[Line]:
    """The lines of a page's shell blocks, continued ones joined, and its blocks of Python, in their order."""
    for language, block in re.findall(r"^```(bash|python)\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        if language == "python":
            yield Line(block, python=True)
        else:
            whole = re.sub(r"\s*\\\n\s*", " ", block)
            yield from (Line(line.split("  #")[0].strip()) for line in whole.splitlines() if line.strip())


def walk(newcomer: Newcomer, pages: Sequence[str]) -> list[str]:
    """Types every line of the pages; what did not go as it should."""
    newcomer.settle()
    server = None
    for page in pages:
        print(page, flush=True)
        text = (newcomer.clone / page).read_text(encoding="utf-8")
        if SERVER in text:
            server = subprocess.Popen([sys.executable, "-c", SERVE], cwd=ROOT / "tests")
        for line in lines_of(text):
            if line.text == "make quick" and not newcomer.venv:
                newcomer.type(Line("make .venv/.train"))
            newcomer.type(line)
        if server:
            server.terminate()
            server.wait()
    wrong = [f"{line.text}: {line.failed}" for line in newcomer.typed if line.failed]
    for line in newcomer.typed:
        if line.text == "make quick" and line.transcript_at_work() > TRANSCRIPT_SECONDS:
            wrong.append(f"the first transcript: after {line.transcript} s, expected {TRANSCRIPT_SECONDS} at most")
    return wrong


def main(argv: Sequence[str] | None = None) -> int:
    """Takes the walk; returns 1 if something went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", default=PAGES, help="pages of the repository")
    parser.add_argument("--short", action="store_true", help="as few updates and tasks as show that a line works")
    parser.add_argument("--venv", type=Path, help="an environment with the trainer; installations are left out")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        wrong = walk(Newcomer(Path(folder), args.venv and args.venv.absolute(), args.short), args.pages)
    for text in wrong:
        print(f"\n{text}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

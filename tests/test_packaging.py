"""Pinned versions, containers, workflows and citation: that they are there and agree with each other."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from skillc_gym.version import __version__
from skillc_lab.cli.main import find_command
from skillc_lab.cli.options import parse

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
CONTAINERS = sorted(ROOT.glob("Dockerfile*"))


def pinned(file: str) -> dict[str, str]:
    """Versions of a file of constraints, by distribution."""
    text = (ROOT / file).read_text(encoding="utf-8")
    return dict(re.findall(r"^([A-Za-z0-9][\w.-]*)==(\S+)", text, re.MULTILINE))


def make_targets() -> set[str]:
    return set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def test_every_pinned_version_has_hashes_and_no_address():
    text = (ROOT / "constraints-train.txt").read_text(encoding="utf-8")
    entries = re.findall(r"^\S+==\S+ \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text, re.MULTILINE)
    assert len(entries) == len(pinned("constraints-train.txt")) > 30
    assert "://" not in text


def test_the_pins_hold_what_training_needs_but_torch():
    names = {re.split(r"[<>=!;\[ ]", requirement)[0] for requirement in EXTRAS["train"]}
    assert names - {"torch"} <= set(pinned("constraints-train.txt"))
    assert "torch" not in pinned("constraints-train.txt")


def test_both_containers_take_one_version_of_torch():
    (version,) = re.findall(r"^ARG TORCH=(\S+)$", (ROOT / "Dockerfile.gpu").read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned("constraints-cpu.txt")["torch"].split("+")[0] == version


@pytest.mark.parametrize("path", CONTAINERS, ids=lambda path: path.name)
def test_what_a_container_copies_is_let_through(path: Path):
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = re.findall(r"^COPY (.+) \./$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert copied
    assert {name for line in copied for name in line.split()} <= allowed
    assert all((ROOT / name).exists() for name in allowed)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_targets_that_exist(path: Path):
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    lines = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert {line.split()[0] for line in lines} <= {"make", "gh"}
    targets = [line.split()[1] for line in lines if line.startswith("make ")]
    assert targets
    assert set(targets) <= make_targets()


@pytest.mark.parametrize("path", CONTAINERS, ids=lambda path: path.name)
def test_a_containers_example_is_a_command(path: Path):
    (words,) = re.findall(r"^# .*skillc-gym(?::gpu)? ([a-z-]+.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    name, *options = words.split()
    parse(find_command(name).options, options, f"skillc {name}")


def test_the_tests_workflow_runs_what_continuous_integration_runs():
    run = re.findall(r"^make ([\w-]+)", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
    assert re.findall(r"make ([\w-]+)", (ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8")) == run


def test_the_citation_names_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == __version__
    assert citation["authors"] == [{"name": "The skillc-gym authors"}]


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem
)
def test_issue_forms_ask_something(path: Path):
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert form["name"]
    assert all(part["attributes"]["label"] for part in form["body"])


def test_the_page_of_packages_names_every_extra():
    page = (ROOT / "docs" / "packages.md").read_text(encoding="utf-8")
    adapters = {path.stem for path in (ROOT / "docs" / "adapters").glob("*.md")} - {"trl"}
    assert set(EXTRAS) - adapters - {"webshop"} <= set(re.findall(r"`([a-z0-9]+)`", page))


def test_lint_asks_for_neither_torch_nor_the_types():
    dry = subprocess.run(["make", "-n", "lint", "VENV=nowhere"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "ruff check" in dry.stdout
    assert not re.search(r"torch|mypy|\[train\]", dry.stdout)

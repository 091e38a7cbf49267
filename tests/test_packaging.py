"""Pinned versions, containers, workflows and citation: that they are there and agree with each other."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from skillc_gym.version import __version__
from skillc_lab.cli.main import find_command
from skillc_lab.cli.options import parse

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CONTAINERS = sorted(ROOT.glob("Dockerfile*"))


def text_of(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


def jobs_of(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]


def pinned(file: str) -> dict[str, str]:
    """Versions of a file of constraints, by distribution."""
    return dict(re.findall(r"^([A-Za-z0-9][\w.-]*)={2,3}([^\s;]+)", text_of(file), re.MULTILINE))


@pytest.mark.parametrize(("file", "at_least"), [("train", 30), ("torch-cpu", 1), ("torch-cuda", 15)])
def test_every_pinned_version_has_hashes_and_no_address(file: str, at_least: int):
    text = text_of(f"constraints-{file}.txt")
    entries = re.findall(r"^\S+==[^\\]+\\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text, re.MULTILINE)
    assert len(entries) == len(re.findall("^[a-z].*==", text, re.MULTILINE)) >= at_least
    assert "://" not in text


def test_the_pins_hold_what_training_needs_and_one_version_of_torch():
    names = {re.split(r"[<>=!;\[ ]", requirement)[0] for requirement in EXTRAS["train"]}
    assert names - {"torch"} <= set(pinned("constraints-train.txt"))
    assert "torch" not in pinned("constraints-train.txt")
    versions = {pinned(f"constraints-{name}.txt")["torch"].split("+")[0] for name in ("torch-cpu", "torch-cuda")}
    assert len(versions) == 1


@pytest.mark.parametrize("path", CONTAINERS, ids=lambda path: path.name)
def test_what_a_container_needs_is_let_through(path: Path):
    allowed = {line[1:] for line in text_of(".dockerignore").splitlines() if line.startswith("!")}
    copied = re.findall(r"^COPY (\S+) (?!\.$)\S+$", path.read_text(encoding="utf-8"), re.MULTILINE)
    packages = PROJECT["tool"]["setuptools"]["packages"]["find"]["include"]
    assert copied
    assert {*copied, *(name.strip("*") for name in packages), "pyproject.toml"} <= allowed
    assert all(list(ROOT.glob(name)) for name in allowed)


@pytest.mark.parametrize("path", CONTAINERS, ids=lambda path: path.name)
def test_a_container_installs_torch_like_everybody(path: Path):
    assert re.search(r"^RUN scripts/install_torch\.sh python (cpu|default)", path.read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("path", [*CONTAINERS, *WORKFLOWS], ids=lambda path: path.name)
def test_what_others_publish_is_named_by_its_content(path: Path):
    text = path.read_text(encoding="utf-8")
    assert not re.findall(r"uses: (?!\S+@[0-9a-f]{40} # v[\d.]+$).*", text, re.MULTILINE)
    assert not re.findall(r"python:3(?![\w.-]*@sha256:[0-9a-f]{64}\b).*", text)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_only_a_last_job_may_write_and_it_runs_nothing_of_the_checkout(path: Path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    writers = [job for job in workflow["jobs"].values() if "write" in job.get("permissions", {}).values()]
    assert writers in ([], [list(workflow["jobs"].values())[-1]])
    for job in writers:
        assert job["needs"]
        assert not [
            step for step in job["steps"] if "checkout" in step.get("uses", "") or "make" in step.get("run", "")
        ]


def test_workflows_and_continuous_integration_run_targets_that_exist():
    targets = set(re.findall(r"^([\w-]+):", text_of("Makefile"), re.MULTILINE))
    lines = [
        step["run"] for path in WORKFLOWS for job in jobs_of(path).values() for step in job["steps"] if "run" in step
    ]
    lines += re.findall(r"^make .*", text_of(".ci/run"), re.MULTILINE)
    asked = {word for line in lines for word in re.findall(r"^make ([\w-]+)", line)}
    assert {"test", "lint", "types", "docs", "package", "sbom"} <= asked <= targets
    assert ".ci/run" in lines


@pytest.mark.parametrize("path", CONTAINERS, ids=lambda path: path.name)
def test_a_containers_example_is_a_command(path: Path):
    (words,) = re.findall(r"^# .*skillc-gym(?::gpu)? ([a-z-]+.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    name, *options = words.split()
    parse(find_command(name).options, options, f"skillc {name}")


def test_the_citation_names_this_version():
    citation = yaml.safe_load(text_of("CITATION.cff"))
    assert citation["version"] == __version__
    assert citation["authors"] == [{"name": "The skillc-gym authors"}]


def test_the_page_of_packages_names_every_extra():
    page = text_of("docs/packages.md")
    adapters = {path.stem for path in (ROOT / "docs" / "adapters").glob("*.md")} - {"trl"}
    assert set(EXTRAS) - adapters - {"webshop"} <= set(re.findall(r"`([a-z0-9]+)`", page))

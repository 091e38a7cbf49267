"""A study calls itself preregistered only where git has its file from before the first cell."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from skillc_gym.errors import ConfigError
from skillc_lab.studies import compare, read_record, read_run_file
from skillc_lab.studies.cells import write_cell
from tests.skillc_lab.studies_of import TEXT, cell_of

LATER, EARLIER = "2040-01-01T00:00:00Z", "2001-01-01T00:00:00Z"


def git(folder: Path, *words: str) -> None:
    own = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *own, *words], check=True, capture_output=True)


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    git(tmp_path, "init")
    path = tmp_path / "own.yaml"
    path.write_text(f"{TEXT}preregistered: true\n")
    return path


def committed(path: Path) -> Path:
    git(path.parent, "add", path.name)
    git(path.parent, "commit", "-m", "declare")
    return path


def played(started: str):
    """What plays a cell, as of a time; it writes down the plan's file, as `run_cell` does."""

    def work(plan, cell) -> None:
        write_cell(plan, cell, cell_of(cell.place, [False], started=started, run_file=plan.declared.to_json()))

    return work


def start(path: Path, started: str = LATER):
    plan = read_run_file(path, path.parent / "out")
    jobs = [job for job in plan.jobs if not job.trained]
    return plan, lambda: compare(plan, [], work=played(started)), jobs


def test_what_git_does_not_have_is_not_preregistered(run_file):
    _, run, _ = start(run_file)
    with pytest.raises(ConfigError, match="commit it before the first cell"):
        run()
    committed(run_file).write_text(run_file.read_text() + "# changed\n")
    with pytest.raises(ConfigError, match="commit it before the first cell"):
        start(run_file)[1]()


def test_a_cell_from_before_the_commit_or_of_another_file_refutes_it(run_file):
    plan, run, jobs = start(committed(run_file))
    run()
    played(EARLIER)(plan, jobs[0])
    with pytest.raises(ConfigError, match=f"{jobs[0].name} began {EARLIER}"):
        run()
    played("")(plan, jobs[0])
    with pytest.raises(ConfigError, match="not recorded"):
        run()
    played(LATER)(plan, jobs[0])
    run_file.write_text(run_file.read_text() + "# changed\n")
    with pytest.raises(ConfigError, match="another content"):
        start(committed(run_file))[1]()


def test_the_record_says_when_it_was_declared_and_when_it_began(run_file, monkeypatch):
    plan, run, jobs = start(committed(run_file))
    played(LATER)(plan, jobs[0])
    run()
    text = (plan.folder / "own.json").read_text()
    assert plan.declared is not None
    for said in (plan.declared.sha256, plan.declared.commit, plan.declared.committed, f'"first_cell": "{LATER}"'):
        assert str(said) in text
    (cell,) = read_record(plan.folder / "own.json").results
    assert (cell.started, cell.run_file) == (LATER, plan.declared.to_json())

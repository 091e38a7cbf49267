"""Run files of studies: what they may say, what is refused in words, and which were declared before they ran."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from skillc_gym.envs.registry import env_spec
from skillc_gym.errors import ConfigError, MissingDataError, UnknownNameError
from skillc_lab.studies import compare, held_out_split, read_record, read_run_file
from skillc_lab.studies.cells import write_cell
from tests.skillc_lab.studies_of import TEXT as STUDY
from tests.skillc_lab.studies_of import cell_of

STUDIES = sorted((Path(__file__).resolve().parents[3] / "benchmarks" / "studies").iterdir())
TEXT = """
starts: {easy: shipped, hard: shipped-hard}
methods: [grpo, "skillc+relabelling:alpha=0"]
budget_tokens: 1000
steps: 4
evaluate_every: 2
"""


def written(folder: Path, text: str, name: str = "own.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_the_studies_of_the_project_can_be_read(path, tmp_path):
    plan = read_run_file(path, tmp_path)
    assert plan.title == path.stem
    assert len(plan.cells) == len(plan.methods) * len(plan.seeds) * len(plan.models)


def test_what_a_file_leaves_out_is_as_in_the_demonstration(tmp_path):
    plan = read_run_file(written(tmp_path, TEXT), tmp_path)
    assert (plan.title, plan.budget, plan.seeds, plan.held_out) == ("own", 1000, (0, 1, 2), "valid_unseen")
    assert plan.methods == ("grpo", "skillc+relabelling:alpha=0")
    assert dict(plan.models) == {"easy": "shipped", "hard": "shipped-hard"}
    assert (plan.config.learning_rate, plan.config.task_sampling, plan.config.validate_every) == (3e-4, "types", 2)
    assert plan.config.method_options == {"tau_retire": 0.05}


def test_a_grid_adds_to_a_methods_own_options(tmp_path):
    own = "overrides: {skillc: {preset_options: {omega: 0.5, tau_retire: 0.2}}}\ngrid: {method_options.omega: [0.1]}\n"
    text = TEXT.replace('grpo, "skillc+relabelling:alpha=0"', "skillc")
    plan = read_run_file(written(tmp_path, text + own), tmp_path)
    assert plan.training(plan.cells[0]).method_options == {"omega": 0.1, "tau_retire": 0.2}


def test_toml_says_the_same(tmp_path):
    text = (
        'methods = ["grpo", "skillc+relabelling:alpha=0"]\nbudget_tokens = 1000\nsteps = 4\nevaluate_every = 2\n'
        '[starts]\neasy = "shipped"\nhard = "shipped-hard"\n'
    )
    plan = read_run_file(written(tmp_path, text, "own.toml"), tmp_path)
    assert plan == read_run_file(written(tmp_path, TEXT), tmp_path)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (TEXT + "seedz: [1]", UnknownNameError, "seedz.*seeds"),
        (TEXT + "settings: {lerning_rate: 1}", UnknownNameError, "learning_rate"),
        (TEXT + "overrides: {grpo: {stepz: 1}}", UnknownNameError, "overrides of grpo"),
        (TEXT + "overrides: {grpo: {seed: 3, resume: none}}", ConfigError, "grpo overrides resume, seed"),
        (TEXT + "held_out: valid_unsen", UnknownNameError, "split of the held-out tasks.*valid_unseen"),
        (TEXT + "held_out_per_type: 0", ConfigError, "at least 1, or none for all; got 0"),
        (TEXT.replace("grpo", "grop"), UnknownNameError, "grpo"),
        (TEXT.replace("steps: 4", "steps: 0"), ConfigError, "at least 1"),
        (TEXT.replace("budget_tokens: 1000\nsteps: 4", ""), ConfigError, "nothing of budget_tokens, steps"),
        ("- grpo", ConfigError, "must hold keys and values"),
        ("a: [", ConfigError, "cannot be read"),
    ],
)
def test_a_file_that_makes_no_study_is_refused(text, error, message, tmp_path):
    with pytest.raises(error, match=message):
        read_run_file(written(tmp_path, text), tmp_path)
    with pytest.raises(MissingDataError, match="no run file"):
        read_run_file(tmp_path / "none.yaml", tmp_path)


def test_the_held_out_split_is_the_environments_own_where_it_has_one(monkeypatch):
    assert held_out_split("webshop", None) == "test"
    assert held_out_split("webshop", "valid") == "valid"
    silent = replace(env_spec("coins"), warm_start=None)
    monkeypatch.setattr("skillc_lab.studies.run_file.env_spec", lambda _: silent)
    assert held_out_split("coins", "train") == "train"
    with pytest.raises(ConfigError, match="must be named"):
        held_out_split("coins", None)


# Declared beforehand --------------------------------------------------------------------------------------------------

LATER, EARLIER = "2040-01-01T00:00:00Z", "2001-01-01T00:00:00Z"


def git(folder: Path, *words: str) -> None:
    own = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *own, *words], check=True, capture_output=True)


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    git(tmp_path, "init")
    return written(tmp_path, f"{STUDY}preregistered: true\n")


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

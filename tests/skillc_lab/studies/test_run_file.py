"""Run files of studies: what they may say, and which were declared before they ran; jobs in processes of their own."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import pytest

from skillc_gym.envs.registry import env_spec
from skillc_gym.errors import ConfigError, MissingDataError, UnknownNameError
from skillc_lab.studies import (
    Cell,
    ComparisonRecord,
    compare,
    cores,
    held_out_split,
    read_record,
    read_run_file,
    require_recorded,
    restore_cells,
    run_jobs,
)
from skillc_lab.studies.cells import write_cell
from tests.skillc_lab.studies_of import TEXT, cell_of, plan_of

STUDIES = sorted((Path(__file__).resolve().parents[3] / "benchmarks" / "studies").iterdir())


@pytest.mark.filterwarnings("ignore::FutureWarning")  # run files from before options were renamed
@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_the_studies_of_the_project_can_be_read_and_their_records_checked(path, tmp_path):
    plan, recorded = read_run_file(path, tmp_path), path.parents[1] / "records" / f"{path.stem}.json"
    assert plan.title == path.stem
    assert len(plan.cells) == len(plan.methods) * len(plan.seeds) * len(plan.models)
    if recorded.is_file():
        record = read_record(recorded)
        require_recorded(plan, [cell for cell in plan.cells if cell.place in record.found], record)
        other = plan.config.with_(chat_options={"role": "somebody else"})
        with pytest.raises(ConfigError, match="chat_options was"):
            require_recorded(replace(plan, config=other), [Cell(*record.results[0].place)], record)


def test_cells_of_recorded_studies_keep_their_hashes(tmp_path):
    """Else no study that was begun could go on, and none of its policies be played again."""
    plan = read_run_file(STUDIES[0].with_name("main_shop_rest.yaml"), tmp_path)
    start, cell = plan.jobs[:2]
    assert (plan.digest(start)[:12], plan.digest(cell)[:12]) == ("7544b3c30c80", "537df2036da3")
    assert plan.library_sha256(cell)[:12] == "c306ed76305c"


def test_what_a_file_leaves_out_is_as_in_the_demonstration(tmp_path):
    plan = plan_of(tmp_path, TEXT.replace("ppo]", '"skillc+relabelling:alpha=0"]').replace("seeds: [0, 1]\n", ""))
    assert (plan.title, plan.budget, plan.seeds, plan.held_out) == ("own", 100, (0, 1, 2), "valid_unseen")
    assert plan.methods == ("grpo", "skillc+relabelling:alpha=0")
    assert dict(plan.models) == {"easy": "shipped"}
    assert (plan.config.learning_rate, plan.config.task_sampling, plan.config.validate_every) == (3e-4, "types", 2)
    assert plan.config.method_options == {"tau_retire": 0.05}


HEAT_COOL = ["pick_heat_then_place_in_recep", "pick_cool_then_place_in_recep"]


def test_held_out_tasks_may_be_of_types_that_training_has_none_of(tmp_path):
    text = TEXT + "settings: {task_types: [heat]}\n"
    plan, plain = plan_of(tmp_path, text + "held_out_types: [heat, cool]\n"), plan_of(tmp_path, text)
    start, cell = plan.jobs[0], plan.cells[0]
    assert (plan.training(cell).task_types, plan.evaluation(cell, "p").task_types) == (("heat",), tuple(HEAT_COOL))
    assert plain.evaluation(cell, "p").task_types == ("heat",)
    assert all(plan.digest(each) != plain.digest(each) for each in (start, cell))
    assert plan.protocol == {**plain.protocol, "held_out_types": HEAT_COOL}
    assert plan.protocol == plan_of(tmp_path, f"{text}held_out_types: [cool, {HEAT_COOL[0]}, heat]\n").protocol
    record = ComparisonRecord("own", plain.protocol, (cell_of(cell.place, [True]),))
    with pytest.raises(ConfigError, match="held_out_types was None and is"):
        restore_cells(plan, record)
    with pytest.raises(UnknownNameError, match="task type of the held-out tasks 'heet'"):
        plan_of(tmp_path, text + "held_out_types: [heet]\n")
    for odd in ("held_out_types: []\n", "held_out_types: [shopping]\nenv: webshop\n"):
        with pytest.raises(ConfigError, match="held_out_types names some of several task types"):
            plan_of(tmp_path, TEXT + odd)


def test_a_run_file_with_a_grid_is_all_of_its_settings(tmp_path):
    more = "grid: {method_options.omega: [0.1, 0.2]}\n"
    more += "overrides: {skillc: {steps: 3, preset_options: {omega: 0.5, tau_retire: 0.2}}, own: {method: grpo}}\n"
    plan = plan_of(tmp_path, TEXT.replace("grpo, ppo", "skillc") + more)
    assert plan.methods == ("skillc.omega=0.1", "skillc.omega=0.2", "own")
    first, *_, beside = (plan.training(cell) for cell in plan.cells[:3])
    assert (first.steps, first.method_options) == (3, {"omega": 0.1, "tau_retire": 0.2}), "it adds to a method's own"
    assert (beside.method, beside.steps) == ("grpo", 4)


def test_powers_of_ten_are_numbers(tmp_path):
    more = "settings: {learning_rate: 1e-3}\ngrid: {beta: [1E-2, 5.e+0, '1e-3 x', 0.5e-1]}\n"
    with pytest.raises(ConfigError, match="got '1e-3 x'"):
        plan_of(tmp_path, TEXT + more)
    plan = plan_of(tmp_path, TEXT + more.replace("'1e-3 x', ", ""))
    assert plan.config.learning_rate == 1e-3
    assert [plan.training(cell).beta for cell in plan.cells if cell.method.startswith("grpo")][:3] == [0.01, 5.0, 0.05]


def test_toml_says_the_same(tmp_path):
    path = tmp_path / "own.toml"
    rest = TEXT.partition("\n")[2].replace("grpo, ppo", "'grpo', 'ppo'").replace(":", " =")
    path.write_text(f'{rest}[starts]\neasy = "shipped"\n', encoding="utf-8-sig")
    assert read_run_file(path, tmp_path) == plan_of(tmp_path)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (TEXT + "seedz: [1]", UnknownNameError, "seedz.*seeds"),
        (TEXT + "settings: {budget_tokens: 7, steps: 3}", ConfigError, "settings names budget_tokens, steps"),
        (TEXT + "overrides: {grpo: {seed: 3, resume: none}}", ConfigError, "grpo overrides resume, seed"),
        (TEXT + "held_out: valid_unsen", UnknownNameError, "split of the held-out tasks.*valid_unseen"),
        (TEXT + "held_out_per_type: 0", ConfigError, "at least 1, or none for all; got 0"),
        (TEXT + "grid: {engine: transformers}", ConfigError, "engine takes a list of values, got 'transformers'"),
        (TEXT.replace("budget_tokens: 100\nsteps: 4", ""), ConfigError, "nothing of budget_tokens, steps"),
        (TEXT.replace("[0, 1]", "0"), ConfigError, "seeds must be a list, got 0"),
        (TEXT.replace("{easy: shipped}", "{}"), ConfigError, "starts names no model"),
        (TEXT + "seeds: [3]", ConfigError, "the key seeds stands twice"),
        (TEXT + "settings: {beta: 0.1, kl_coef: 0.2}", ConfigError, "settings: beta and kl_coef are one setting"),
        (TEXT + "settings: {template_options: {date_string: 2024-07-26}}", ConfigError, "put dates into quotes"),
        (TEXT + "settings: {template_options: &a {d: *a}}", ConfigError, "holds what no JSON can"),
        (TEXT + "grid: {beta: [0.1], kl_coef: [0.2]}", ConfigError, "the grid, grpo.*beta and kl_coef are one"),
    ],
)
def test_a_file_that_makes_no_study_is_refused(text, error, message, tmp_path):
    with pytest.raises(error, match=message):
        plan_of(tmp_path, text)
    with pytest.raises(MissingDataError, match="no run file"):
        read_run_file(tmp_path / "none.yaml", tmp_path)


def test_keys_that_are_merged_may_be_set_again(tmp_path):
    shared = "settings: &all {learning_rate: 0.1, temperature: 0.9}\n"
    own = "overrides:\n  grpo: &own {<<: *all, learning_rate: 0.2}\n  ppo: {<<: *own, learning_rate: 0.3}\n"
    plan = plan_of(tmp_path, TEXT + shared + own)
    assert [plan.overrides[name]["learning_rate"] for name in ("grpo", "ppo")] == [0.2, 0.3]
    assert plan.overrides["ppo"]["temperature"] == 0.9


def test_the_held_out_split_is_the_environments_own_where_it_has_one(monkeypatch):
    assert [held_out_split("webshop", named) for named in (None, "valid")] == ["test", "valid"]
    silent = replace(env_spec("coins"), warm_start=None, splits=())
    monkeypatch.setattr("skillc_lab.studies.run_file.env_spec", lambda _: silent)
    assert held_out_split("coins", "train") == "train"
    with pytest.raises(ConfigError, match="must be named"):
        held_out_split("coins", None)


def test_an_environment_without_demonstrations_plays_the_data_that_is_named(tmp_path):
    text = TEXT.replace("shipped", "m") + "env: webshop-browser\nheld_out: test\n"
    assert [plan_of(tmp_path, text + more).config.data for more in ("", "data: generated\n")] == [None, "generated"]


# Declared beforehand --------------------------------------------------------------------------------------------------

LATER, EARLIER = "2040-01-01T00:00:00Z", "2001-01-01T00:00:00Z"


def git(folder: Path, *words: str) -> None:
    own = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *own, *words], check=True, capture_output=True)


@pytest.fixture
def run_file(tmp_path):
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
        write_cell(plan, cell, cell_of(cell.place, [False], started=started, run_file=asdict(plan.declared)))

    return work


def start(path: Path):
    """A plan, what runs it, and its job of the untrained policy."""
    plan = read_run_file(path, path.parent / "out")
    (job,) = [job for job in plan.jobs if not job.trained]
    return plan, lambda: compare(plan, [], work=played(LATER)), job


def test_what_git_does_not_have_is_not_preregistered(run_file):
    with pytest.raises(ConfigError, match="commit it before the first cell"):
        start(run_file)[1]()
    committed(run_file).write_text(run_file.read_text() + "# changed\n")
    with pytest.raises(ConfigError, match="commit it before the first cell"):
        start(run_file)[1]()


def test_a_cell_from_before_the_commit_or_of_another_file_refutes_it(run_file):
    plan, run, job = start(committed(run_file))
    for started, fault in ((EARLIER, f"{job.name} began {EARLIER}"), ("", "not recorded")):
        played(started)(plan, job)
        with pytest.raises(ConfigError, match=fault):
            run()
    played(LATER)(plan, job)
    run()
    run_file.write_text(run_file.read_text() + "# changed\n")
    with pytest.raises(ConfigError, match="another content"):
        start(committed(run_file))[1]()


def test_cells_from_before_the_commit_are_not_taken_from_a_record(run_file):
    plan, _, job = start(committed(run_file))
    later = cell_of(job.place, [False], started=LATER, run_file=asdict(plan.declared))
    with pytest.raises(ConfigError, match=f"{job.name} began {EARLIER}"):
        restore_cells(plan, ComparisonRecord(plan.title, plan.protocol, [replace(later, started=EARLIER)]))
    assert not (plan.folder / "cells").exists()
    assert restore_cells(plan, ComparisonRecord(plan.title, plan.protocol, [later]))


def test_the_record_says_when_it_was_declared_and_when_it_began(run_file):
    plan, run, job = start(committed(run_file))
    played(LATER)(plan, job)
    run()
    text = (plan.folder / "own.json").read_text()
    for said in (plan.declared.sha256, plan.declared.commit, plan.declared.committed, f'"first_cell": "{LATER}"'):
        assert str(said) in text
    (cell,) = read_record(plan.folder / "own.json").results
    assert (cell.started, cell.run_file) == (LATER, asdict(plan.declared))


# Jobs: as many at a time as asked for, failures passed over, none left behind -----------------------------------------


def work(folder: Path, job: int) -> None:
    if job == 2:
        raise ValueError("two is refused")
    (folder / f"done-{job}").write_text(os.environ["OMP_NUM_THREADS"])


def wait_for_ever(folder: Path, job: int) -> None:
    (folder / f"pid-{job}").write_text(str(os.getpid()))
    time.sleep(600)


def test_a_core_that_this_process_may_not_use_counts_for_nothing(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3}, raising=False)
    assert cores() == 1


def test_a_job_that_fails_leaves_its_words_and_lets_the_others_run(tmp_path):
    jobs = {tmp_path / "logs" / f"{job}.log": job for job in (1, 2, 3)}
    ended = dict(run_jobs(partial(work, tmp_path), jobs, workers=2))
    assert ended == {1: True, 2: False, 3: True}
    assert (tmp_path / "done-3").read_text() == "1"
    assert "two is refused" in (tmp_path / "logs" / "2.log").read_text()


def test_no_process_outlives_the_one_that_asked_for_it(tmp_path, wait_for):
    path = tmp_path / "asks.py"
    path.write_text(
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "from functools import partial; from pathlib import Path\n"
        "from tests.skillc_lab.studies.test_run_file import run_jobs, wait_for_ever\n"
        "if __name__ == '__main__':\n"
        f"    folder = Path({str(tmp_path)!r})\n"
        "    list(run_jobs(partial(wait_for_ever, folder), {folder / '1.log': 1}, workers=1))\n"
    )
    with subprocess.Popen([sys.executable, str(path)]) as parent:
        pid = tmp_path / "pid-1"
        wait_for(lambda: pid.is_file() and pid.read_text())
        number = int(pid.read_text())
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    wait_for(lambda: not _alive(number), 20)


def _alive(number: int) -> bool:
    try:
        state = Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"

"""Whatever is wrong on a command line: status 2, one message that names thing and remedy; Ctrl-C leaves all usable."""

import json
import os
import shlex
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from skillc_gym.episodes import write_jsonl
from skillc_lab.cli.main import main as skillc
from tests.trainers.toys import episode
from trainers.tracking import RunFolder, write_json

TINY = "method=skillc steps=1 tasks_per_step=2 group_size=2 panel_per_type=1 max_episode_steps=2 max_reply_tokens=4"
TINY += " chat=compact"
FETCH = "data='generated'"

needs_trl = pytest.mark.skipif(find_spec("trl") is None, reason="needs the train extra")

SHARED = [
    ("data=nowhere", "nowhere", FETCH),
    ("data={bad}/archive.tar.xz", "archive.tar.xz", "cut off", FETCH),
    ("data={bad}/foreign", "trial_G", "'grammar'"),
    ("split=test", "'test'", "train, valid_seen, valid_unseen, valid_train"),
    ("library={bad}/skills", "heat/SKILL.md", "front matter", "'---'"),
    ("model=nomodel", "model='nomodel'"),
    ("model={bad}/weights", "weights", "copy it again"),
    ("env=alfwrld", "'alfwrld'", "Did you mean 'alfworld'"),
    ("engine=nope", "'nope'", "transformers, vllm"),
    ("env.bogus=1", "option of skillc/ALFWorld-v0 'bogus'", "engine, generator, domain_randomization"),
]
WORKING = {
    "train": f"{TINY} model=shipped data={{games}} run=run",
    "evaluate": f"{TINY} model=shipped data={{games}} split=valid_seen per_type=1 out=out",
    "tools make-policy": "--out policy --episodes 2 --batches 1",
    "demo": "--out run",
}
"""Words that work, of commands that need the train extra: a case's words stand behind them, and a later word wins."""
CASES = {
    "train": [
        *SHARED,
        ("method=skilc data=nowhere", "method 'skilc'", "Did you mean 'skillc'"),
        ("resume=nowhere", "resume='nowhere'", "run.json"),
        *([] if find_spec("vllm") else [("engine=vllm", "pip install 'skillc-gym[vllm]'")]),
        ("run={bad}/archive.zip", "archive.zip", "choose another"),
    ],
    "evaluate": [
        *SHARED,
        ("out={bad}/archive.zip/x", "archive.zip", "choose another"),
        ("run=mine", "has no use for --run", "--out"),
    ],
    "tools make-policy": [
        ("--data {bad}/cut", "game.tw-pddl", "JSON"),
        ("--out {bad}/archive.zip/x", "archive.zip", "choose another"),
    ],
    "demo": [
        ("--policy nowhere", "nowhere", "make-policy"),
        ("--model shipped", "--quick", "skillc train --model"),
        ("--out {bad}/archive.zip", "archive.zip", "choose another"),
        ("--quick --held-out 0", "held-out tasks", "at least 1"),
        ("--train.method sdar", "--train.method is the demonstration's own: give --method"),
        ("--quick --model smollm2-household", "skillc get-model smollm2-household"),
    ],
    "play": [("--task-type fly", "task type"), ("--task-id nothing", "task id")],
    "serve-webshop": [
        ("--data nothing", "no folder"),
        ("--data generated --host no.such.host.example", "cannot listen"),
    ],
    "compare": [("--budget-tokens 9 --model mine --method grpo", "name methods by --methods")],
    "replay": [
        ("nothing --atif out --out page.html", "writes trajectories alone"),
        (".", "expected transcripts/"),
    ],
    "report": [(".", "expected metrics.jsonl or"), (". --versus x .", "--versus names . itself")],
    "study": [("own.yaml --draw --workers -1", "no use for --workers")],
    "tune": [("--model m --budget-tokens 9 --methods grpo:clip=0.1 grid.steps=1,2", "give grid.method.clip=0.1")],
    "tools card": [("recipe grpo", "recipe")],
    "tools make-games": [
        ("--out games --mix pick=many heat=1", "--mix takes 'real' or weights"),
        ("--out .", "is not an empty folder; name a new folder"),
    ],
    "tools make-demonstrations": [("--out mine", "exists")],
    "tools make-catalog": [
        ("--out out", "Name one of --source"),
        ("--out . --generate 5", "not an empty folder"),
        ("--out out --generate 5 --attributes mine", "go with --products only"),
    ],
    "tools convert-skills": [
        ("nowhere x", "No skill library 'nowhere'"),
        ("alfworld x --env alfworld --types heat=warm", "NEW one of"),
        ("alfworld mine --to bank", "nothing is overwritten"),
        ("alfworld x --form bank", "leave it out for the library"),
    ],
    "skills": [
        ("chek alfworld", "check"),
        ("check alfworld webshop", "looks at one library, got 'webshop' beside it"),
    ],
    "skills test": [("nowhere --model scripted", "No skill library")],
    "learn-skills": [
        ("", "--from FILE"),
        ("--from nowhere.jsonl --writer model --model m --out .", "is not an empty folder; name a new folder"),
        ("--from mine --out l --writer steps --notes", "no use for --notes; let a model write by --writer model"),
        ("--from mine --out l --writer openai", "The writer openai needs a language model: --model NAME"),
        ("--from mine --out l --writer transformers --model shipped", "transformers says nothing but commands"),
    ],
    "board": [
        ("add", "takes the folder of an evaluation, or the file of a result"),
        ("--results nowhere", "nowhere is no folder of results"),
        ("add . --results board", "holds no evaluation"),
    ],
    "doctor": [("--data generated", "name it by --env")],
    "tools fan-out": [("none", "none"), ("mine --cpus 0", "cpus must be positive")],
}


@pytest.fixture(autouse=True)
def somewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)


@pytest.fixture
def refuse(says):
    """Runs a command that must end with status 2 and one message, at the end of what is said."""

    def run(command: str, words: list[str], *expected: str) -> str:
        said = says(command, *words, status=2)
        message = said.strip().splitlines()[-1]
        assert message.startswith(f"skillc {command}: error: ")
        assert all(part in message for part in expected), message
        assert "Traceback" not in said
        return said

    return run


@pytest.mark.parametrize(("command", "case"), [(name, case) for name, cases in CASES.items() for case in cases])
def test_it_is_refused_and_nothing_is_written(command, case, games, damaged, refuse, monkeypatch):
    if command in WORKING:
        pytest.importorskip("trl", reason="needs the train extra")
    for started in ("demonstration._evaluation", "demo.evaluate_policy"):
        monkeypatch.setattr(f"skillc_lab.commands.{started}", lambda *_, **__: pytest.fail("an evaluation was started"))
    precious = write_jsonl(Path("mine"), [episode("train/0", kind="pick_heat_then_place_in_recep")]).read_text()
    words = [*WORKING.get(command, "").format(games=games).split(), *shlex.split(case[0].format(bad=damaged))]
    said = refuse(command, words, *case[1:])
    assert command in WORKING or said.count("\n") == 1
    # A game's inside is read when it is played first, and by then a run has begun.
    empty = {"run", "run/.lock", "out", "out/.lock", "policy"}
    assert "foreign" in case[0] or {str(path) for path in Path().rglob("*")} <= {"mine", *empty}
    assert command != "demo" or [path.name for path in Path().iterdir()] == ["mine"]
    assert Path("mine").read_text() == precious


@needs_trl
def test_a_missing_extra_or_model_is_named(games, refuse, monkeypatch):
    monkeypatch.setitem(sys.modules, "trl", None)
    words = [*TINY.split(), "model=shipped", f"data={games}", "run=run"]
    refuse("train", words, "pip install 'skillc-gym[train]'", "pip install -e '.[train]'")
    refuse("train", ["steps=3"], "--model is missing", "checkpoint")


def test_a_wheel_that_would_not_be_read_is_refused(tmp_path, refuse, monkeypatch):
    monkeypatch.setenv("SKILLC_CACHE", str(tmp_path))
    folder = tmp_path / "models" / "smollm2-135m"
    write_json(folder / "config.json", {})
    refuse("get-model", ["smollm2-135m", "--wheel", "some.whl"], str(folder), "some.whl would not be read")


# Ctrl-C ---------------------------------------------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[3]


def updates() -> list[int]:
    path = Path("run/metrics.jsonl")
    lines = path.read_text().splitlines() if path.exists() else []
    return [record["step"] for record in map(json.loads, lines) if record["event"] == "train"]


@needs_trl
@pytest.mark.slow
def test_an_interrupted_run_goes_on(games, capsys, wait_for):
    """On a real process."""
    longer = "steps=4 max_episode_steps=3 max_reply_tokens=8 validate_every=2 save_every=50 model=shipped run=run"
    words = [*TINY.split(), *longer.split(), f"data={games}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(ROOT / "scripts" / "train.py"), *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True)
    wait_for(lambda: updates() or process.poll() is not None, 120)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    done, run = updates(), Path("run")
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert "goes on from step" in said
    assert 0 < len(done) < 4
    assert [path.name for path in (run / "checkpoints").iterdir()] == [f"step-{done[-1]:06d}"]
    kept = {"config.json", "versions.json", "tasks.json", "metrics.jsonl"}
    assert kept <= {path.name for path in run.iterdir()}
    assert skillc(["train", *words]) == 0
    assert f"(step {done[-1]})" in capsys.readouterr().err
    assert updates() == [1, 2, 3, 4]
    assert (run / "policy/model.safetensors").exists()


def test_two_evaluations_do_not_write_into_one_folder(tmp_path, says):
    with RunFolder(tmp_path).locked():
        assert "Another process is at work in" in says("evaluate model=shipped", f"out={tmp_path}", status=2)

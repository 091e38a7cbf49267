"""``skillc skills`` and ``skillc learn-skills``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skill_library import load_library
from skillc_gym.episodes import write_jsonl
from tests.openai_server import openai_server
from tests.trainers.rollouts_of import episode
from trainers.commands.cli.main import main as skillc

HEAT = ["take egg 1 from fridge 1", "heat egg 1 with microwave 1", "move egg 1 to shelf 1"]
KIND = "pick_heat_then_place_in_recep"


@pytest.fixture
def transcripts(tmp_path: Path) -> Path:
    path = tmp_path / "t.jsonl"
    write_jsonl(
        path, [episode(f"train/{i}", won=i < 3, kind=KIND, actions=HEAT if i < 3 else HEAT[::2]) for i in range(6)]
    )
    return path


def test_transcripts_become_a_library(transcripts, tmp_path, capsys):
    out = str(tmp_path / "learned")
    assert skillc(["learn-skills", "--from", str(transcripts), "--out", out]) == 0
    assert "1 skills from 6 episodes" in capsys.readouterr().out
    assert skillc(["skills", "check", out, "--shows", KIND]) == 0
    assert "Key step: heat O with microwave 1" in capsys.readouterr().out
    assert skillc(["skills", "check", out, "--env", "alfworld"]) == 1
    assert "no skill serves the task type look_at_obj_in_light" in capsys.readouterr().out


def test_test_tasks_teach_nothing(tmp_path, capsys):
    write_jsonl(tmp_path / "t.jsonl", [episode("valid_unseen/x", kind=KIND, actions=HEAT)])
    words = ["learn-skills", "--from", str(tmp_path / "t.jsonl"), "--out", str(tmp_path / "l")]
    assert skillc(words) == 2
    assert "training tasks only" in capsys.readouterr().err
    assert skillc([*words, "--split", "valid_unseen"]) == 0


def test_a_model_behind_a_server_may_write(transcripts, tmp_path, capsys):
    with openai_server(lambda messages: '{"skills": ["Heat it in the microwave."]}') as server:
        words = f"learn-skills --from {transcripts} --out {tmp_path / 'l'} --writer model --model m --engine openai"
        assert skillc([*words.split(), "--engine.base_url", server.base_url]) == 0
    assert len(server.requests) == 1
    assert "Heat it in the microwave." in load_library(tmp_path / "l").for_task(KIND).text


def test_a_model_may_take_notes_first(transcripts, tmp_path, capsys):
    def reply(messages):
        asked = messages[-1]["content"]
        return (
            '{"note": "Heat it."}' if "one note" in asked else '{"skills": ["Heat it first."], "mistakes": ["Haste."]}'
        )

    out = tmp_path / "l"
    words = f"learn-skills --from {transcripts} --out {out} --notes --writer"
    assert skillc([*words.split(), "steps"]) == 2
    assert "--writer model" in capsys.readouterr().err
    with openai_server(reply) as server:
        model = ["model", "--model", "m", "--engine", "openai", "--engine.base_url", server.base_url]
        assert skillc([*words.split(), *model]) == 0
    assert load_library(out).for_task(KIND).text.startswith("Heat it first.\n\nMistake to avoid: Haste.")
    notes = [json.loads(line) for line in (out / "notes.jsonl").read_text().splitlines()]
    assert len(notes) == 6
    assert notes[0] == {"task_id": "train/0", "task_type": KIND, "won": True, "text": "Heat it."}


@pytest.mark.parametrize(
    ("env", "train", "test"),
    [("webshop", "synthetic/1500", "synthetic/499"), ("coins", "train/easy/02-0000", "test/easy/02-0000")],
)
def test_every_world_knows_its_training_tasks(env, train, test, tmp_path, capsys):
    words = ["learn-skills", "--env", env, "--out", str(tmp_path / "l"), "--from", str(tmp_path / "t.jsonl")]
    write_jsonl(tmp_path / "t.jsonl", [episode(train, kind="x"), episode(test, kind="x")])
    assert skillc(words) == 2
    assert f"1 episodes are not of the split 'train', such as {test}" in capsys.readouterr().err
    assert skillc([*words, "--split", "tset"]) == 2
    write_jsonl(tmp_path / "t.jsonl", [episode(train, kind="x"), episode("of no known split", kind="x")])
    assert skillc(words) == 0


@pytest.mark.parametrize("library", ["alfworld", "webshop"])
def test_the_shipped_libraries_pass(library, capsys):
    assert skillc(["skills", "check", library, "--model", "shipped"]) == 0
    assert "Nothing found" in capsys.readouterr().out
    assert skillc(["skills", "lint", library]) == 0
    assert skillc(["skills", "diff", library, library]) == 0
    assert skillc(["skills", "diff", "alfworld", "webshop"]) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["skills", "chek", "alfworld"], "check"),
        (["skills", "diff", "alfworld"], "name the second"),
        (["learn-skills"], "--from FILE"),
        (["learn-skills", "--from", "nowhere.jsonl", "--env", "alfwrld"], "Did you mean 'alfworld'"),
    ],
)
def test_bad_input_is_said_in_a_line(words, message, capsys):
    assert skillc(words) == 2
    assert message in capsys.readouterr().err


def test_a_folder_that_is_taken_is_refused_before_anything_is_asked(tmp_path, capsys):
    (tmp_path / "mine").write_text("precious")
    words = ["learn-skills", "--from", "nowhere.jsonl", "--writer", "model", "--model", "m", "--out"]
    assert skillc([*words, str(tmp_path)]) == 2
    assert "nothing is overwritten" in capsys.readouterr().err
    assert skillc([*words, str(tmp_path / "mine")]) == 2
    assert "name another one" in capsys.readouterr().err
    assert (tmp_path / "mine").read_text() == "precious"

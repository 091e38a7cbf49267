"""``skillc skills``, ``skillc learn-skills`` and ``skillc tools convert-skills``."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from skill_library import Skill, load_library
from skill_library.formats import write_library
from skillc_gym.episodes import write_jsonl
from skillc_lab.cli.main import main
from skillc_lab.cli.main import main as skillc
from tests.openai_server import openai_server
from tests.trainers.rollouts_of import episode

HEAT = ["take egg 1 from fridge 1", "heat egg 1 with microwave 1", "move egg 1 to shelf 1"]
KIND = "pick_heat_then_place_in_recep"


@pytest.fixture
def transcripts(tmp_path: Path) -> Path:
    played = [episode(f"train/{i}", won=i < 3, kind=KIND, actions=HEAT if i < 3 else HEAT[::2]) for i in range(6)]
    return write_jsonl(tmp_path / "t.jsonl", played)


def test_transcripts_become_a_library(transcripts, tmp_path, capsys):
    out = str(tmp_path / "learned")
    assert skillc(["learn-skills", "--from", str(transcripts), "--out", out]) == 0
    assert "1 skills from 6 episodes" in capsys.readouterr().out
    assert skillc(["skills", "check", out, "--shows", KIND]) == 0
    assert "Key step: heat O with microwave 1" in capsys.readouterr().out
    assert not (tmp_path / "learned" / "notes.jsonl").exists()


def test_test_tasks_teach_nothing(tmp_path, capsys):
    write_jsonl(tmp_path / "t.jsonl", [episode("valid_unseen/x", kind=KIND, actions=HEAT)])
    words = ["learn-skills", "--from", str(tmp_path / "t.jsonl"), "--out", str(tmp_path / "l")]
    assert skillc(words) == 2
    assert "training tasks only" in capsys.readouterr().err
    assert skillc([*words, "--split", "valid_unseen"]) == 0


OPENAI = ("model --engine openai", "openai", "openai --engine openai", "trainers.engines.openai:ENGINE")
"""Ways to name the same writer."""


@pytest.mark.parametrize("writer", [*OPENAI, "openai --notes"])
def test_a_model_behind_a_server_takes_notes_first(writer, transcripts, tmp_path, capsys):
    def reply(messages):
        written = '{"skills": ["Heat it first."], "mistakes": ["Haste."]}'
        return '{"note": "Heat it."}' if "one note" in messages[-1]["content"] else written

    out = tmp_path / "l"
    words = f"learn-skills --from {transcripts} --out {out} --model m --writer {writer}"
    with openai_server(reply) as server:
        assert skillc([*words.split(), "--engine.base_url", server.base_url]) == 0
    assert {request["model"] for request in server.requests} == {"m"}
    assert "1 skills from 6 episodes" in (said := capsys.readouterr().out)
    assert "; 6 notes" in said
    assert load_library(out).for_task(KIND).text == "Heat it first.\n\nMistake to avoid: Haste."
    notes = [json.loads(line) for line in (out / "notes.jsonl").read_text().splitlines()]
    assert len(notes) == 6
    assert notes[0] == {"task_id": "train/0", "task_type": KIND, "won": True, "text": "Heat it."}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--writer steps --notes", "no use for --notes; let a model write by --writer model"),
        ("--engine.base_url http://127.0.0.1:1/v1", "no use for --engine.OPTION"),
        ("--writer openai", "The writer openai needs a language model: --model NAME"),
        ("--writer openai --model m --engine vllm", "--writer openai and --engine vllm name two engines"),
        ("--writer model --engine opneai --model m", "Did you mean 'openai'"),
        ("--writer nowhere.at_all:ENGINE --model m", "No module named 'nowhere'"),
        ("--writer transformers --model shipped", "shipped on the engine transformers says nothing but commands"),
    ],
)
def test_writers_that_contradict_themselves_or_cannot_write_are_refused(words, message, transcripts, tmp_path, capsys):
    out = tmp_path / "l"
    assert skillc(["learn-skills", "--from", str(transcripts), "--out", str(out), *words.split()]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


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
    said = capsys.readouterr().out
    assert "Nothing found" in said
    assert "not checked" not in said
    rows = [re.findall(r" (\d+) ", line) for line in said.splitlines()[1 : 1 + len(load_library(library).skills)]]
    assert all(int(words) > 10 and int(tokens) > 10 for words, tokens in rows)
    assert skillc(["skills", "lint", library]) == 0
    assert skillc(["skills", "diff", library, library]) == 0
    assert skillc(["skills", "diff", "alfworld", "webshop"]) == 1


@pytest.fixture
def library(tmp_path: Path) -> Path:
    skills = [Skill("general", "d", ("*",), "Look."), Skill("heat", "d", (KIND,), "Heat it.\nKey step: heat.")]
    return write_library(skills, tmp_path / "mine")


def test_a_check_without_an_environment_says_what_it_left_out(library, capsys):
    assert skillc(["skills", "check", str(library)]) == 0
    said = capsys.readouterr().out
    assert "task types without a skill were not checked, since no environment was named; name it by --env" in said
    assert "Nothing found." not in said
    assert skillc(["skills", "check", str(library), "--env", "skillc/ALFWorld-v0"]) == 1
    said = capsys.readouterr().out
    assert "no skill serves the task type look_at_obj_in_light" in said
    assert "not checked" not in said


@pytest.mark.parametrize(
    ("grade", "read"),
    [
        ("full", "general+heat (full, sha256 6a4e0cb5ca85):\n\nLook.\n\nHeat it.\nKey step: heat.\n"),
        ("minimal", "general+heat (minimal"),
        ("none", "nothing (none)."),
    ],
)
@pytest.mark.parametrize("name", ["heat", KIND])
def test_a_type_is_shown_by_its_full_or_its_short_name(name, grade, read, library, capsys):
    assert skillc(["skills", "check", str(library), "--shows", name, "--grade", grade]) == 0
    assert f"{KIND} reads {read}" in capsys.readouterr().out


def recorded(library: Path, path: Path) -> Path:
    """Two episodes with the skill, one of them of another type, and one without."""
    on = {"condition": 1, "kind": KIND, "skill": "general+heat", "text": load_library(library).for_task(KIND).text}
    unlike = {**on, "kind": "pick_cool_then_place_in_recep", "skill": "cool", "text": "Cool it."}
    write_jsonl(path, [episode(**on), episode(**on), episode(**unlike), episode(kind=KIND)])
    return path


def rows(said: str) -> list[list[str]]:
    return [line.split() for line in said.split("\n")]


def test_what_episodes_saw_is_listed_with_those_that_saw_nothing(library, tmp_path, capsys):
    folder = recorded(library, tmp_path / "run" / "transcripts" / "train-000010.jsonl").parent.parent
    assert skillc(["skills", "shown", str(folder)]) == 0
    said = capsys.readouterr().out
    assert ["heat", "with", "general+heat", "-", "2", "6", "-", "6a4e0cb5ca85"] in rows(said)
    assert ["heat", "without", "-", "-", "1", "-", "-", "-"] in rows(said)
    assert "4 episodes in 1 file: 3 were shown a text, 1 were shown none." in said
    assert skillc(["skills", "shown", str(folder), "--shows", "cool", "--model", "shipped"]) == 0
    said = capsys.readouterr().out
    assert f"cool with cool - 1 2 2 {hashlib.sha256(b'Cool it.').hexdigest()[:12]}".split() in rows(said)
    assert ":\n\nCool it.\n" in said
    assert "general+heat" not in said


def test_what_episodes_saw_is_held_against_a_library(library, tmp_path, capsys):
    words = ["skills", "shown", str(recorded(library, tmp_path / "t.jsonl")), str(library), "--shows"]
    assert skillc([*words, "heat"]) == 0
    assert "6a4e0cb5ca85 same" in " ".join((said := capsys.readouterr().out).split())
    assert "contradicts its text, and with the skill each is or begins with that of mine." in said
    assert skillc([*words, "cool"]) == 1
    assert "the library mine has no such skill for this task type; 1 episodes read this one" in capsys.readouterr().out


def test_episodes_and_libraries_are_told_apart(library, tmp_path, capsys):
    file = recorded(library, tmp_path / "evaluation" / "transcripts.jsonl")
    for place in (file, file.parent):
        assert skillc(["skills", "check", str(place)]) == 2
        assert f"skillc skills shown {place} tells what they were shown" in capsys.readouterr().err
    for place in (library, tmp_path / "nowhere", write_jsonl(tmp_path / "empty.jsonl", [])):
        assert skillc(["skills", "shown", str(place)]) == 2
        assert f"{place} holds no recorded episodes: expected a file of transcripts" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["skills", "chek", "alfworld"], "check"),
        (["skills", "diff", "alfworld"], "name the second"),
        (["skills", "check", "alfworld", "webshop"], "looks at one library, got 'webshop' beside it"),
        (["skills", "check", "alfworld", "--shows", "heet"], "Did you mean 'heat'"),
        (["learn-skills"], "--from FILE"),
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


@pytest.mark.parametrize("notes", ["--notes", "--no-notes"])
def test_control_characters_of_a_model_cost_nothing_but_themselves(notes, transcripts, tmp_path):
    def reply(messages):
        if "one note" in messages[-1]["content"]:
            return json.dumps({"note": "Heat\x1b[2J it.\r\n"})
        skills = {"skills": ["Heat\x00 it.\rThen\x1b move it.", "\x00"]}
        return json.dumps(skills if notes == "--no-notes" else {**skills, "mistakes": []})

    out = tmp_path / "l"
    words = f"learn-skills --from {transcripts} --out {out} --model m --writer openai {notes}"
    with openai_server(reply) as server:
        assert skillc([*words.split(), "--engine.base_url", server.base_url]) == 0
    assert load_library(out).for_task(KIND).text.startswith("Heat it.\nThen move it.")
    assert (out / "notes.jsonl").exists() == (notes == "--notes")


# From other forms to a library that an environment can use, and back --------------------------------------------------


BANK = {
    "general_skills": [{"skill_id": "gen_001", "title": "Search", "principle": "Look everywhere once."}],
    "task_specific_skills": {
        "heat": [{"skill_id": "heat_001", "title": "Heat", "principle": "Use the microwave."}],
        "examine": [{"skill_id": "exa_001", "title": "Lamp", "principle": "Switch it on."}],
    },
    "common_mistakes": [],
}


def run(*words: object) -> int:
    return main(["tools", "convert-skills", *map(str, words)])


def test_a_bank_becomes_a_library_of_the_environment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "bank.json"
    source.write_text(json.dumps(BANK))
    assert run(source, tmp_path / "skills", "--env", "alfworld") == 2
    assert "examine=TYPE" in capsys.readouterr().err
    assert run(source, tmp_path / "skills", "--env", "alfworld", "--types", "examine=look") == 0
    library = load_library(tmp_path / "skills")
    assert library.for_task("pick_heat_then_place_in_recep").name == "gen_001+heat_001"
    assert library.for_task("look_at_obj_in_light").text.endswith("Switch it on.")


@pytest.mark.parametrize("form", ["agent-skills", "bank", "sections"])
def test_a_library_goes_out_and_comes_back(tmp_path: Path, form: str) -> None:
    there = tmp_path / ("skills.json" if form == "bank" else "skills.md" if form == "sections" else "skills")
    assert run("alfworld", there, "--to", form) == 0
    assert run(there, tmp_path / "back", "--env", "alfworld") == 0
    back, built_in = load_library(tmp_path / "back"), load_library("alfworld")
    for kind in built_in.task_types:
        mine, theirs = built_in.for_task(kind), back.for_task(kind)
        assert all(line in theirs.text for line in mine.text.splitlines())
        if form == "agent-skills":
            assert theirs == mine


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere", "x"), "neither a file nor a folder"),
        (("alfworld", "x", "--types", "heat"), "OLD=NEW"),
        (("alfworld", "x", "--env", "alfworld", "--types", "heat=warm"), "NEW one of"),
        (("alfworld", "x", "--to", "yaml"), "form of skills 'yaml'"),
        (("alfworld", "x", "--env", "alfwrld"), "Did you mean 'alfworld'"),
    ],
)
def test_bad_words_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*words) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", ["[1", "[" * 100_000, '{"general_skills": 1}', "\x00"])
def test_damaged_files_are_refused_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str) -> None:
    for name in ("bank.json", "skills.md"):
        (tmp_path / name).write_text(content)
        assert run(tmp_path / name, tmp_path / "out") == 2
        assert name in capsys.readouterr().err


THEIRS = """
from skill_library import Skill
from skill_library.formats import SkillFormat

FORMAT = SkillFormat(
    "lines",
    read=lambda text: [Skill(f"s{n}", "A line.", ("heat",), line) for n, line in enumerate(text.splitlines())],
    write=lambda skills: "".join(skill.text + "\\n" for skill in skills),
)
"""


def test_a_form_of_ones_own_is_one_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "their_form.py").write_text(THEIRS)
    (tmp_path / "skills.txt").write_text("Look.\nOpen.\n")
    theirs = "their_form:FORMAT"
    assert run(tmp_path / "skills.txt", tmp_path / "skills", "--form", theirs) == 0
    assert run(tmp_path / "skills", tmp_path / "back.txt", "--to", theirs) == 0
    assert (tmp_path / "back.txt").read_text() == "Look.\nOpen.\n"

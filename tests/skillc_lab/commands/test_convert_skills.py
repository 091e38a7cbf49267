"""``skillc tools convert-skills``: from other forms to a library that an environment can use, and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skill_library import load_library
from skillc_lab.cli.main import main

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

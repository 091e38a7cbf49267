"""``skillc skills test``: skills of others, of all sorts, on a model behind a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from skill_library import Skill
from skill_library.formats import write_library
from skillc_lab.cli.main import main as skillc
from tests.openai_server import Server, openai_server
from tests.skillc_gym.adapters.scripted import ENV_KWARGS, expert_reply

pytest.importorskip("openai", reason="needs the extra openai")
WORLD = ["--data", "generated", "--split", "train", "--task-types", "pick", "--max-episode-steps", "8"]
WORLD += ["--env.generator", json.dumps(ENV_KWARGS["generator"])]


@pytest.fixture
def server() -> Iterator[Server]:
    """Its model solves tasks whose prompt has the word "Skill:", and none else."""
    with openai_server(expert_reply) as running:
        yield running


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    """A folder of somebody else's: one skill, with test cases."""
    skills = [Skill("carry", "Carries things.", ("*",), "Skill: carry it.")]
    folder = write_library(skills, tmp_path / "theirs") / "carry"
    (folder / "evals").mkdir()
    cases = [{"id": 1, "prompt": "Carry it.", "task_type": "pick", "assertions": ["It is there"]}]
    (folder / "evals" / "evals.json").write_text(json.dumps({"skill_name": "carry", "evals": cases}))
    return folder


def words(server: Server, library: object, *more: str) -> list[str]:
    named = ["skills", "test", str(library), "--model", "scripted", "--engine", "openai"]
    return [*named, "--base-url", server.base_url, *WORLD, *more]


def test_a_skill_that_helps_passes(server, skill, tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib", reason="needs the extra report")
    monkeypatch.chdir(tmp_path)
    assert skillc(words(server, skill)) == 0
    said = capsys.readouterr().out
    assert "Pass: the skills help by more than 5 points" in said
    assert "the environment graded" in said
    out = tmp_path / "carry-workspace" / "iteration-1"
    benchmark = json.loads((out / "benchmark.json").read_text())
    assert benchmark["skill_test"]["verdict"] == "pass"
    assert benchmark["run_summary"]["with_skill"]["tokens"]["mean"] > 0
    graded = json.loads((out / "eval-carry-1" / "with_skill" / "grading.json").read_text())
    assert graded["summary"]["total"] == 4
    assert "carry with scripted: pass" in (out / "report" / "index.html").read_text()
    asked = len(server.requests)
    assert skillc(words(server, skill, "--per-type", "2", "--attempts", "2")) == 0
    assert len(server.requests) > asked
    assert (tmp_path / "carry-workspace" / "iteration-2" / "eval-pick").is_dir()


def test_skills_that_hurt_fail_and_those_that_say_nothing_are_neutral(skill, tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="needs the extra report")

    def misled(chat):
        """Solves what it is shown no skill for."""
        told = "Skill:" in chat[0]["content"]
        return "<action>look</action>" if told else expert_reply([{"role": "user", "content": "Skill:"}, *chat])

    with openai_server(misled) as server:
        assert skillc(words(server, skill, "--out", str(tmp_path / "hurt"))) == 1
        assert "Fail: the skills hurt" in capsys.readouterr().out
        (skill / "SKILL.md").write_text("---\nname: carry\ndescription: d\n---\nNothing to say.\n")
        assert skillc(words(server, skill, "--out", str(tmp_path / "hurt"))) == 2
        assert "holds another evaluation: library_sha256 was" in capsys.readouterr().err
        assert skillc(words(server, skill, "--out", str(tmp_path / "nothing"))) == 0
        assert "Neutral: undecided" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("evals", "more", "fault"),
    [
        ('{"evals": [{"id": 1, "prompt": "Heat it."}]}', (), "--per-type 8"),
        ('{"evals": [{"id": 1, "task_type": "fly"}]}', (), "'fly'"),
        ('{"evals": [{"id": 1, "task_id": "train/none"}]}', (), "The split is 'train'"),
        ("{}", ("--margin", "5"), "margin"),
        ("{}", ("--per-type", "2", "--tasks", "nowhere"), "not both"),
        ("{}", ("--per-type", "0"), "at least 1"),
    ],
)
def test_bad_input_is_told_before_anything_is_asked(server, skill, tmp_path, capsys, evals, more, fault):
    (skill / "evals" / "evals.json").write_text(evals)
    assert skillc(words(server, skill, "--out", str(tmp_path / "out"), *more)) == 2
    said = capsys.readouterr().err
    assert fault in said
    assert "Traceback" not in said
    assert server.requests == []


def test_hostile_folders_are_refused(server, skill, tmp_path, capsys):
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "SKILL.md").symlink_to(skill / "SKILL.md")
    for folder, fault in (("linked", "leads out of"), ("nowhere", "No skill library")):
        assert skillc(words(server, tmp_path / folder)) == 2
        assert fault in capsys.readouterr().err
    assert server.requests == []


def test_a_skill_for_one_type_is_tested_on_that_type(server, tmp_path, capsys):
    world = [word for word in WORLD if word not in ("--task-types", "pick")]
    kinds = {name: tmp_path / name for name in ("pick_and_place_simple", "fly")}
    for kind, folder in kinds.items():
        write_library([Skill("own", "d", (kind,), "Skill: carry it.")], folder)
    named = ["--model", "scripted", "--engine", "openai", "--base-url", server.base_url, *world, "--per-type", "1"]
    out = tmp_path / "out"
    assert skillc(["skills", "test", str(kinds["fly"]), *named, "--out", str(out)]) == 2
    assert "it serves fly" in capsys.readouterr().err
    assert not out.exists()
    assert skillc(["skills", "test", str(kinds["pick_and_place_simple"]), *named, "--out", str(out)]) == 0
    assert "serves pick: tasks of these types" in capsys.readouterr().out
    assert (out / "eval-pick").is_dir()
    assert not (out / "eval-heat").exists()

"""``skillc board``: an evaluation is taken in, shown, and sent to others."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest

from skillc_gym.episodes import read_jsonl, write_jsonl
from skillc_lab.board import PANELS, BoardPanel, evaluation_result
from skillc_lab.cli.main import main as skillc
from tests.openai_server import openai_server
from tests.skillc_gym.adapters.scripted import ENV_KWARGS, expert_reply
from trainers.evaluation import PairedReport

pytest.importorskip("openai", reason="needs the extra openai")
GENERATOR = json.dumps(ENV_KWARGS["generator"])


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("board") / "evaluation"
    words = ["--model", "/models/scripted", "--engine", "openai", "--data", "generated", "--split", "train"]
    words += ["--task-types", "pick", "--max-episode-steps", "8", "--env.generator", GENERATOR, "--out", str(folder)]
    with openai_server(expert_reply) as server:
        assert skillc(["evaluate", *words, "--base-url", server.base_url]) == 0
    return folder


@pytest.fixture
def small(evaluation: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A panel of four tasks."""
    report = PairedReport.load(evaluation / "report.json")
    panel = BoardPanel("Four tasks", 4, report.panel_sha256, 8, PANELS["houses"].library_sha256, "--env alfworld", "")
    monkeypatch.setitem(PANELS, "four", panel)  # type: ignore[arg-type]  # a dict behind its Mapping


def changed(evaluation: Path, folder: Path, **settings: object) -> Path:
    """A copy of the evaluation that says it was played by other settings."""
    shutil.copytree(evaluation, folder, dirs_exist_ok=True)
    path = folder / "evaluation.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))
    return folder


def test_an_evaluation_becomes_a_row_a_page_and_a_badge(small, evaluation, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert skillc(["board", "add", str(evaluation), "--name", "My model", "--revision", "v1"]) == 0
    assert "My model on Four tasks: 0.0 % without skills, 100.0 % with them" in capsys.readouterr().out
    result = tmp_path / "board" / "my-model-four.json"
    values = json.loads(result.read_text())
    assert values["command"].startswith("skillc evaluate --model scripted --data generated --engine openai")
    assert "--task-types pick" in values["command"]
    assert "127.0.0.1" not in result.read_text()
    assert "0.0 % without skills" in result.with_suffix(".svg").read_text()
    assert "[My model](./my-model-four.json) | v1 |" in (tmp_path / "board" / "board.md").read_text()
    assert skillc(["board"]) == 0
    assert "My model" in capsys.readouterr().out
    # The file is all that others need.
    assert skillc(["board", "add", str(result), "--results", "theirs", "--page", "page.md"]) == 0
    assert (tmp_path / "theirs" / result.name).read_bytes() == result.read_bytes()
    assert "[My model](theirs/my-model-four.json)" in (tmp_path / "page.md").read_text()
    assert skillc(["board", "add", str(evaluation), "--name", "my model", "--revision", "v2"]) == 2
    assert "another result of that name" in capsys.readouterr().err
    assert skillc(["board", "add", str(result), "--name", "Other"]) == 2
    assert "has the same episodes as my-model-four.json" in capsys.readouterr().err
    capsys.readouterr()
    assert skillc(["board", "add", str(evaluation), "--name", "Other", "--results", "elsewhere"]) == 0
    assert "revision is unknown" in capsys.readouterr().out
    assert "| [Other](./other-four.json) |  |" in (tmp_path / "elsewhere" / "board.md").read_text()
    assert (tmp_path / "elsewhere" / "other-four.json").is_file()


def test_transcripts_must_tell_what_the_report_tells(small, evaluation, tmp_path, capsys):
    folder = tmp_path / "changed"
    shutil.copytree(evaluation, folder)
    write_jsonl(folder / "transcripts.jsonl", read_jsonl(folder / "transcripts.jsonl")[1:])
    assert skillc(["board", "add", str(folder), "--results", str(tmp_path / "board")]) == 2
    assert "tells other outcomes" in capsys.readouterr().err
    (folder / "transcripts.jsonl").unlink()
    assert skillc(["board", "add", str(folder), "--results", str(tmp_path / "board")]) == 2
    assert "outcomes are checked by it" in capsys.readouterr().err


def test_evaluations_of_no_panel_and_empty_folders_are_refused(evaluation, tmp_path, capsys):
    for folder, fault in ((evaluation, "none of the board's panels"), (tmp_path, "holds no evaluation")):
        assert skillc(["board", "add", str(folder), "--results", str(tmp_path / "board")]) == 2
        assert fault in capsys.readouterr().err
    assert skillc(["board", "add"]) == 2
    assert skillc(["board", "show", "x.json"]) == 2
    assert skillc(["board", "--results", str(tmp_path / "nowhere")]) == 2
    assert skillc(["board", "ad"]) == 2
    assert "Did you mean 'add'" in capsys.readouterr().err


def test_a_policys_own_memory_is_no_built_in_library(small, evaluation, tmp_path):
    folder = changed(evaluation, tmp_path, memory_sha256="0" * 64)
    result = evaluation_result(folder)
    assert (result.own_skills, result.about["library_sha256"]) == (True, "0" * 64)
    assert "skills: own memory of the policy" in result.notes


def test_the_command_of_a_result_can_be_typed_and_names_no_place(small, evaluation, tmp_path):
    folder = changed(
        evaluation,
        tmp_path,
        env_wrappers={"my_module:Hints": {"count": 2}},
        agent_options={"embeddings": "/home/me/vectors", "count": 3},
        library="/home/me/skills:wrong",
        tasks_sha256="0" * 64,
    )
    command = evaluation_result(folder).about["command"]
    for words in (
        ["--env-wrappers", '{"my_module:Hints": {"count": 2}}'],
        ["--agent.embeddings", '"vectors"'],
        ["--library", "skills:wrong"],
    ):
        assert shlex.join(words) in command
    assert command.endswith("--tasks TASKS")
    assert "/home" not in command

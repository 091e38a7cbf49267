"""The board: results are checked by their own outcomes, the page shows what they say, and its command adds one."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_library import load_library
from skillc_gym.episodes import read_jsonl, write_jsonl
from skillc_gym.errors import ConfigError
from skillc_lab.board import (
    PANELS,
    BoardPanel,
    board_tables,
    evaluation_result,
    read_result,
    read_results,
    renewed_page,
    write_badge,
)
from skillc_lab.cli.main import main as skillc
from tests.openai_server import openai_server
from tests.skillc_gym.adapters.scripted import ENV_KWARGS, expert_reply
from trainers.config import TrainConfig
from trainers.evaluation import PairedReport, open_panel

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "benchmarks" / "records" / "board"
OURS = RESULTS / "shipped-houses.json"


def altered(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """A result of ours, changed."""
    values = json.loads(OURS.read_text())
    change(values)
    path = folder / "altered.json"
    path.write_text(json.dumps(values))
    return path


def test_the_page_shows_what_the_results_say() -> None:
    page = (ROOT / "docs" / "board.md").read_text(encoding="utf-8")
    results = read_results(RESULTS)
    assert page == renewed_page(page, results, "../benchmarks/records/board"), "skillc board add makes it again"
    assert {path.stem for path in RESULTS.glob("*.json")} == {each.file_name for each in results}
    for path in RESULTS.glob("*.json"):
        places = re.findall(r"""(?<![\w.~:/-])/\w+/[^\s"]*""", path.read_text(encoding="utf-8"))
        assert places == [], "no result names a place of the machine that played"


def test_the_generated_panel_is_what_its_command_plays() -> None:
    panel, generator = PANELS["houses"], {"seed": 0, "games_per_type": 400, "size": "small"}
    assert json.dumps(generator) in panel.command()
    config = TrainConfig("x", data="generated", split="valid_unseen", env_options={"generator": generator})
    tasks = open_panel(config, 24).tasks
    assert len(tasks) == panel.tasks
    assert set(tasks) == set(read_result(OURS).report.tasks)
    assert all(each.library_sha256 == load_library(each.env).sha256 for each in PANELS.values())


def outcomes(values: dict[str, Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = values["report"]["outcomes"]
    return found


def flip(values: dict[str, Any]) -> None:
    outcomes(values)["won_without"][0] ^= True


def cut(values: dict[str, Any]) -> None:
    for column in outcomes(values).values():
        del column[0]


def twice(values: dict[str, Any]) -> None:
    for column in outcomes(values).values():
        column.append(column[0])


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (flip, "overall.* says .* and its outcomes give"),
        (lambda values: values["report"].pop("overall"), r"report\.overall says None"),
        (lambda values: values["report"]["actions"]["with"].update(well_formed=0.1), r"actions\.with\.well_formed"),
        (cut, "do not match its panel's hash"),
        (twice, "equally often"),
        (lambda values: outcomes(values)["task_id"].reverse(), "do not match its panel's hash"),
        (lambda values: outcomes(values)["steps_with"].__setitem__(0, 10**6), "steps lie between 0 and 20"),
        (lambda values: outcomes(values)["score_with"].__setitem__(0, float("nan")), "scores between 0 and 1"),
        (lambda values: outcomes(values)["won_with"].__setitem__(0, "yes"), r"outcomes\[0\]\.won_with says 'yes'"),
        (lambda values: outcomes(values)["won_with"].pop(), "differ in length"),
        (lambda values: values.update(panel="alfworld-seen"), "its tasks are not those of ALFWorld, valid_seen"),
        (lambda values: values.update(panel="moon"), "panel is one of"),
        (lambda values: values.update(report=7), "JSON objects"),
        (lambda values: values["report"].update(agent="<b>x</b>"), r"report\.agent has letters"),
        (lambda values: values.update(name="<script>alert(1)</script>"), "name has letters"),
        (lambda values: values.update(name=""), "does not say its name"),
        (lambda values: values.update(command="x\ny"), "command is a line of text"),
        (lambda values: values.update(command="skillc evaluate --model 'x"), "no line of a shell"),
        (lambda values: values.update(command="skillc --engine '[x](y)'"), "engine has letters"),
        (lambda values: values.update(library_sha256=""), "library_sha256 is a SHA-256"),
        (lambda values: values.update(transcripts_sha256=""), "transcripts_sha256 is a SHA-256"),
        (lambda values: values.update(revision="x" * 9_999), "at most 2,000"),
    ],
)
def test_a_file_that_was_altered_is_refused(
    change: Callable[[dict[str, Any]], object], fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = altered(tmp_path, change)
    with pytest.raises(ConfigError, match=fault):
        read_result(path)
    assert skillc(["board", "add", str(path), "--results", str(tmp_path / "board")]) == 2
    assert str(path) in capsys.readouterr().err
    assert not (tmp_path / "board").exists()


@pytest.mark.parametrize("content", ["", "[]", "[" * 50_000])
def test_what_is_no_result_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(ConfigError, match=r"x\.json"):
        read_result(tmp_path / "x.json")
    with pytest.raises(ConfigError, match="nowhere"):
        read_result(tmp_path / "nowhere.json")


@given(place=st.integers(0, 143), arm=st.sampled_from(["with", "without"]))
def test_no_outcome_can_be_changed_alone(place: int, arm: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    def change(values: dict[str, Any]) -> None:
        outcomes(values)[f"won_{arm}"][place] ^= True

    with pytest.raises(ConfigError, match="the file was changed"):
        read_result(altered(tmp_path_factory.mktemp("board"), change))


def test_other_skills_and_agents_are_named(tmp_path: Path) -> None:
    def change(values: dict[str, Any]) -> None:
        values.update(name="Mine", library="my skills", library_sha256="0" * 64)

    table = board_tables([read_result(OURS), read_result(altered(tmp_path, change))])["houses"]
    assert [row[0] for row in table.rows] == ["Mine (skills: my skills)", "shipped"]
    path = altered(tmp_path, lambda values: values["report"].update(agent="reflexion"))
    (row,) = board_tables([read_result(path)])["houses"].rows
    assert row[0] == "shipped (agent: reflexion)"


@pytest.mark.parametrize(
    ("words", "note"),
    [
        ("--engine choosing", " (chooses among commands)"),
        ("--engine 'scoring'", " (chooses among commands)"),
        ("--engine=scoring", " (chooses among commands)"),
        ("engine=choosing", " (chooses among commands)"),
        ("--engine vllm --engine choosing", " (chooses among commands)"),
        ("--engine vllm --engine.dtype choosing", ""),
        ("--engine mine:ENGINE", " (engine: mine:ENGINE)"),
        ("engine", ""),
    ],
)
def test_a_policy_that_does_not_write_freely_is_marked_in_row_and_badge(words: str, note: str, tmp_path: Path) -> None:
    path = altered(tmp_path, lambda values: values.update(command=f"{values['command']} {words}"))
    result = read_result(path)
    (row,) = board_tables([result])["houses"].rows
    assert row[0] == f"shipped{note}"
    write_badge(tmp_path / "badge.svg", result)
    assert note.strip(" ()") in (tmp_path / "badge.svg").read_text()


@pytest.mark.parametrize("change", [{}, {"transcripts_sha256": "0" * 64}])
def test_one_play_under_two_names_is_refused(change: dict[str, str], tmp_path: Path) -> None:
    """Whoever changes the hash has the same outcomes still."""
    for name in ("First", "Second"):
        values = {**json.loads(OURS.read_text()), "name": name, **(change if name == "Second" else {})}
        (tmp_path / f"{name.lower()}-houses.json").write_text(json.dumps(values))
    with pytest.raises(ConfigError, match=r"second-houses\.json has the same episodes as first-houses\.json"):
        read_results(tmp_path)


def test_a_file_can_be_given_another_name_and_names_of_all_scripts_are_told_apart() -> None:
    names = {read_result(OURS, name).file_name for name in ("\u6a21\u578b one", "\u6a21\u578b", "\u667a\u80fd", None)}
    assert len(names) == 4
    assert read_result(OURS, "Mine", "v2").about["revision"] == "v2"
    with pytest.raises(ConfigError, match="name has letters"):
        read_result(OURS, "[x](y)")


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ConfigError, match="no lines"):
        renewed_page("# Mine\n", [], ".")
    made = renewed_page("", [], ".")
    assert "2505.10978" in made
    assert renewed_page(made, [], ".") == made


# skillc board: an evaluation is taken in, shown, and sent to others ---------------------------------------------------

GENERATOR = json.dumps(ENV_KWARGS["generator"])


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("openai", reason="needs the extra openai")
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
    monkeypatch.setitem(PANELS, "four", panel)


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

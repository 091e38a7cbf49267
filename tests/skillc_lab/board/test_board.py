"""The board: results are checked by their own outcomes, the page shows what they say, and its command adds one."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_library import load_library
from skillc_gym.episodes import read_jsonl, write_jsonl
from skillc_gym.errors import ConfigError
from skillc_lab import board
from skillc_lab.board import PANELS, board_tables, evaluation_result, read_result, read_results, renewed_page
from skillc_lab.cli.main import main as skillc
from tests.openai_server import openai_server
from tests.skillc_gym.adapters.scripted import ENV_KWARGS, expert_reply
from trainers.config import TrainConfig
from trainers.evaluation import PairedReport, open_panel
from trainers.tracking import write_json
from trainers.tracking.policy_settings import save_policy_settings

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "benchmarks" / "records" / "board"
OURS = RESULTS / "shipped-houses.json"


def altered(folder: Path, change, name: str = "altered") -> Path:
    """A result of ours, changed."""
    values = json.loads(OURS.read_text())
    change(values)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(values))
    return path


def shown(*results: board.BoardResult) -> list[object]:
    """What the rows of the houses are called."""
    return [row[0] for row in board_tables(results)["houses"].rows]


def test_the_page_shows_what_the_results_say():
    page = (ROOT / "docs" / "board.md").read_text(encoding="utf-8")
    results = read_results(RESULTS)
    assert page == renewed_page(page, results, "../benchmarks/records/board"), "skillc board add makes it again"
    assert {path.stem for path in RESULTS.glob("*.json")} == {each.file_name for each in results}
    for path in RESULTS.glob("*.json"):
        places = re.findall(r"""(?<![\w.~:/-])/\w+/[^\s"]*""", path.read_text(encoding="utf-8"))
        assert places == [], "no result names a place of the machine that played"


def test_the_generated_panel_is_what_its_command_plays():
    panel, generator = PANELS["houses"], {"seed": 0, "games_per_type": 400, "size": "small"}
    assert json.dumps(generator) in panel.command()
    config = TrainConfig("x", data="generated", split="valid_unseen", env_options={"generator": generator})
    tasks = open_panel(config, 24).tasks
    assert len(tasks) == panel.tasks
    assert set(tasks) == set(read_result(OURS).report.tasks)
    assert all(each.library_sha256 == load_library(each.env).sha256 for each in PANELS.values())


def told(**changes: object):
    return lambda values: values.update(changes)


def column(name: str, change):
    """A change of one column of outcomes."""
    return lambda values: change(values["report"]["outcomes"][name])


def columns(change):
    return lambda values: [change(each) for each in values["report"]["outcomes"].values()]


def first(value: object):
    return lambda outcomes: outcomes.__setitem__(0, value)


def flip(outcomes: list[bool], place: int = 0) -> None:
    outcomes[place] ^= True


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda values: values["report"].pop("overall"), r"report\.overall says None"),
        (lambda values: values["report"]["actions"]["with"].update(well_formed=0.1), r"actions\.with\.well_formed"),
        (columns(lambda outcomes: outcomes.pop(0)), "do not match its panel's hash"),
        (column("task_id", list.reverse), "do not match its panel's hash"),
        (column("steps_with", first(10**6)), "steps lie between 0 and 20"),
        (column("score_with", first(float("nan"))), "scores between 0 and 1"),
        (column("won_with", first("yes")), r"outcomes\[0\]\.won_with says 'yes'"),
        (told(panel="alfworld-seen"), "its tasks are not those of ALFWorld, valid_seen"),
        (told(name="<script>alert(1)</script>"), "name has letters"),
        (told(command="skillc evaluate --model 'x"), "no line of a shell"),
        (told(command="skillc --engine '[x](y)'"), "engine has letters"),
        (told(transcripts_sha256=""), "transcripts_sha256 is a SHA-256"),
        (told(revision="x" * 9_999), "at most 2,000"),
    ],
)
def test_a_file_that_was_altered_is_refused(change, fault, tmp_path, says):
    path = altered(tmp_path, change)
    with pytest.raises(ConfigError, match=fault):
        read_result(path)
    assert str(path) in says("board add", path, "--results", tmp_path / "board", status=2)
    assert not (tmp_path / "board").exists()


@pytest.mark.parametrize("content", ["", "[]", "[" * 50_000])
def test_what_is_no_result_is_refused(content, tmp_path):
    (tmp_path / "x.json").write_text(content)
    for name in ("x.json", "none.json"):
        with pytest.raises(ConfigError, match=name):
            read_result(tmp_path / name)


@given(place=st.integers(0, 143), arm=st.sampled_from(["with", "without"]))
def test_no_outcome_can_be_changed_alone(place, arm, tmp_path_factory):
    change = column(f"won_{arm}", lambda outcomes: flip(outcomes, place))
    with pytest.raises(ConfigError, match="the file was changed"):
        read_result(altered(tmp_path_factory.mktemp("board"), change))


def test_other_skills_and_agents_are_named(tmp_path):
    other = altered(tmp_path, told(name="Mine", library="my skills", library_sha256="0" * 64))
    assert shown(read_result(OURS), read_result(other)) == ["Mine (skills: my skills)", "shipped"]
    played = altered(tmp_path, lambda values: values["report"].update(agent="reflexion"))
    assert shown(read_result(played)) == ["shipped (agent: reflexion)"]


@pytest.mark.parametrize(
    ("words", "note"),
    [
        ("--engine choosing", " (chooses among commands)"),
        ("--engine vllm --engine choosing", " (chooses among commands)"),
        ("--engine vllm --engine.dtype choosing", ""),
        ("--engine mine:ENGINE", " (engine: mine:ENGINE)"),
    ],
)
def test_a_policy_that_does_not_write_freely_is_marked_in_row_and_badge(words, note, tmp_path):
    result = read_result(altered(tmp_path, lambda values: values.update(command=f"{values['command']} {words}")))
    assert shown(result) == [f"shipped{note}"]
    board.write_badge(tmp_path / "badge.svg", result)
    assert note.strip(" ()") in (tmp_path / "badge.svg").read_text()


@pytest.mark.parametrize("change", [{}, {"transcripts_sha256": "0" * 64}])
def test_one_play_under_two_names_is_refused(change, tmp_path):
    """Whoever changes the hash has the same outcomes still."""
    altered(tmp_path, told(name="First"), "first-houses")
    altered(tmp_path, told(name="Second", **change), "second-houses")
    with pytest.raises(ConfigError, match=r"second-houses\.json has the same episodes as first-houses\.json"):
        read_results(tmp_path)


def test_a_file_can_be_given_another_name_and_names_of_all_scripts_are_told_apart():
    names = {read_result(OURS, name).file_name for name in ("\u6a21\u578b one", "\u6a21\u578b", "\u667a\u80fd", None)}
    assert len(names) == 4
    assert read_result(OURS, "Mine", "v2").about["revision"] == "v2"
    with pytest.raises(ConfigError, match="name has letters"):
        read_result(OURS, "[x](y)")


# skillc board: an evaluation is taken in, shown, and sent to others ---------------------------------------------------


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory):
    pytest.importorskip("openai", reason="needs the extra openai")
    folder = tmp_path_factory.mktemp("board") / "evaluation"
    words = "evaluate --model /models/scripted --engine openai --data generated --split train --task-types pick"
    generator = ["--env.generator", json.dumps(ENV_KWARGS["generator"])]
    with openai_server(expert_reply) as server:
        more = ["--max-episode-steps", "8", "--out", str(folder), "--base-url", server.base_url]
        assert skillc([*words.split(), *generator, *more]) == 0
    return folder


@pytest.fixture
def small(evaluation, monkeypatch):
    """A panel of four tasks."""
    tasks, library = PairedReport.load(evaluation / "report.json").panel_sha256, PANELS["houses"].library_sha256
    monkeypatch.setitem(PANELS, "four", board.BoardPanel("Four tasks", 4, tasks, 8, library, "--env alfworld", ""))


def changed(evaluation: Path, folder: Path, **settings: object) -> Path:
    """A copy of the evaluation that says it was played by other settings."""
    shutil.copytree(evaluation, folder, dirs_exist_ok=True)
    path = folder / "evaluation.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))
    return folder


def test_an_evaluation_becomes_a_row_a_page_and_a_badge(small, evaluation, tmp_path, says, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = says("board add --revision v1", evaluation, "--name", "My model")
    assert "My model on Four tasks: 0.0 % without skills, 100.0 % with them" in said
    result = tmp_path / "board" / "my-model-four.json"
    values = json.loads(result.read_text())
    assert values["command"].startswith("skillc evaluate --model scripted --data generated --engine openai")
    assert "--task-types pick" in values["command"]
    assert "127.0.0.1" not in result.read_text()
    assert "0.0 % without skills" in result.with_suffix(".svg").read_text()
    assert "[My model](./my-model-four.json) | v1 |" in (tmp_path / "board" / "board.md").read_text()
    assert "My model" in says("board")
    assert "no use for --name" in says("board show --name Other", status=2)
    # The file is all that others need.
    says("board add --results theirs --page page.md", result)
    assert (tmp_path / "theirs" / result.name).read_bytes() == result.read_bytes()
    assert "[My model](theirs/my-model-four.json)" in (tmp_path / "page.md").read_text()
    says("board add --revision v2", evaluation, "--name", "my model", status=2)
    assert "has the same episodes as my-model-four.json" in says("board add --name Other", result, status=2)
    assert "revision is unknown" in says("board add --name Other --results elsewhere", evaluation)
    assert "| [Other](./other-four.json) |  |" in (tmp_path / "elsewhere" / "board.md").read_text()
    assert (tmp_path / "elsewhere" / "other-four.json").is_file()


def test_transcripts_must_tell_what_the_report_tells(small, evaluation, tmp_path, says):
    folder = changed(evaluation, tmp_path / "changed")
    write_jsonl(folder / "transcripts.jsonl", read_jsonl(folder / "transcripts.jsonl")[1:])
    words = ["board add", folder, "--results", tmp_path / "board"]
    assert "tells other outcomes" in says(*words, status=2)
    (folder / "transcripts.jsonl").unlink()
    assert "outcomes are checked by it" in says(*words, status=2)


def test_other_skills_than_the_built_in_ones_are_named(small, evaluation, tmp_path):
    digest = load_library("alfworld").graded("minimal").sha256
    graded = evaluation_result(changed(evaluation, tmp_path, skill_grade="minimal", library_sha256=digest))
    assert "skills: alfworld (minimal)" in graded.notes
    own = evaluation_result(changed(evaluation, tmp_path, memory_sha256="0" * 64))
    assert (own.own_skills, own.about["library_sha256"]) == (True, "0" * 64)
    assert "skills: own memory of the policy" in own.notes


def test_the_command_of_a_result_can_be_typed_and_names_no_place(small, evaluation, tmp_path):
    settings = {
        "env_wrappers": {"my_module:Hints": {"count": 2}},
        "agent_options": {"embeddings": "/home/me/vectors", "count": 3},
        **{"library": "/home/me/skills:wrong", "tasks_sha256": "0" * 64},
    }
    command = evaluation_result(changed(evaluation, tmp_path, **settings)).about["command"]
    assert shlex.join(["--env-wrappers", '{"my_module:Hints": {"count": 2}}']) in command
    assert shlex.join(["--agent.embeddings", '"vectors"']) in command
    assert "--library skills:wrong" in command
    assert command.endswith("--tasks TASKS")
    assert "--tasks" not in evaluation_result(changed(evaluation, tmp_path / "all", tasks_sha256=None)).about["command"]
    assert "/home" not in command


def test_a_command_says_what_the_policys_folder_would_say_otherwise(small, evaluation, tmp_path):
    save_policy_settings(tmp_path, TrainConfig(model="x", data="generated", chat="compact", task_types=("heat",)))
    changes = {"data": "/home/me/games", "chat": "default", "task_types": None, "max_reply_tokens": 512}
    folder = changed(evaluation, tmp_path / "evaluated", **changes)
    write_json(folder / "config.json", {"model": str(tmp_path)})
    command = evaluation_result(folder).about["command"]
    assert "--data DATA" in command
    assert "--chat default" in command
    assert "--task-types none" in command
    assert "--max-reply-tokens" not in command

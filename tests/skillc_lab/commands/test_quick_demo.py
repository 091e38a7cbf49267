"""The demonstration without training: shipped policies on a task per type, and what is said of them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="needs the train extra")

from skillc_gym.errors import CheckpointError, ConfigError, MissingDataError
from skillc_lab.cli.main import main as skillc
from skillc_lab.commands import demo
from skillc_lab.commands.demo import describe_quick_demo, quick_policies, run_quick_demo, side_by_side
from skillc_lab.commands.demonstration import DemoOptions
from tests.trainers.rollouts_of import episode
from trainers.base import model_folders, shipped_policy, shipped_trained_policy
from trainers.tracking import write_json


def test_the_command_shows_both_conditions_and_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert skillc(["demo", "--quick", "--held-out", "1", "--out", str(tmp_path)]) == 0
    said, aside = capsys.readouterr()
    assert "Loading weights" not in aside
    assert "Success in per cent on 6 held-out tasks of valid_unseen" in said
    assert "start, with the skill" in said
    assert str(tmp_path / "report" / "index.html") in said
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["policies"]["start"]["sr_with"] > summary["policies"]["start"]["sr_without"]
    assert "A policy that needs its skill" in (tmp_path / "report" / "index.html").read_text()


def test_a_trained_policy_stands_beside_its_start(tmp_path: Path) -> None:
    policy = tmp_path / "policy"
    shutil.copytree(shipped_policy("webshop"), policy)
    result = run_quick_demo(DemoOptions(out=tmp_path / "out", env="webshop", policy=policy, held_out=1))
    assert list(result["policies"]) == ["start", "trained"]
    assert result["policies"]["start"] == result["policies"]["trained"]
    heads = re.split(r"\s{2,}", result["example"].split("\n")[2])
    assert heads == ["start, with the skill", "start, without", "trained, without"]
    text = describe_quick_demo(result)
    assert text.count("gap") == 1
    assert "trained " in text
    assert "No trained policy" not in text
    assert "before training" in Path(result["page"]).read_text()


def test_another_start_plays_with_its_own_settings(tmp_path: Path) -> None:
    result = run_quick_demo(DemoOptions(out=tmp_path, model="shipped", held_out=1))
    assert json.loads((tmp_path / "start" / "evaluation.json").read_text())["max_episode_steps"] == 20
    assert "skillc train --model shipped" in describe_quick_demo(result, "shipped")
    with pytest.raises(MissingDataError, match="skillc get-model smollm2-household"):
        run_quick_demo(DemoOptions(out=tmp_path / "other", model="smollm2-household"))


def test_what_a_fetched_start_became_is_shown_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKILLC_CACHE", str(tmp_path))
    options = DemoOptions(out=tmp_path / "out", model="smollm2-household")
    for name, there in (("smollm2-household", ["start"]), ("smollm2-household-trained", ["start", "trained"])):
        write_json(tmp_path / "models" / name / "config.json", {})
        assert list(quick_policies(options)) == there


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_broken_policy_is_found_before_anything_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    policy = tmp_path / "policy"
    shutil.copytree(shipped_policy("alfworld"), policy)
    (policy / file).write_text("{")
    monkeypatch.delattr("skillc_lab.commands.demo.evaluate_policy")
    with pytest.raises(CheckpointError, match="copy it again"):
        run_quick_demo(DemoOptions(out=tmp_path / "out", policy=policy))


def test_a_shipped_trained_policy_lies_beside_its_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = shipped_policy("alfworld").name
    monkeypatch.setattr(model_folders, "_POLICIES", tmp_path)
    with pytest.raises(MissingDataError, match="skillc tools make-policy --env alfworld"):
        _ = quick_policies(DemoOptions(out=tmp_path / "out"))
    write_json(tmp_path / "mine" / "config.json", {})
    assert quick_policies(DemoOptions(out=tmp_path / "out", policy=tmp_path / "mine")) == {"start": tmp_path / "mine"}
    start, place = tmp_path / name, tmp_path / f"{name}_trained"
    write_json(start / "config.json", {})
    assert shipped_trained_policy("alfworld") is None
    write_json(place / "config.json", {})
    assert shipped_trained_policy("alfworld") == place
    assert quick_policies(DemoOptions(out=tmp_path / "out"))["trained"] == place
    hard = place.with_name("checkpoint_hard")
    write_json(hard / "config.json", {})
    assert quick_policies(DemoOptions(out=tmp_path / "out")) == {"start": hard}
    write_json(hard.with_name("checkpoint_hard_trained") / "config.json", {})
    assert shipped_trained_policy("alfworld") == hard.with_name("checkpoint_hard_trained")


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({"policy": Path("nowhere")}, MissingDataError, "no checkpoint folder"),
        ({"held_out": 0}, ConfigError, "at least 1"),
        ({"data": "games"}, ConfigError, "generated tasks only, got --data games"),
    ],
)
def test_what_it_cannot_show_is_said(asked: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        run_quick_demo(DemoOptions(quick=True, **asked))


def test_commands_stand_side_by_side() -> None:
    solved, failed = episode(won=True, actions=["go\x1b[31m"]), episode(won=False, actions=["look", "look"])
    shown = side_by_side({"with": solved, "without": failed})
    rows = [line.split() for line in shown.splitlines()[2:]]
    assert rows == [
        ["with", "without"],
        ["go?[31m", "look", "(2", "times)"],
        ["=", "solved", "in", "1", "steps", "=", "not", "solved", "in", "2", "steps"],
    ]


def test_no_page_is_opened_without_a_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(demo.webbrowser, "open", lambda url: not opened.append(url))
    monkeypatch.setenv("DISPLAY", ":0")
    assert not demo.open_page(tmp_path)
    monkeypatch.setattr(demo.sys.stdout, "isatty", lambda: True)
    assert demo.open_page(tmp_path)
    assert opened == [tmp_path.resolve().as_uri()]

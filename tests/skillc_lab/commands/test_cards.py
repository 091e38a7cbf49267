"""Cards: front matter that YAML reads, and what it says of environments and policies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from skill_library import load_library
from skillc_gym.envs.registry import env_specs
from skillc_gym.errors import MissingDataError
from skillc_lab.cli.main import main as skillc
from skillc_lab.commands.card import environment_card, policy_card
from trainers.base import shipped_policy
from trainers.evaluation import ArmOutcome, PairedOutcome, PairedReport
from trainers.tracking.files import write_json


def parts(card: str) -> tuple[dict[str, Any], str]:
    opening, front, body = card.split("---\n", 2)
    assert opening == ""
    return yaml.safe_load(front), body


@pytest.mark.parametrize("spec", env_specs(), ids=lambda spec: spec.name)
def test_every_environment_has_a_card(spec):
    front, body = parts(environment_card(spec.name))
    assert front["pretty_name"] == spec.id
    assert "reinforcement-learning" in front["tags"]
    assert all(f"`{kind}`" in body for kind in spec.task_types)
    skills = load_library(spec.library).skills if spec.library else ()
    assert all(skill.sha256[:12] in body for skill in skills)


@pytest.fixture
def evaluation(tmp_path: Path) -> Path:
    won = ArmOutcome(won=True, score=1.0, steps=4, well_formed=4, admissible=1)
    lost = ArmOutcome(won=False, score=0.0, steps=9, well_formed=9, admissible=9)
    outcomes = tuple(PairedOutcome(f"valid/{n}", "heat", won, won if n == 0 else lost) for n in range(4))
    PairedReport(outcomes, seed=7, sampling={}, warning="odd commands").save(tmp_path / "after" / "report.json")
    write_json(tmp_path / "after" / "config.json", {"env": "alfworld", "split": "valid_seen", "data": "generated"})
    return tmp_path / "after"


def test_a_policys_card_says_how_it_was_made_and_what_was_found(tmp_path: Path, evaluation: Path):
    policy = tmp_path / "run" / "policy"
    write_json(policy / "config.json", {"model_type": "qwen3"})
    write_json(tmp_path / "run" / "config.json", {"env": "alfworld", "preset": "skillc", "steps": 40, "seed": 3})
    front, body = parts(policy_card(policy, evaluation))
    assert {"alfworld", "skillc"} <= set(front["tags"])
    (result,) = front["model-index"][0]["results"]
    assert result["dataset"] == {"type": "skillc/ALFWorld-v0", "name": "alfworld valid_seen"}
    assert [metric["value"] for metric in result["metrics"]] == [1.0, 0.25, 0.75]
    assert "| steps | `40` |" in body
    assert "4 tasks of `valid_seen`" in body
    assert "**Warning:** odd commands" in body
    assert "| admissible commands, % of turns | 4 | 25.0 |" in body
    assert "| all | 4 | 100 [" in body


def test_a_shipped_policys_card_names_its_weights():
    front, body = parts(policy_card(shipped_policy("webshop")))
    assert front["tags"][-2:] == ["webshop", "behaviour-cloning"]
    assert "weights_sha256" in body


def test_what_is_missing_is_said(tmp_path: Path):
    for broken in (None, "{", "[]", "{}"):
        if broken:
            (tmp_path / "config.json").write_text(broken)
        with pytest.raises(MissingDataError, match="holds no checkpoint"):
            policy_card(tmp_path)
    with pytest.raises(MissingDataError, match="skillc evaluate"):
        policy_card(shipped_policy(), tmp_path)


def test_the_command_writes_and_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert skillc(["tools", "card", "env", "coins"]) == 0
    assert capsys.readouterr().out == environment_card("coins")
    assert skillc(["tools", "card", "env", "coins", "--out", str(tmp_path / "README.md")]) == 0
    assert (tmp_path / "README.md").read_text() == environment_card("coins")
    assert skillc(["tools", "card", "recipe", "grpo"]) == 2

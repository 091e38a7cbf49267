"""``skillc report`` and ``skillc replay`` on runs and evaluations, and cards of environments and policies."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from skill_library import load_library
from skillc_gym.envs.registry import env_specs
from skillc_gym.episodes import write_jsonl
from skillc_gym.errors import ConfigError, MissingDataError
from skillc_lab.commands.card import environment_card, policy_card
from tests.skillc_lab.report.synthetic_run import episode
from trainers.base import shipped_policy
from trainers.evaluation import ArmOutcome, PairedOutcome, PairedReport
from trainers.evaluation.policy import weights_sha256
from trainers.tracking.files import write_json

EPISODES = [episode(f"train/{task}", "heat", z, won=bool(z)) for task in "ab" for z in (1, 0)]


@pytest.fixture
def run(tmp_path):
    """A run's folder that holds transcripts alone."""
    for step in (10, 20):
        write_jsonl(tmp_path / "run" / "transcripts" / f"train-{step:06d}.jsonl", EPISODES)
    return tmp_path / "run"


WITHOUT_TORCH = """
import sys
sys.modules |= dict.fromkeys(("torch", "transformers", "trl", "peft", "accelerate", "datasets", "openai"))
from skillc_lab.cli.main import main
from trainers.tracking.progress import LiveProgress
sys.exit(main(sys.argv[1:]))
"""


def test_a_report_needs_matplotlib_alone(run, tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra report")
    words = ["report", str(run), "--out", str(tmp_path / "page")]
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "heat some apple" in (tmp_path / "page" / "index.html").read_text(encoding="utf-8")


def test_episodes_are_written_as_trajectories(run, tmp_path, says):
    write_jsonl(run / "transcripts.jsonl", EPISODES[:1])
    assert "4 trajectories" in says("replay --step 10", run, "--atif", tmp_path / "atif")
    found = [json.loads(file.read_text()) for file in sorted((tmp_path / "atif").glob("*.json"))]
    assert [one["extra"]["condition"] for one in found] == [1, 0, 1, 0]
    assert {one["schema_version"] for one in found} == {"ATIF-v1.7"}
    says("replay --step 10", run / "transcripts.jsonl", "--atif", tmp_path / "none", status=2)
    kept = sorted((tmp_path / "atif").iterdir())
    said = says("replay --step 20", run, "--atif", tmp_path / "atif", status=2)
    assert "atif exists and is not an empty folder; name a new folder" in said
    assert sorted((tmp_path / "atif").iterdir()) == kept


def test_episodes_are_shown_on_a_page(run, tmp_path, says):
    pytest.importorskip("matplotlib", reason="needs the train extra")
    page = Path(says("replay", run, "--out", tmp_path / "page.html").strip())
    assert "heat some apple" in page.read_text(encoding="utf-8")


# Cards: front matter that YAML reads, and what it says of environments and policies -----------------------------------


def parts(card):
    opening, front, body = card.split("---\n", 2)
    assert opening == ""
    return yaml.safe_load(front), body


@pytest.mark.parametrize("spec", env_specs(), ids=lambda spec: spec.name)
def test_every_environment_has_a_card_that_is_printed_or_written(spec, tmp_path, says):
    card = says("tools card env", spec.name)
    says("tools card env", spec.name, "--out", tmp_path / "README.md")
    (tmp_path / "weights").write_bytes(b"precious")
    assert "would be lost" in says("tools card env", spec.name, "--out", tmp_path / "weights", status=2)
    assert "no evaluation" in says("tools card env", spec.name, "--evaluation", tmp_path, status=2)
    assert (tmp_path / "README.md").read_text() == card == environment_card(spec.name)
    front, body = parts(card)
    assert front["pretty_name"] == spec.id
    assert "reinforcement-learning" in front["tags"]
    assert all(f"`{kind}`" in body for kind in spec.task_types)
    skills = load_library(spec.library).skills if spec.library else ()
    assert all(skill.sha256[:12] in body for skill in skills)


def test_a_card_makes_the_environment_with_the_module_that_registers_it():
    assert 'gymnasium.make("skillc_gym:skillc/WebShop-v0"' in environment_card("skillc_gym:webshop")


def test_a_policys_card_says_how_it_was_made_and_what_was_found(tmp_path):
    won = ArmOutcome(won=True, score=1.0, steps=4, well_formed=4, admissible=1)
    lost = ArmOutcome(won=False, score=0.0, steps=9, well_formed=9, admissible=9)
    outcomes = tuple(PairedOutcome(f"valid/{n}", "heat", won, won if n == 0 else lost) for n in range(4))
    evaluation, policy = tmp_path / "after", tmp_path / "run" / "policy"
    PairedReport(outcomes, seed=7, sampling={}, warning="odd commands").save(evaluation / "report.json")
    write_json(evaluation / "config.json", {"env": "alfworld", "split": "valid_seen", "data": "generated"})
    write_json(policy / "config.json", {"model_type": "qwen3"})
    write_json(tmp_path / "run" / "config.json", {"env": "alfworld", "preset": "skillc", "steps": 40, "seed": 3})
    front, body = parts(policy_card(policy, evaluation))
    assert {"alfworld", "skillc"} <= set(front["tags"])
    (result,) = front["model-index"][0]["results"]
    assert result["dataset"] == {"type": "skillc/ALFWorld-v0", "name": "alfworld valid_seen"}
    assert [metric["value"] for metric in result["metrics"]] == [1.0, 0.25, 0.75]
    for said in ("| steps | `40` |", "4 tasks of `valid_seen`", "**Warning:** odd commands", "| all | 4 | 100 ["):
        assert said in body
    assert "| admissible commands, % of turns | 4 | 25.0 |" in body
    (policy / "model.safetensors").write_bytes(b"these")
    write_json(evaluation / "evaluation.json", {"weights_sha256": weights_sha256(policy)})
    assert "## Evaluation" in policy_card(policy, evaluation)
    (policy / "model.safetensors").write_bytes(b"others")
    with pytest.raises(ConfigError, match="evaluates other weights"):
        policy_card(policy, evaluation)
    write_json(policy / "policy_card.json", {"run": 3})
    (tmp_path / "run" / "config.json").unlink()
    assert "A policy by behaviour-cloning" in policy_card(policy)


def test_a_shipped_policys_card_names_its_weights():
    front, body = parts(policy_card(shipped_policy("webshop")))
    assert front["tags"][-2:] == ["webshop", "behaviour-cloning"]
    assert "weights_sha256" in body


def test_what_is_missing_is_said(tmp_path):
    with pytest.raises(MissingDataError, match="holds no checkpoint"):
        policy_card(tmp_path)
    with pytest.raises(MissingDataError, match="skillc evaluate"):
        policy_card(shipped_policy(), tmp_path)

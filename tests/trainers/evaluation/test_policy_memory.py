"""What a method learned to show stays with its policy, and is shown when the policy is evaluated."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skillc_gym.errors import CheckpointError, ConfigError
from tests.trainers.toys import toy_config
from trainers.config import TrainConfig
from trainers.evaluation.player import MEMORY_FILE, policy_memory
from trainers.evaluation.policy import evaluate_policy
from trainers.memory import SkillBank
from trainers.writers import Draft

pytest.importorskip("trl", reason="needs the train extra")

from trainers.training import run


def planted(folder: Path) -> Path:
    """A bank with one entry for all types."""
    bank = SkillBank()
    bank.add(Draft("skill text of done", "planted", "", "task", writer="hand"), 0)
    path = folder / "planted.jsonl"
    bank.save(path)
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, toy_folder: Path) -> TrainConfig:
    """A run of EvolveR that began with a planted entry and writes nothing; its bank's file is gone by now."""
    folder = tmp_path_factory.mktemp("memory")
    bank = planted(folder)
    options: dict[str, Any] = {"bank": str(bank), "writer": "none", "purge_below": 0.0}
    config = toy_config(toy_folder, method="evolver", method_options=options, steps=1, run=str(folder / "run"))
    assert run(config).finished
    bank.unlink()
    return replace(config, model=str(folder / "run" / "policy"), run="")


def seen(config: TrainConfig, **options: Any) -> set[tuple[int, str]]:
    """Condition and text of all episodes of an evaluation."""
    report = evaluate_policy(config, per_type=1, **options)
    return {(episode.condition, episode.skill_text or "") for episode in report.paired.episodes}


def test_the_policys_own_memory_is_shown_and_the_library_on_request(trained: TrainConfig) -> None:
    assert seen(trained) == {(0, ""), (1, "skill text of done")}
    texts = {text for condition, text in seen(trained, memory="library") if condition}
    assert texts == {"skill text\n\nskill text of echo", "skill text\n\nskill text of other"}


def test_an_evaluation_learns_nothing(trained: TrainConfig) -> None:
    path = Path(trained.model) / MEMORY_FILE
    before = path.read_bytes()
    assert evaluate_policy(trained, per_type=1).paired == evaluate_policy(trained, per_type=1).paired
    assert path.read_bytes() == before


def test_specific_skills_alone_stay_with_a_policy_of_skill05(toy_folder: Path, tmp_path: Path) -> None:
    config = toy_config(toy_folder, method="skill05", steps=1, run=str(tmp_path))
    policy = replace(config, model=str(run(config).policy), run="")
    assert {text for condition, text in seen(policy) if condition} == {"skill text of echo", "skill text of other"}


def test_methods_that_show_the_library_keep_nothing(toy_folder: Path, tmp_path: Path) -> None:
    config = toy_config(toy_folder, method="skillc", steps=1, run=str(tmp_path))
    policy = run(config).policy
    assert not (policy / MEMORY_FILE).exists()
    assert policy_memory(replace(config, model=str(policy))) is None


def test_a_damaged_or_foreign_memory_is_refused(trained: TrainConfig, tmp_path: Path) -> None:
    saved = json.loads((Path(trained.model) / MEMORY_FILE).read_text())
    config = replace(trained, model=str(tmp_path))
    (tmp_path / MEMORY_FILE).write_text(json.dumps({**saved, "env": "webshop"}))
    with pytest.raises(CheckpointError, match=r"learned in 'webshop'.*--memory library"):
        policy_memory(config)
    (tmp_path / MEMORY_FILE).write_text(json.dumps({**saved, "state": {}}))
    with pytest.raises(CheckpointError, match="is no skill memory"):
        policy_memory(config)


def test_a_server_is_not_silently_shown_the_library_instead(trained: TrainConfig) -> None:
    with pytest.raises(ConfigError, match="keeps skills of its own"):
        evaluate_policy(trained.with_(engine="openai", engine_options={"base_url": "http://localhost:1/v1"}))

"""A policy evaluated from a configuration: panel, identity, attempts, greedy play, files, and its own memory."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from skillc_gym.envs import registry
from skillc_gym.envs.registry import env_spec
from skillc_gym.errors import CheckpointError, ConfigError, UnknownNameError
from tests.trainers.toy_world import spec
from tests.trainers.toys import toy_config
from trainers.config import TrainConfig
from trainers.evaluation import PairedReport, PolicyReport, deciding_settings, open_panel
from trainers.evaluation.player import MEMORY_FILE, policy_memory
from trainers.evaluation.policy import evaluate_policy
from trainers.memory import SkillBank
from trainers.tracking import sha256_of_file
from trainers.writers import Draft

pytest.importorskip("transformers", reason="needs the extra 'train'")
pytest.importorskip("trl", reason="needs the train extra")

from trainers.training import run

SHOP = TrainConfig(
    model="shipped",
    env="webshop",
    data="generated",
    split="test",
    chat="compact",
    env_options={"generator": {"seed": 0, "size": 1000}},
    max_episode_steps=2,
    max_reply_tokens=16,
    max_context=1024,
)


def test_each_task_is_played_several_times_in_both_conditions_and_greedily_too(tmp_path: Path) -> None:
    evaluated = evaluate_policy(SHOP, per_type=3, attempts=2, greedy_too=True)
    with pytest.raises(ConfigError, match="greedily already"):
        evaluate_policy(SHOP.with_(eval_greedy=True), per_type=3, greedy_too=True)
    report = evaluated.paired
    assert (report.overall.n, report.attempts, len(report.episodes)) == (3, 2, 12)
    assert all(0.0 < (outcome.best_score or 0.0) <= 1.0 for outcome in report.outcomes)
    assert report.cuts("steps")["with"] > 0
    assert evaluated.greedy is not None
    assert evaluated.greedy.sampling["greedy"]
    assert evaluated.greedy.panel_sha256 == evaluated.paired.panel_sha256
    identity = {"weights_sha256": "0", "eval_greedy": False, "greedy_too": True}
    replace(evaluated, identity=identity).save_all(tmp_path)
    alone = json.loads((tmp_path / "greedy" / "evaluation.json").read_text())
    assert alone == {"weights_sha256": "0", "eval_greedy": True, "greedy_too": False}
    assert PairedReport.load(tmp_path / "greedy" / "report.json") == evaluated.greedy
    assert PairedReport.load(tmp_path / "report.json") == evaluated.paired


HOUSES = {"games_per_type": 2, "size": "small"}
ALFWORLD = TrainConfig(model="x", data="generated", split="valid_unseen", env_options={"generator": HOUSES})


@pytest.mark.parametrize(
    ("config", "option"),
    [
        *((SHOP, option) for option in ({"seed_prices": 1}, {"noun_tagger": str.split}, {"compat": "upstream"})),
        *((ALFWORLD, option) for option in ({"generator": {**HOUSES, "seed": 1}}, {"domain_randomization": True})),
    ],
)
def test_the_panels_identity_covers_the_environments_options(config: TrainConfig, option: dict[str, Any]) -> None:
    panel, again = open_panel(config, 3), open_panel(config, 3)
    other = open_panel(config.with_(env_options={**config.env_options, **option}), 3)
    assert panel.identity == again.identity != other.identity
    assert config is ALFWORLD or other.tasks == panel.tasks


def test_a_panel_is_named_task_by_task(tmp_path: Path) -> None:
    tasks = ["synthetic/7", "synthetic/3", "synthetic/7"]
    assert open_panel(SHOP, named=tasks).tasks == ("synthetic/3", "synthetic/7")
    with pytest.raises(UnknownNameError, match=r"synthetic/900.*split="):
        open_panel(SHOP, named=[*tasks, "synthetic/900"])
    with pytest.raises(ConfigError, match="not both"):
        open_panel(SHOP, 2, named=tasks)
    for stale in ("evaluation.json", "trials.json", "transcripts-trial-2.jsonl"):
        (tmp_path / stale).touch()
    evaluate_policy(SHOP, tasks=tasks, folder=str(tmp_path)).save_all(str(tmp_path))
    assert not [*tmp_path.glob("*trial*")], "of one that did not come to its report"
    with pytest.raises(ConfigError, match="tasks_sha256"):
        evaluate_policy(SHOP, tasks=tasks[:1], folder=tmp_path)
    with pytest.raises(ConfigError, match="vllm_dtype was 'auto', is 'float16'"):
        evaluate_policy(SHOP.with_(vllm_dtype="float16"), tasks=tasks, folder=tmp_path)


def test_the_order_of_wrappers_is_part_of_an_evaluation() -> None:
    one, other = ({name: {} for name in names} for names in (("a:A", "b:B"), ("b:B", "a:A")))
    assert deciding_settings(SHOP.with_(env_wrappers=one)) != deciding_settings(SHOP.with_(env_wrappers=other))


def test_a_split_is_one_of_those_that_the_environment_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    registry.register(replace(spec(tmp_path), splits=("train", "test")))
    assert open_panel(TrainConfig(model="x", env="lamps", split="test")).tasks
    with pytest.raises(UnknownNameError, match=r"'tset'.*test"):
        open_panel(TrainConfig(model="x", env="lamps", split="tset"))
    assert open_panel(SHOP.with_(split="all"), 1).tasks, "WebShop's own word for all of them"
    del gymnasium.registry["skillc-tests/Lamps-v0"]


def test_the_form_of_replies_that_an_engine_writes_says_nothing() -> None:
    chosen = SHOP.with_(engine="scoring", require_think=True)
    report = evaluate_policy(chosen, tasks=["synthetic/3"]).paired
    assert report.actions()["with"]["well_formed"] == 0.0
    assert PairedReport.from_json(report.to_json()).warning == ""


def test_what_is_of_another_evaluation_or_of_nobody_stays(tmp_path: Path) -> None:
    (tmp_path / "transcripts.jsonl").write_text("mine")
    with pytest.raises(ConfigError, match=r"holds something else.*transcripts\.jsonl.*--out"):
        evaluate_policy(SHOP, tasks=["synthetic/3"], folder=tmp_path)
    within = tmp_path / "res" / "greedy"
    greedy = SHOP.with_(eval_greedy=True)
    evaluate_policy(greedy, tasks=["synthetic/3"], folder=within).save_all(within)
    (tmp_path / "res" / "evaluation.json").write_text("{}")
    with pytest.raises(ConfigError, match="greedy is of something else"):
        evaluate_policy(SHOP, tasks=["synthetic/4"], folder=tmp_path / "res")
    assert (within / "report.json").exists()
    again = evaluate_policy(SHOP, tasks=["synthetic/3"], folder=tmp_path / "res", greedy_too=True)
    again.save_all(tmp_path / "res")
    assert (tmp_path / "res" / "report.json").exists()


def test_a_training_run_keeps_its_folder(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").touch()
    with pytest.raises(ConfigError, match=r"holds a training run; name another --out, such as .*after"):
        evaluate_policy(SHOP, tasks=["synthetic/3"], folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, toy_folder: Path) -> TrainConfig:
    """A run of EvolveR that began with a planted entry and writes nothing; its bank's file is gone by now."""
    folder = tmp_path_factory.mktemp("memory")
    planted, bank = SkillBank(), folder / "planted.jsonl"
    planted.add(Draft("skill text of done", "planted", "", "task", writer="hand"), 0)
    planted.save(bank)
    options: dict[str, Any] = {"bank": str(bank), "writer": "none", "purge_below": 0.0}
    config = toy_config(toy_folder, method="evolver", method_options=options, steps=1, run=str(folder / "run"))
    assert run(config).finished
    bank.unlink()
    return replace(config, model=str(folder / "run" / "policy"), run="")


def seen(report: PolicyReport) -> set[tuple[int, str]]:
    """Condition and text of all episodes of an evaluation."""
    return {(episode.condition, episode.skill_text or "") for episode in report.paired.episodes}


def test_the_policys_own_memory_is_shown_or_the_library_on_request_and_recorded(trained, tmp_path) -> None:
    own = sha256_of_file(Path(trained.model) / MEMORY_FILE)
    library = {"skill text\n\nskill text of echo", "skill text\n\nskill text of other"}
    for options, shown, recorded in (({}, {"skill text of done"}, own), ({"memory": "library"}, library, None)):
        folder = tmp_path / str(len(options))
        report = evaluate_policy(trained, per_type=1, folder=folder, **options)
        report.save_all(folder)
        assert seen(report) == {(0, ""), *((1, text) for text in shown)}
        assert json.loads((folder / "evaluation.json").read_text()).get("memory_sha256") == recorded


def test_an_evaluation_learns_nothing_and_no_server_is_silently_shown_the_library(trained: TrainConfig) -> None:
    path = Path(trained.model) / MEMORY_FILE
    before = path.read_bytes()
    assert evaluate_policy(trained, per_type=1).paired == evaluate_policy(trained, per_type=1).paired
    assert path.read_bytes() == before
    with pytest.raises(ConfigError, match="keeps skills of its own"):
        evaluate_policy(trained.with_(engine="openai", engine_options={"base_url": "http://localhost:1/v1"}))


def test_a_memory_is_read_by_another_name_of_its_environment(trained: TrainConfig, tmp_path: Path) -> None:
    saved = json.loads((Path(trained.model) / MEMORY_FILE).read_text())
    saved["preset_options"]["bank"] = str(tmp_path / "12:30" / "bank.jsonl")
    saved["env"] = env_spec(saved["env"]).id
    (tmp_path / MEMORY_FILE).write_text(json.dumps(saved))
    found, own = policy_memory(replace(trained, model=str(tmp_path))), policy_memory(trained)
    assert found.state_dict() == own.state_dict()


def test_code_that_a_memory_names_is_run_if_it_is_named_again(trained: TrainConfig, tmp_path: Path) -> None:
    saved = json.loads((Path(trained.model) / MEMORY_FILE).read_text())
    saved["preset_options"]["retrieval"] = rule = "tests.trainers.test_retrieval:LENGTH"
    (tmp_path / MEMORY_FILE).write_text(json.dumps(saved))
    copy = replace(trained, model=str(tmp_path), method_options={})
    with pytest.raises(CheckpointError, match=f"^[^ ]* names code of its own, {rule}"):
        policy_memory(copy)
    assert policy_memory(copy.with_(method_options={"retrieval": rule})) is not None


def test_specific_skills_alone_stay_with_a_policy_of_skill05(toy_folder: Path, tmp_path: Path) -> None:
    config = toy_config(toy_folder, method="skill05", steps=1, run=str(tmp_path))
    policy = replace(config, model=str(run(config).policy), run="")
    texts = {text for condition, text in seen(evaluate_policy(policy, per_type=1)) if condition}
    assert texts == {"skill text of echo", "skill text of other"}


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        ({"env": "webshop"}, r"learned in 'webshop'.*--memory library"),
        ({"state": {}}, "is no skill memory"),
        ({"preset": "this:x"}, "names code of its own"),
        (None, "is no skill memory"),
    ],
)
def test_a_damaged_or_foreign_memory_is_refused(trained: TrainConfig, tmp_path: Path, damage: Any, fault: str) -> None:
    saved = json.loads((Path(trained.model) / MEMORY_FILE).read_text())
    (tmp_path / MEMORY_FILE).write_text(json.dumps({**saved, **damage}) if damage else "{")
    with pytest.raises(CheckpointError, match=fault):
        policy_memory(replace(trained, model=str(tmp_path)))

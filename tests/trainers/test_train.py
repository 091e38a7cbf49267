from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from skillc_gym.episodes import read_jsonl
from skillc_gym.errors import CheckpointError, ConfigError, MissingDataError
from tests.trainers.toys import GRADED, timeless, toy_config
from trainers.config import TrainConfig
from trainers.models import load_model
from trainers.tracking.policy_settings import policy_settings
from trainers.tracking.progress import SilentProgress
from trainers.training import run, what_acted

pytest.importorskip("trl", reason="needs the extra 'train'")


@pytest.fixture
def config(toy_folder: Path, tmp_path: Path) -> TrainConfig:
    return toy_config(toy_folder, run=str(tmp_path / "run"))


def weights(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return dict(load_file(folder / "model.safetensors"))


def same_weights(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


class Dies(SilentProgress):
    """Kills the run after so many lines of metrics, or in the middle of generating the next step."""

    def __init__(self, after: int, *, midway: bool = False, error: type[BaseException] = RuntimeError) -> None:
        self.left, self.midway, self.error, self.armed = after, midway, error, False
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def phase(self, name: str, done: int, total: int) -> None:
        if self.armed:
            raise self.error("killed")

    def record(self, record: Any) -> None:
        self.left -= 1
        if self.left == 0:
            self.armed = True
            if not self.midway:
                raise self.error("killed")


def test_a_run_records_where_it_comes_from(config: TrainConfig) -> None:
    result = run(config)
    folder = result.folder.path
    assert json.loads((folder / "config.json").read_text())["method"] == "skillc"
    assert "trl" in json.loads((folder / "versions.json").read_text())["packages"]
    tasks = json.loads((folder / "tasks.json").read_text())
    assert len(tasks["panel"]) == 4
    trained = {task for record in result.metrics if record["event"] == "train" for task in record["tasks"]}
    assert not trained & set(tasks["panel"])
    played = read_jsonl(folder / "transcripts" / "validation-000002.jsonl")
    assert {episode.task_id for episode in played} == set(tasks["panel"])
    for episode in played:
        shown = "\n".join(message["content"] for message in episode.messages)
        assert bool(episode.skill_text) == bool(episode.condition)
        assert episode.skill_text in shown
    assert len(read_jsonl(folder / "transcripts" / "train-000003.jsonl")) == 16


@pytest.mark.parametrize(
    ("method", "did"),
    [
        ("grpo", set()),
        ("contrastive_relabelling", {"relabelled_updates"}),
        ("sdar", {"teacher_part"}),
        ("rlsd", {"teacher_part"}),
        ("opid", {"teacher_part", "relabelled_updates"}),
        ("skillrl", {"bank_size", "bank_uses", "entries_added"}),
    ],
)
def test_a_run_says_what_its_methods_own_parts_did(config: TrainConfig, method: str, did: set[str]) -> None:
    result = run(config.with_(method=method, steps=2, transcripts_every=0, **GRADED))
    acted = json.loads((result.folder.path / "what_acted.json").read_text())
    assert acted == result.acted
    assert {name for name, found in acted.items() if found is not None} - {"skill_share", "withdrawn_types"} == did
    assert (acted["skill_share"] > 0) == (method in ("contrastive_relabelling", "skillrl"))
    if method == "skillrl":
        assert (acted["bank_size"], acted["bank_uses"]) == (3, 32)


@pytest.mark.parametrize("ends_by", [{"steps": 9}, {"steps": 900, "budget_tokens": 540}])
def test_a_budget_of_skills_ends_without_a_validation(config: TrainConfig, ends_by: dict[str, int]) -> None:
    """As in the shop's table: a validation before and after training alone, and an end by tokens long before steps."""
    result = run(config.with_(method="skill0", validate_every=900, save_every=900, transcripts_every=0, **ends_by))
    last = result.metrics[-2]["step"]
    assert last >= 6
    assert last / 2 < result.acted["withdrawn_at"] <= last


def test_a_withdrawn_skill_is_dated_by_the_first_update_without_it() -> None:
    active = [["a", "b"], ["a", "b"], ["b"], ["b"], []]
    shared = {"event": "train", "rollout_fraction_with": {"a": 0.5}}
    records = [{**shared, "step": step, "active": kinds} for step, kinds in enumerate(active, 1)]
    assert what_acted(records)["withdrawn_types"] == {"a": 3, "b": 5}
    assert what_acted(records)["withdrawn_at"] == 5
    assert what_acted(records[:4])["withdrawn_at"] is None


def test_what_distraction_did_stands_in_the_summary(config: TrainConfig) -> None:
    options = {"distracted_share": 0.5, "distracted_by": "blank"}
    result = run(config.with_(method="skill_grpo+distraction", method_options=options, steps=1))
    assert result.acted["distracted_share"] == 0.5
    assert not (result.policy / "skill_memory.json").exists()


def test_records_that_do_not_say_what_acted_give_none_and_a_teacher_without_tokens_added_nothing() -> None:
    parts = [{"event": "train", "step": step, "teacher_part": part} for step, part in ((1, 0.5), (2, None))]
    older = what_acted([*parts, {"event": "train", "step": 3, "memory": {"size": 3}}])
    assert {name: found for name, found in older.items() if found} == {"teacher_part": 0.25, "bank_size": 3}
    assert 0 not in older.values()


def test_a_model_that_is_not_there_is_said_before_the_data_are_opened(tmp_path: Path) -> None:
    (tmp_path / "run/policy").mkdir(parents=True)
    for model, words in (("shiped", "skillc starts"), (str(tmp_path / "run"), "its policy is")):
        with pytest.raises(MissingDataError, match=words):
            run(TrainConfig(model=model, data=str(tmp_path / "nothing")))


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["grpo", "skillc"])
def test_the_toy_is_learned(toy_folder: Path, tmp_path: Path, preset: str) -> None:
    config = toy_config(
        toy_folder, run=str(tmp_path), method=preset, steps=100, tasks_per_step=8, group_size=8, max_reply_tokens=1,
        learning_rate=3e-3, adam_beta2=0.99, micro_batches=1, validate_every=50, transcripts_every=0, save_every=100,
    )  # fmt: skip
    success = [record["success"] for record in run(config).metrics if record["event"] == "train"]
    assert sum(success[:10]) / 10 < 0.2
    assert sum(success[-10:]) / 10 > 0.4


@pytest.mark.parametrize(
    "changes",
    [
        {"form": "window:1", "env_options": {"turns": 2}},
        {"loss_aggregation": "token", "kl_coef": 0.0},
        {"stream_norms_every": 1},
        {"schedule": "cosine", "warmup_steps": 1},
        {"precision": "bfloat16", "method": "ppo"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_variants_run(config: TrainConfig, changes: dict[str, Any]) -> None:
    result = run(config.with_(steps=2, **changes))
    assert result.finished
    assert len(timeless(result.metrics)) == 4
    if "stream_norms_every" in changes:
        norms = result.metrics[1]["stream_grad_norm"]
        assert set(norms) == {"outcome", "conditional", "correction"}


def test_adapters_end_in_a_whole_policy_that_can_be_played(config: TrainConfig) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    config = config.with_(steps=2, lora_rank=2, learning_rate=1e-1, **GRADED)
    result = run(config)
    start, trained = weights(Path(config.model)), weights(result.policy)
    assert start.keys() == trained.keys()
    changed = {name for name in start if not torch.equal(start[name], trained[name])}
    assert changed
    assert all("_proj" in name for name in changed)
    (checkpoint,) = result.folder.saved.complete()
    beside = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(config.model), checkpoint)
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        expected = beside.eval()(ids).logits
        got = load_model(config.with_(model=str(result.policy), lora_rank=0))(ids).logits
    assert torch.allclose(expected, got, atol=1e-4)


def test_a_checkpoint_is_played_as_the_policy_is(config: TrainConfig) -> None:
    result = run(config.with_(steps=1))
    (checkpoint,) = result.folder.saved.complete()
    beside = policy_settings(str(checkpoint), config.env)
    assert beside
    assert beside == policy_settings(str(result.policy), config.env)


def test_the_same_seed_gives_the_same_metrics(config: TrainConfig, tmp_path: Path) -> None:
    config = config.with_(**GRADED)
    first, second = (run(config.with_(run=str(tmp_path / name), steps=2)) for name in "ab")
    other = run(config.with_(run=str(tmp_path / "c"), steps=2, seed=1))
    assert timeless(first.metrics) == timeless(second.metrics)
    assert timeless(first.metrics) != timeless(other.metrics)


@pytest.mark.parametrize(
    ("after", "midway", "changes"),
    [
        *((after, midway, {"steps": 6}) for after, midway in ((1, True), (3, False), (5, True), (8, True))),
        (5, True, {"num_minibatches": 2}),
        (5, True, {"lora_rank": 2, "lora_dropout": 0.5}),
    ],
)
def test_a_killed_run_goes_on_to_the_same_metrics(
    config: TrainConfig, tmp_path: Path, after: int, midway: bool, changes: dict[str, Any]
) -> None:
    config = config.with_(**changes, **GRADED)
    whole = run(config.with_(run=str(tmp_path / "whole")))
    with pytest.raises(RuntimeError, match="killed"):
        run(config, progress=Dies(after, midway=midway))
    with (Path(config.run) / "metrics.jsonl").open("a") as file:
        file.write('{"step": 99, "eve')  # the kill came while a line was written
    resumed = run(config)
    assert resumed.finished
    assert timeless(resumed.metrics) == timeless(whole.metrics)
    assert same_weights(weights(resumed.policy), weights(whole.policy))
    # Once it has finished, the same command writes the same policy again.
    shutil.rmtree(resumed.policy)
    assert same_weights(weights(run(config).policy), weights(whole.policy))


def test_interrupted_twice_drops_the_step_and_says_how_to_go_on(config: TrainConfig) -> None:
    progress = Dies(5, midway=True, error=KeyboardInterrupt)
    result = run(config, progress=progress)
    assert not result.finished
    assert any("The same command goes on from step 2" in note for note in progress.notes)
    assert run(config).finished


def test_interrupted_once_finishes_the_step_and_saves(config: TrainConfig) -> None:
    class Asks(SilentProgress):
        def record(self, record: Any) -> None:
            if record["step"] == 1:
                signal.raise_signal(signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    result = run(config.with_(save_every=100), progress=Asks())
    assert signal.getsignal(signal.SIGTERM) is before
    assert not result.finished
    assert [path.name for path in result.folder.saved.complete()] == [f"step-{result.step:06d}"]
    assert run(config.with_(save_every=100)).finished


def test_a_run_stops_when_its_time_is_up_and_goes_on(config: TrainConfig, tmp_path: Path) -> None:
    config = config.with_(steps=2, save_every=100)
    whole = run(config.with_(run=str(tmp_path / "whole")))
    first = run(config.with_(max_minutes=1e-6))
    assert (first.finished, first.step) == (False, 0)
    assert first.folder.saved.complete() == []
    assert timeless(run(config).metrics) == timeless(whole.metrics)


def test_a_checkpoint_of_another_run_or_of_other_tasks_is_refused(config: TrainConfig, tmp_path: Path) -> None:
    run(config.with_(steps=2))
    said = r"method was 'skillc', is 'grpo'; learning_rate was 0.001, is 0.5.*run=another/folder"
    with pytest.raises(CheckpointError, match=said):
        run(config.with_(steps=2, method="grpo", learning_rate=0.5))
    with pytest.raises(ConfigError, match=r"already holds a run.*resume=auto"):
        run(config.with_(steps=2, resume="never"))
    with pytest.raises(CheckpointError, match="no complete checkpoint"):
        run(config.with_(steps=2, resume=str(tmp_path)))
    meta_path = Path(config.run) / "checkpoints" / "step-000002" / "run.json"
    meta = json.loads(meta_path.read_text())
    meta_path.write_text(json.dumps({**meta, "task_digest": "other"}))
    with pytest.raises(CheckpointError, match="other tasks"):
        run(config.with_(steps=2))
    meta_path.write_text("{")
    with pytest.raises(CheckpointError, match="damaged"):
        run(config.with_(steps=2))


def test_a_damaged_checkpoint_is_passed_over_and_its_step_done_again(config: TrainConfig) -> None:
    config = config.with_(steps=2, save_every=1)
    first = run(config)
    expected, weights_before = timeless(first.metrics), weights(first.policy)
    newest = first.folder.saved.complete()[-1]
    (newest / "model.safetensors").write_bytes(b"cut")
    with first.folder.metrics_path.open("ab") as file:
        file.write(b'{"step": 9\n')
    progress = Dies(99)
    again = run(config, progress=progress)
    assert any(f"Passed over {newest}, which is damaged: model.safetensors" in note for note in progress.notes)
    assert timeless(again.metrics) == expected
    assert same_weights(weights(again.policy), weights_before)


def test_half_written_checkpoints_do_not_count(config: TrainConfig) -> None:
    run(config.with_(steps=2))
    checkpoints = Path(config.run) / "checkpoints"
    shutil.copytree(checkpoints / "step-000002", checkpoints / ".partial-000004")
    (checkpoints / "step-000006").mkdir()
    assert run(config.with_(steps=2)).finished
    assert not (checkpoints / ".partial-000004").exists()

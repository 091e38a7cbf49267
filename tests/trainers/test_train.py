"""Runs: what they record, that settings act, and that those which were stopped go on to the same end."""

import json
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from skillc_gym.episodes import read_jsonl
from skillc_gym.errors import CheckpointError, ConfigError, MissingDataError, SkillFileError
from tests.trainers.toys import GRADED, ToyEnv, timeless, write_library
from trainers.config import TrainConfig
from trainers.evaluation import evaluate_policy, validation_record
from trainers.learner import Learner, learner
from trainers.models import load_model, load_tokenizer
from trainers.rollout import opening
from trainers.tracking import RunFolder
from trainers.tracking.policy_settings import policy_settings
from trainers.tracking.progress import SilentProgress
from trainers.training import run, what_acted

pytest.importorskip("trl", reason="needs the extra 'train'")


Make = Callable[..., TrainConfig]
LEARNING: dict[str, Any] = {"steps": 2, "learning_rate": 1e-2, "transcripts_every": 0, **GRADED}


@pytest.fixture
def config(toy: Make) -> TrainConfig:
    return toy()


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


def test_a_run_records_where_it_comes_from_and_what_it_did(toy: Make) -> None:
    config = toy(stream_norms_every=1)
    result = run(config)
    folder = result.folder.path
    recorded, versions, tasks = (
        json.loads((folder / f"{n}.json").read_text()) for n in ("config", "versions", "tasks")
    )
    assert (recorded["method"], "trl" in versions["packages"], len(tasks["panel"])) == ("skillc", True, 4)
    updates = [record for record in result.metrics if record["event"] == "train"]
    assert set(updates[0]["stream_grad_norm"]) == {"outcome", "conditional", "correction"}
    assert not {task for record in updates for task in record["tasks"]} & set(tasks["panel"])
    played = read_jsonl(folder / "transcripts" / "validation-000002.jsonl")
    assert {episode.task_id for episode in played} == set(tasks["panel"])
    for episode in played:
        assert bool(episode.skill_text) == bool(episode.condition)
        assert episode.skill_text in "\n".join(message["content"] for message in episode.messages)
    assert len(read_jsonl(folder / "transcripts" / "train-000003.jsonl")) == 16
    # A checkpoint is played as the policy is.
    checkpoint, policy = (
        policy_settings(str(p), config.env) for p in (result.folder.saved.complete()[-1], result.policy)
    )
    assert checkpoint == policy != {}


@pytest.mark.parametrize(
    ("method", "did"),
    [
        ("grpo", set()),
        ("contrastive_relabelling", {"relabelled_updates"}),
        ("sdar", {"teacher_part"}),
        ("rlsd", {"teacher_part"}),
        ("opid", {"teacher_part", "relabelled_updates"}),
        ("pi_distill", {"teacher_part", "relabelled_updates"}),
        ("skillrl", {"bank_size", "bank_uses", "entries_added"}),
        ("skill_grpo+distraction", {"distracted_share"}),
    ],
)
def test_a_run_says_what_its_methods_own_parts_did(toy: Make, method: str, did: set[str]) -> None:
    options = {"distracted_share": 0.5, "distracted_by": "blank"} if "distraction" in method else {}
    result = run(toy(method=method, method_options=options, steps=2, transcripts_every=0, **GRADED))
    acted = json.loads((result.folder.path / "what_acted.json").read_text())
    assert acted == result.acted
    assert {name for name, found in acted.items() if found is not None} - {"skill_share", "withdrawn_types"} == did
    assert (acted["skill_share"] > 0) == (
        method in ("contrastive_relabelling", "pi_distill", "skillrl", "skill_grpo+distraction")
    )
    assert (acted["bank_size"], acted["bank_uses"]) == ((3, 32) if method == "skillrl" else (None, None))
    assert acted["distracted_share"] == (0.5 if options else None)
    assert (result.policy / "skill_memory.json").exists() == (method == "skillrl")


@pytest.mark.parametrize("ends_by", [{"steps": 9}, {"steps": 900, "budget_tokens": 540}])
def test_a_budget_of_skills_ends_without_a_validation(config: TrainConfig, ends_by: dict[str, int]) -> None:
    """As in the shop's table: a validation before and after training alone, and an end by tokens long before steps."""
    result = run(config.with_(method="skill0", validate_every=900, save_every=900, transcripts_every=0, **ends_by))
    last = result.metrics[-2]["step"]
    assert last >= 6
    assert last / 2 < result.acted["withdrawn_at"] <= last


def test_a_withdrawn_skill_is_dated_by_the_first_update_without_it() -> None:
    active = [["a", "b"], ["a", "b"], ["b"], ["b"], []]
    share = [{"rollout_fraction_with": dict.fromkeys(kinds, 0.5)} for kinds in active]
    records = [{"event": "train", "step": i, "active": active[i - 1], **share[i - 1]} for i in range(1, 6)]
    assert what_acted(records)["withdrawn_types"] == {"a": 3, "b": 5}
    assert [what_acted(records[:end])["withdrawn_at"] for end in (5, 4)] == [5, None]
    records[2]["rollout_fraction_with"] = {"a": 0.5, "b": 0.5}
    assert what_acted(records)["withdrawn_types"]["a"] == 4, "those of update 3 were played ahead of the withdrawal"


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
def test_the_toy_is_learned(toy: Make, preset: str) -> None:
    config = toy(
        method=preset, steps=100, tasks_per_step=8, group_size=8, max_reply_tokens=1, learning_rate=3e-3,
        adam_beta2=0.99, micro_batches=1, validate_every=50, transcripts_every=0, save_every=100,
    )  # fmt: skip
    success = [record["success"] for record in run(config).metrics if record["event"] == "train"]
    assert sum(success[:10]) / 10 < 0.2
    assert sum(success[-10:]) / 10 > 0.4


@pytest.mark.parametrize(
    ("still", "changes"),
    [
        ({"env_options": {"turns": 2}}, {"form": "window:1"}),
        ({}, {"loss_aggregation": "token"}),
        ({"method": "ppo"}, {"precision": "bfloat16"}),
        ({}, {"schedule": "cosine", "warmup_steps": 1}),
        ({"num_minibatches": 2}, {"clip": 0.0, "clip_high": 5.0}),
        ({"num_minibatches": 2}, {"ratio": "sequence"}),
        ({}, {"loss_type": "dr_grpo"}),
        ({}, {"top_k": 2}),
        ({}, {"seed": 1}),
    ],
    ids=lambda changes: next(iter(changes), ""),
)
def test_each_setting_moves_a_run(toy: Make, still: dict[str, Any], changes: dict[str, Any]) -> None:
    plain, moved = (timeless(run(toy(**LEARNING, **found)).metrics) for found in (still, {**still, **changes}))
    assert plain != moved
    assert len(plain) == len(moved) == 4


@pytest.mark.parametrize("method", ["grpo", "grpo+entropy", "opsd", "ppo"])
def test_episodes_that_were_truncated_teach_nothing_but_a_critic(toy: Make, method: str) -> None:
    cut = {"env_options": {"turns": 3}, "max_episode_steps": 1, "mask_truncated": "all", "kl_coef": 0.5, "steps": 1}
    (update,) = [record for record in run(toy(method=method, **GRADED, **cut)).metrics if record["event"] == "train"]
    if method == "ppo":
        assert update["losses"]["policy"] == 0 < update["losses"]["value"]
    else:
        assert (update["grad_norm"], update["loss"], update["entropy"]) == (0, 0, None)


def test_a_reference_that_follows_is_the_policy_and_resumes_exactly(toy: Make) -> None:
    settings = {**LEARNING, "kl_coef": 0.5, "steps": 4, "save_every": 2}
    follows = {**settings, "reference_sync_every": 1}
    still, whole = (run(toy(**each)).metrics for each in (settings, {**follows, "reference_sync_weight": 1.0}))
    assert [record["kl"] for record in whole if record["event"] == "train"] == pytest.approx([0.0] * 4, abs=1e-5)
    assert max(record["kl"] for record in still if record["event"] == "train") > 1e-5
    halfway, expected = (toy(**follows, reference_sync_weight=0.5) for _ in range(2))
    with pytest.raises(RuntimeError, match="killed"):
        run(halfway, progress=Dies(5, midway=True))
    assert timeless(run(halfway).metrics) == timeless(run(expected).metrics)
    with pytest.raises(ConfigError, match="with kl_coef=0 this run has none"):
        run(toy(reference_sync_every=1, kl_coef=0.0, method="grpo"))
    by_reference = {"method": "opsd", "method_options": {"teacher_weights": "reference"}}
    with pytest.raises(ConfigError, match="would move the teacher"):
        run(toy(reference_sync_every=1, **by_reference))
    with pytest.raises(ConfigError, match="noise into ratios"):
        run(toy(lora_rank=2, lora_dropout=0.5, num_minibatches=2))


@pytest.mark.parametrize(
    ("after", "midway", "changes"),
    [
        *((after, midway, {"steps": 6}) for after, midway in ((1, True), (3, False), (5, True), (8, True))),
        (5, True, {"num_minibatches": 2}),
        (5, True, {"lora_rank": 2, "lora_dropout": 0.5}),
    ],
)
def test_a_killed_run_goes_on_to_the_same_metrics(toy: Make, after: int, midway: bool, changes: dict[str, Any]) -> None:
    undisturbed, config = (toy(**changes, **GRADED) for _ in range(2))
    whole = run(undisturbed)
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


def test_the_best_validations_policy_is_kept_also_by_a_run_that_was_killed(toy: Make, monkeypatch) -> None:
    def rated(report: Any, method: Any, step: int, retired: Any) -> dict[str, Any]:
        return {**validation_record(report, method, step, retired), "overall_without": (0.1, 0.3, 0.5, 0.5, 0.2)[step]}

    monkeypatch.setattr(learner, "validation_record", rated)
    often = {"validate_every": 1, "save_every": 1, "keep_checkpoints": 9, "load_best_at_end": True}
    whole, config = run(toy(**{**LEARNING, **often, "steps": 4})), toy(**{**LEARNING, **often, "steps": 4})
    kept = weights(whole.folder.checkpoints_path / "step-000002")
    assert same_weights(weights(whole.policy), kept)
    assert not same_weights(weights(whole.folder.checkpoints_path / "step-000004"), kept)
    with pytest.raises(RuntimeError, match="killed"):
        run(config, progress=Dies(6, midway=True))  # in the third update
    resumed = run(config, progress=(told := Dies(99)))
    assert same_weights(weights(resumed.policy), kept)
    assert "the policy, of update 2, is in" in told.notes[-1]
    shutil.rmtree(resumed.policy)
    assert same_weights(weights(run(config).policy), kept)


SMALL = {
    **{"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4, "head_dim": 8},
    **{"num_key_value_heads": 2, "max_position_embeddings": 2048, "pad_token_id": 0, "bos_token_id": None},
    **{"eos_token_id": 1, "initializer_range": 0.3},
}


def composite(vocabulary: int) -> Any:
    """Of text and pictures, as Gemma 3 from 4B up."""
    from transformers import Gemma3Config

    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    return Gemma3Config(
        text_config={**SMALL, "vocab_size": vocabulary, "sliding_window": 64},
        vision_config={**sizes, "image_size": 28, "patch_size": 14},
        mm_tokens_per_image=4,
        **{f"{name}_index": 2 for name in ("boi_token", "eoi_token", "image_token")},
    )


def of_experts(vocabulary: int) -> Any:
    from transformers import Qwen3MoeConfig

    return Qwen3MoeConfig(
        **SMALL, vocab_size=vocabulary, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16
    )


def saved(make: Callable[[int], Any], toy_folder: Path, folder: Path) -> Path:
    """Writes a random model of that configuration, with the toy's tokenizer."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(toy_folder / "model")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        AutoModelForCausalLM.from_config(make(len(tokenizer))).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("make", [composite, of_experts])
def test_models_whose_files_call_weights_otherwise_go_on_exactly(make, toy, toy_folder, tmp_path) -> None:
    model = str(saved(make, toy_folder, tmp_path / "model"))
    config = toy(model=model, save_every=1, keep_checkpoints=9, method="grpo", **{**LEARNING, "steps": 3})
    result = run(config)
    whole, metrics = weights(result.policy), timeless(result.metrics)
    assert any(not torch.equal(value, whole[name]) for name, value in weights(Path(model)).items())
    for later in (2, 3):
        shutil.rmtree(Path(config.run) / "checkpoints" / f"step-{later:06d}")
    for _ in range(2):  # what is missing is done again, then the policy alone is written
        shutil.rmtree(result.policy)
        again = run(config)
        assert timeless(again.metrics) == metrics
        assert same_weights(weights(again.policy), whole)


@pytest.mark.parametrize("make", [None, of_experts])
def test_adapters_end_in_a_whole_policy_that_can_be_played(make, toy, toy_folder, tmp_path) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    model = saved(make, toy_folder, tmp_path / "model") if make else toy_folder / "model"
    config = toy(model=str(model), lora_rank=2, kl_coef=0.0, method="grpo", **{**LEARNING, "learning_rate": 0.1})
    result = run(config)
    start, trained = weights(model), weights(result.policy)
    assert start.keys() == trained.keys()
    changed = {name for name in start if not torch.equal(start[name], trained[name])}
    assert all("_proj" in name or "mlp.gate." in name for name in changed)
    assert any(("experts" if make else "_proj") in name for name in changed)
    (checkpoint,) = result.folder.saved.complete()
    beside = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(model), checkpoint).eval()
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        got = load_model(config.with_(model=str(result.policy), lora_rank=0)).eval()(ids).logits
        assert torch.allclose(beside(ids).logits, got, atol=1e-4)


def test_interrupted_twice_drops_the_step_and_says_how_to_go_on(config: TrainConfig) -> None:
    progress = Dies(5, midway=True, error=KeyboardInterrupt)
    assert not run(config, progress=progress).finished
    assert any("The same command goes on from step 2" in note for note in progress.notes)
    assert run(config).finished


def test_interrupted_once_finishes_the_step_and_saves(toy: Make) -> None:
    class Asks(SilentProgress):
        def record(self, record: Any) -> None:
            if record["step"] == 1:
                signal.raise_signal(signal.SIGTERM)

    config, before = toy(save_every=100), signal.getsignal(signal.SIGTERM)
    result = run(config, progress=Asks())
    assert signal.getsignal(signal.SIGTERM) is before
    assert (result.finished, result.stopped) == (False, True)
    assert [path.name for path in result.folder.saved.complete()] == [f"step-{result.step:06d}"]
    assert run(config).finished


def test_interrupted_in_a_validation_no_other_update_begins(toy: Make) -> None:
    class Asks(SilentProgress):
        due = False

        def record(self, record: Any) -> None:
            self.due = record["event"] == "train" and record["step"] == 1

        def phase(self, name: str, done: int, total: int) -> None:
            if self.due and name == "validation":
                self.due = False
                signal.raise_signal(signal.SIGTERM)

    result = run(toy(validate_every=1, save_every=100), progress=Asks())
    assert (result.step, result.stopped) == (1, True)
    assert [path.name for path in result.folder.saved.complete()] == ["step-000001"]


def test_a_run_stops_when_its_time_is_up_and_goes_on(toy: Make) -> None:
    whole, config = (toy(steps=2, save_every=100) for _ in range(2))
    first = run(config.with_(max_minutes=1e-6))
    saved = [path.name for path in first.folder.saved.complete()]
    assert not first.stopped
    assert (first.finished, first.step, saved) == (False, 1, ["step-000001"]), "an update, however long it takes"
    assert run(config.with_(max_minutes=1e-6)).finished
    assert timeless(first.folder.metrics()) == timeless(run(whole).metrics)


def test_a_checkpoint_of_another_run_or_of_other_tasks_is_refused(toy: Make, tmp_path: Path) -> None:
    config = toy(steps=2)
    run(config)

    def refused(error: type[Exception], says: str, **changes: Any) -> None:
        with pytest.raises(error, match=says):
            run(config.with_(**changes))

    said = r"method was 'skillc', is 'grpo'; learning_rate was 0.001, is 0.5.*run=another/folder"
    refused(CheckpointError, said, method="grpo", learning_rate=0.5)
    refused(ConfigError, r"already holds a run.*resume=auto", resume="never")
    refused(CheckpointError, "no complete checkpoint", resume=str(tmp_path))
    meta = Path(config.run) / "checkpoints" / "step-000002" / "run.json"
    meta.write_text(json.dumps({**json.loads(meta.read_text()), "task_digest": "other"}))
    refused(CheckpointError, "other tasks")
    meta.write_text("{")
    refused(CheckpointError, "damaged")


@pytest.fixture
def mine(toy: Make, tmp_path: Path) -> Path:
    """A copy of the library that a test may edit."""
    return Path(shutil.copytree(str(toy().skill_library), tmp_path / "mine"))


def test_a_run_does_not_go_on_with_other_texts_than_were_shown(toy, mine, monkeypatch) -> None:
    text, finish = max(mine.rglob("SKILL.md")), Learner.finish

    def finish_edited(learner: Learner, figures: dict[str, Any]) -> None:
        text.write_text(text.read_text() + "\nMore.\n")  # before the checkpoint is written
        finish(learner, figures)

    config = toy(steps=1, library=str(mine))
    with monkeypatch.context() as patch:
        patch.setattr(Learner, "finish", finish_edited)
        run(config)
    with pytest.raises(CheckpointError, match="library has changed"):
        run(config)


def test_a_run_that_diverges_ends_in_words_and_leaves_no_policy(toy: Make) -> None:
    config = toy(method="grpo+entropy", learning_rate=1e30, steps=3, save_every=1)
    with pytest.raises(ConfigError, match=r"gradient of update \d is not finite|logits are NaN"):
        run(config)
    assert not RunFolder(config.run_folder).policy_path.exists()


@pytest.mark.parametrize(("template", "fault"), [(b"\xff", "read as UTF-8"), (b"{{ 'a' + 1 }}", "cannot render turns")])
def test_a_template_that_fails_is_told_in_words(toy: Make, tmp_path: Path, template: bytes, fault: str) -> None:
    (file := tmp_path / "template").write_bytes(template)
    with pytest.raises(ConfigError, match=fault):
        run(toy(steps=1, chat_template=str(file)))


def test_a_run_does_not_go_on_with_other_tasks_of_the_same_names_or_over_other_weights(
    toy: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = shutil.copytree(toy().model, tmp_path / "start")
    (template := tmp_path / "template").write_text(load_tokenizer(toy()).chat_template)
    config = toy(steps=1, model=str(model), kl_coef=0.1, chat_template=str(template))
    run(config)
    with monkeypatch.context() as patch:
        patch.setattr(ToyEnv, "identify", lambda env, tasks: {"content": sorted(tasks)[:1]}, raising=False)
        with pytest.raises(CheckpointError, match="have the names, but not the content"):
            run(config)
    template.write_text(" " + (text := template.read_text()))
    with pytest.raises(CheckpointError, match="tokenizer or its chat template"):
        run(config)
    template.write_text(text)
    worded = opening.chat_format
    with monkeypatch.context() as patch:
        patch.setattr(opening, "chat_format", lambda config: replace(worded(config), role="wrong"))
        with pytest.raises(CheckpointError, match="wording of chat= has changed"):
            run(config)
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    with pytest.raises(CheckpointError, match="which does not hold them"):
        run(config)
    assert run(toy(steps=1, run=str(tmp_path / "own"), kl_coef=0.0)).metrics


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"skill_grade": "minimal"}, "skill_grade=minimal shortens"),
        ({"method": "skill_grpo+distraction"}, "reads the skill library itself"),
        ({"method": "skill05"}, "reads the skill library itself"),
        ({"method": "evolver", "method_options": {"start_with": "library"}}, "reads the skill library itself"),
        ({"method": "opsd"}, "the teacher of method=opsd reads"),
    ],
)
def test_what_reads_the_library_needs_it_where_the_environment_has_a_switch(
    toy: Make, tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    switch = {"skillc_gym.wrappers:SkillInjection": {"library": str(write_library(tmp_path)), "where": "info"}}
    settings: dict[str, Any] = {"library": None, "env_wrappers": switch, "steps": 1}
    with pytest.raises(ConfigError, match=f"{says}.*library=FOLDER"):
        run(toy(**settings, **changes))
    if "skill_grade" in changes:
        assert run(toy(**settings, method="guarded_imitation")).finished


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({}, SkillFileError, "front matter"),
        ({"group_size": 1}, ConfigError, "group_size"),
        ({"method": "grpo", "library": None}, ConfigError, r"has no skills of its own.*library=FOLDER"),
    ],
)
def test_bad_libraries_and_groups_are_refused_before_a_model_is_loaded(
    toy: Make, mine: Path, changes: dict[str, Any], error: type[Exception], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    max(mine.rglob("SKILL.md")).write_text("no front matter")
    monkeypatch.setattr("trainers.learner.make_objective", None)  # made before the model
    config = toy(**(changes or {"library": str(mine)}))
    for play in (run, evaluate_policy) if config.library is None else (run,):
        with pytest.raises(error, match=says):
            play(config)

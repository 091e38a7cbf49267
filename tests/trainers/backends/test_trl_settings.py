"""Settings that TRL, transformers, PEFT and vLLM carry out: each is seen to act on what they made."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch

pytest.importorskip("trl", reason="needs the extra 'train'")

from safetensors.torch import load_file
from trl.generation import vllm_generation

from skillc_gym.errors import ConfigError, MissingDataError
from tests.trainers.conftest import make_model
from tests.trainers.toys import GRADED, next_batches, start_learner, toy_config
from trainers.backends.trl.arguments import check_vllm, sleep, started_with, wake_up
from trainers.backends.trl.backend import TrlBackend
from trainers.backends.trl.trainer import SkillTrainer
from trainers.config import TrainConfig
from trainers.engines.registry import engine_spec
from trainers.learner import Learner, Weights
from trainers.learner.objective import SAMPLING_RATIO_CAP, engine_mismatch
from trainers.models import load_model, load_plain_tokenizer
from trainers.rollout.batches import MicroBatch, Tokens
from trainers.training import run


def made(folder: Path, run: Path, **changes: Any) -> SkillTrainer:
    return backend_of(start_learner(toy_config(folder, run=str(run), **changes), trains=False)).trainer


def started(folder: Path, run: Path, **changes: Any) -> Learner:
    return start_learner(toy_config(folder, run=str(run), **changes))


def backend_of(learner: Learner) -> TrlBackend:
    assert isinstance(learner.backend, TrlBackend)
    return learner.backend


def test_numbers_optimiser_and_patience_reach_the_trainer(toy_folder: Path, tmp_path: Path) -> None:
    changes = {"adam_beta1": 0.7, "adam_beta2": 0.8, "adam_epsilon": 1e-5, "weight_decay": 0.3}
    optimiser = made(toy_folder, tmp_path, **changes).create_optimizer()
    assert isinstance(optimiser, torch.optim.AdamW)
    group = optimiser.param_groups[0]
    assert (group["betas"], group["eps"], group["weight_decay"]) == ((0.7, 0.8), 1e-5, 0.3)
    trainer = made(toy_folder, tmp_path / "other", optimiser="sgd", ddp_timeout=77)
    assert isinstance(trainer.create_optimizer(), torch.optim.SGD)
    assert (trainer.args.ddp_timeout, trainer.args.ddp_find_unused_parameters) == (77, False)
    assert trainer.args.bf16 is torch.cuda.is_available()


def test_what_is_not_installed_is_named(toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainers.models.loading.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"attention=flash_attention_2 needs.*attention=sdpa"):
        made(toy_folder, tmp_path, attention="flash_attention_2")
    monkeypatch.setattr("trainers.backends.trl.arguments.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="pip install liger-kernel"):
        made(toy_folder, tmp_path, liger=True)
    with pytest.raises(ConfigError, match="pip install bitsandbytes"):
        made(toy_folder, tmp_path, optimiser="adamw_8bit")


def test_kernels_reach_model_and_trainer(toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers

    asked: dict[str, Any] = {}
    monkeypatch.setattr("trainers.models.loading.find_spec", lambda name: name)
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", lambda _, **given: asked.update(given))
    load_model(toy_config(toy_folder, attention="flash_attention_3"))
    assert asked["attn_implementation"] == "flash_attention_3"
    monkeypatch.undo()
    monkeypatch.setattr("trainers.backends.trl.arguments.find_spec", lambda name: name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        args = made(toy_folder, tmp_path, liger=True).args
    assert args.use_liger_kernel
    assert args.liger_kernel_config == {"fused_linear_cross_entropy": False}
    assert not made(toy_folder, tmp_path / "plain").args.use_liger_kernel


def test_adapters_go_where_they_are_told(toy_folder: Path, tmp_path: Path) -> None:
    trainer = made(toy_folder, tmp_path, lora_rank=2, lora_targets=("q_proj", "v_proj"), lora_dropout=0.25)
    trained = {
        name.split(".lora_")[0].rsplit(".", 1)[1] for name, p in trainer.model.named_parameters() if p.requires_grad
    }
    assert trained == {"q_proj", "v_proj"}
    assert {module.p for module in trainer.model.modules() if isinstance(module, torch.nn.Dropout)} >= {0.25}


@pytest.mark.parametrize(("weights", "rank"), [("policy", 0), ("reference", 0), ("reference", 2)])
def test_dropout_acts_in_the_pass_that_learns_alone(
    weights: Weights, rank: int, toy_folder: Path, tmp_path: Path
) -> None:
    learner = started(toy_folder, tmp_path, lora_rank=rank, kl_coef=0.1)
    backend, (batch, *_) = backend_of(learner), next_batches(learner)
    backend.trainer.model_wrapped.train()
    for module in backend.trainer.model.modules():
        if hasattr(module, "attention_dropout"):
            module.attention_dropout = 0.5
    with torch.no_grad():
        first, second = (backend.score(batch.tokens, {"logprobs"}, weights)["logprobs"] for _ in range(2))
    assert torch.equal(first, second)
    learning, again = (backend.forward(batch.tokens, {"logprobs"})["logprobs"] for _ in range(2))
    assert not torch.equal(learning, again)


def test_the_critics_head_is_clipped_with_the_policy(
    toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"value.coefficient": 20.0}
    learner = started(toy_folder, tmp_path, method="ppo", method_options=options, max_grad_norm=0.01, **GRADED)
    trainer = backend_of(learner).trainer
    for batch in next_batches(learner):
        learner.backend.backward(learner.loss(batch, 1))
    heads = [p for head in trainer.extras.heads.values() for p in head.parameters()]
    policy = list(trainer.model.parameters())
    before, seen = norm([*policy, *heads]), []
    assert before > 1.1 * norm(policy)
    monkeypatch.setattr(trainer.optimizer, "step", lambda: seen.append(norm([*policy, *heads])))
    assert learner.backend.step()["grad_norm"] == pytest.approx(before, rel=1e-4)
    assert seen == pytest.approx([0.01], rel=1e-3)


def test_a_separate_teacher(toy_folder: Path, tmp_path: Path) -> None:
    taught = load_model(toy_config(toy_folder))
    with torch.no_grad():
        taught.get_output_embeddings().weight.mul_(3)
    taught.save_pretrained(tmp_path / "teacher")
    options = {"method": "grpo_opsd", "method_options": {"teacher_weights": "reference"}, "kl_coef": 0.0}
    learner = started(toy_folder, tmp_path / "run", **options, reference_model=str(tmp_path / "teacher"))
    trainer = backend_of(learner).trainer
    assert torch.equal(trainer.ref_model.get_output_embeddings().weight, taught.get_output_embeddings().weight)
    assert not torch.equal(trainer.model.get_output_embeddings().weight, taught.get_output_embeddings().weight)
    assert trainer.model.config._name_or_path == toy_config(toy_folder).model_path
    with pytest.raises(ConfigError, match="leave reference_model out"):
        made(toy_folder, tmp_path / "unread", reference_model=str(tmp_path / "teacher"), kl_coef=0.0)
    with pytest.raises(MissingDataError, match="nowhere"):
        made(toy_folder, tmp_path / "missing", reference_model=str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match="lora_rank"):
        toy_config(toy_folder, reference_model=str(tmp_path / "teacher"), lora_rank=2)


def norm(parameters: list[torch.nn.Parameter]) -> float:
    return float(torch.stack([p.grad.norm() for p in parameters if p.grad is not None]).norm())


def test_the_reference_is_never_spread_over_devices(
    toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from trl.trainer import grpo_trainer

    asked: list[dict[str, Any]] = []
    make = grpo_trainer.create_model_from_path
    monkeypatch.setattr(
        grpo_trainer, "create_model_from_path", lambda path, **given: [asked.append(given), make(path, **given)][1]
    )
    made(toy_folder, tmp_path, kl_coef=0.1)
    assert [given.get("device_map", "TRL's choice") for given in asked] == [None]
    assert "model_init_kwargs" not in caplog.text


def test_bfloat16_is_what_a_processor_computes_in_too(toy_folder: Path, tmp_path: Path) -> None:
    learner = started(toy_folder, tmp_path, precision="bfloat16")
    trainer = backend_of(learner).trainer
    assert {p.dtype for p in trainer.model.parameters()} == {torch.float32}
    seen = []
    layer = trainer.model.model.layers[0].mlp
    layer.register_forward_hook(lambda module, args, output: seen.append(output.dtype))
    next_batches(learner)
    assert set(seen) == {torch.bfloat16}


def test_an_average_of_weights_in_bfloat16_moves_by_small_steps(toy_folder: Path, tmp_path: Path) -> None:
    settings = {"method": "opsd_jsd", "method_options": {"teacher_weights": "average"}, "precision": "pure_bfloat16"}
    backend = backend_of(started(toy_folder, tmp_path, **settings))
    average, policy = backend.trainer.extras.average, backend.trainer.model
    before = [value.clone() for value in average.parameters()]
    with torch.no_grad():
        for value in policy.parameters():
            value.mul_(1.02)
    backend.trainer.extras.after_update(1)
    for old, new in zip(before, average.parameters(), strict=True):
        assert torch.all((new != old) | (old == 0))
    tokens = Tokens(torch.tensor([[5, 6, 7]]), torch.ones(1, 2))
    assert torch.isfinite(backend.score(tokens, {"logprobs"}, "average")["logprobs"]).all()


def test_a_revision_is_asked_of_a_hub_and_never_of_a_folder(toy_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers

    asked: dict[str, Any] = {}

    def from_pretrained(model: str, **options: Any) -> str:
        asked.update(options, model=model)
        return "tokenizer"

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", from_pretrained)
    load_plain_tokenizer(TrainConfig(model="some/model", revision="v1"))
    assert (asked["model"], asked["revision"]) == ("some/model", "v1")
    with pytest.raises(ConfigError, match=r"revision='v1'.*is a folder"):
        load_plain_tokenizer(TrainConfig(model=str(toy_folder / "model"), revision="v1"))


def test_the_launchers_precision_gives_way(toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")
    assert made(toy_folder, tmp_path, precision="float32").accelerator.mixed_precision == "no"


def test_a_reference_that_is_wrapped_is_looked_into(
    toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As DeepSpeed's engine, this has a model's configuration in its module alone.
    monkeypatch.setattr("accelerate.Accelerator.prepare_model", lambda self, model, **_: torch.nn.DataParallel(model))
    assert isinstance(made(toy_folder, tmp_path, kl_coef=0.1).ref_model, torch.nn.DataParallel)


def test_what_is_sharded_is_summed_up_after_every_pass(
    toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = backend_of(started(toy_folder, tmp_path))
    monkeypatch.setattr(backend.trainer, "is_fsdp_enabled", True)
    monkeypatch.delattr("accelerate.Accelerator.no_sync")
    with backend.accumulate(last=False):
        assert not backend.trainer.accelerator.gradient_state.sync_gradients


def test_weights_that_deepspeed_keeps(toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend, prepared = backend_of(started(toy_folder, tmp_path)), list[Path]()
    monkeypatch.setattr(TrlBackend, "_deepspeed", True)
    monkeypatch.setattr(backend.trainer, "prepare", prepared.append)
    backend.restore(tmp_path)
    assert prepared == [tmp_path]
    with pytest.raises(ConfigError, match="take precision=bfloat16"):
        made(toy_folder, tmp_path / "pure", precision="pure_bfloat16")


def test_only_the_upper_layers_are_trained(toy_folder: Path, tmp_path: Path) -> None:
    start = tmp_path / "start"
    load_plain_tokenizer(toy_config(toy_folder)).save_pretrained(start)
    make_model(len(load_plain_tokenizer(toy_config(toy_folder))), layers=3).save_pretrained(start)
    settings = {"trained_layers": "upper:2", "learning_rate": 1e-2, "steps": 2, "share_prefixes": True, **GRADED}
    result = run(toy_config(toy_folder, model=str(start), run=str(tmp_path / "run"), **settings))
    before, after = (load_file(folder / "model.safetensors") for folder in (start, result.policy))
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert {".".join(name.split(".")[:3]) for name in moved} == {
        "model.layers.1",
        "model.layers.2",
        "model.norm.weight",
    }
    assert all(value.dtype == torch.float32 for value in after.values())
    with pytest.raises(ConfigError, match="the model has"):
        made(toy_folder, tmp_path / "more", trained_layers="upper:99")
    for wrong in ({"trained_layers": "lower:1"}, {"trained_layers": "upper:1", "lora_rank": 2}):
        with pytest.raises(ConfigError, match="all, or upper:N"):
            toy_config(toy_folder, **wrong)


@pytest.mark.parametrize("changes", [{}, {"lora_rank": 2}, {"share_prefixes": True, "engine": "choosing"}])
def test_copies_in_bfloat16_compute_and_float32_weights_learn(
    toy_folder: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    settings = {**GRADED, "learning_rate": 1e-2, "kl_coef": 0.05, "max_reply_tokens": 8, **changes}
    learner = started(toy_folder, tmp_path, precision="bfloat16_copy", **settings)
    backend = backend_of(learner)
    engine: Any = learner.setup.rollouts.policy.engine
    copied = getattr(engine, "_engine", engine).model
    for update in (1, 2):
        batches = next_batches(learner)
        for batch in batches:
            figures = backend.score(batch.tokens, {"logprobs"})
            assert torch.allclose(figures["logprobs"], batch.figures["sampling_logprobs"], atol=0.1)
            backend.backward(learner.loss(batch, update))
        trained = [p for p in backend.trainer.model.parameters() if p.requires_grad]
        assert all(p.dtype == torch.float32 and p.grad is not None and p.grad.dtype == torch.float32 for p in trained)
        backend.step()
        engine.reset()
        policy = backend.trainer.accelerator.unwrap_model(backend.trainer.model)
        mine = policy.state_dict()
        assert all(torch.equal(value, mine[name].bfloat16()) for name, value in copied.state_dict().items())
        assert all(map(torch.equal, copied.buffers(), policy.buffers()))
    with pytest.raises(ConfigError, match="exclude each other"):
        toy_config(toy_folder, precision="bfloat16_copy", gradient_checkpointing=True)


def test_gradients_with_copies_are_near_those_without(toy_folder: Path, tmp_path: Path) -> None:
    found = []
    for precision in ("float32", "bfloat16_copy"):
        learner = started(toy_folder, tmp_path / precision, precision=precision, **GRADED)
        backend = backend_of(learner)
        if not found:
            batches = next_batches(learner)
        for batch in batches:
            backend.backward(learner.loss(batch, 1))
        found.append(torch.cat([p.grad.flatten() for p in backend.trainer.model.parameters() if p.grad is not None]))
    assert torch.nn.functional.cosine_similarity(*found, dim=0) > 0.99


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> dict[str, torch.Tensor]:
    """What TRL loads into the vLLM that it owns, which is none."""
    weights: dict[str, torch.Tensor] = {}
    made: dict[str, Any] = {"llm": MagicMock(), "_llm_weights_sleeping": False}
    driver = made["llm"].llm_engine.model_executor.driver_worker
    driver.model_runner.model.load_weights = lambda pairs: weights.update((name, w.clone()) for name, w in pairs)
    monkeypatch.setattr("trainers.backends.trl.arguments.is_vllm_available", lambda: True)
    monkeypatch.setattr(vllm_generation.VLLMGeneration, "_init_vllm", lambda self: vars(self).update(made))
    return weights


def test_adapters_are_sent_and_saved_merged_and_the_frozen_weights_stay(
    toy_folder: Path, tmp_path: Path, loaded: dict[str, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = started(toy_folder, tmp_path, engine="vllm", lora_rank=2, precision="pure_bfloat16")
    trainer = backend_of(learner).trainer
    own = dict(trainer.model.named_parameters())
    frozen = {name: value.clone() for name, value in own.items() if "lora_" not in name}
    with torch.no_grad():
        for name in own.keys() - frozen.keys():
            own[name].normal_(0, 0.01)
    wake_up(trainer.vllm_generation)
    assert all(torch.equal(own[name], value) for name, value in frozen.items())
    # No second model is loaded: under ZeRO-3 that waits for the processes that do not write.
    monkeypatch.delattr("transformers.AutoModelForCausalLM.from_pretrained")
    trainer.model.get_base_model().register_buffer("bias", torch.ones(2))
    learner.backend.save_policy(tmp_path / "policy")
    saved = load_file(tmp_path / "policy" / "model.safetensors")
    assert saved.pop("bias").tolist() == [1, 1], "buffers of a checkpoint are a part of the policy"
    assert loaded.keys() == saved.keys()
    assert all(torch.equal(loaded[name], value) for name, value in saved.items())


def test_vllm_takes_as_many_sequences_as_episodes_are_played(monkeypatch: pytest.MonkeyPatch) -> None:
    config = TrainConfig(model="m", engine="vllm", max_parallel=64, vllm_dtype="bfloat16", vllm_prefix_caching=False)
    monkeypatch.setattr(vllm_generation, "LLM", lambda **given: given, raising=False)
    plain = vllm_generation.LLM
    with started_with(engine_spec("vllm").llm_options(config)) as effective:
        made: Any = vllm_generation.LLM(model="m", max_num_seqs=8)
    assert made == {"model": "m", "max_num_seqs": 64, "dtype": "bfloat16", "enable_prefix_caching": False}
    assert effective == made
    assert vllm_generation.LLM is plain


def test_what_vllm_is_started_with_follows_from_the_settings() -> None:
    config, spec = TrainConfig(model="some/model", engine="vllm", max_parallel=64), engine_spec("vllm")
    options = spec.llm_options(config.with_(engine_options={"max_num_seqs": 7, "seed": 1}))
    assert (options["max_num_seqs"], options["seed"]) == (7, 1), "an engine's own options have the last word"
    assert engine_spec("transformers").llm_options(config) == {}
    revised = spec.llm_options(config.with_(revision="v1"))
    assert (revised["revision"], revised["tokenizer_revision"]) == ("v1", "v1")
    shared = config.with_(vllm_tensor_parallel=2, vllm_sleep=True)
    assert spec.llm_options(shared)["max_num_seqs"] == 128, "processes that share one bring as many episodes each"
    asked = spec.backend_arguments(shared)
    assert (asked["vllm_tensor_parallel_size"], asked["vllm_enable_sleep_mode"]) == (2, True)


class FakeGeneration:
    """TRL's ``VLLMGeneration`` as far as it wakes and sleeps."""

    def __init__(self, mode: str, *, sleeps: bool) -> None:
        self.mode, self.enable_sleep_mode, self._llm_weights_sleeping = mode, sleeps, sleeps
        self.calls: list[Any] = []
        self.llm = self

    def wake_up(self, tags: list[str]) -> None:
        self.calls.append(tags)

    def sleep(self, level: int) -> None:
        self.calls.append(level)

    def sync_weights(self) -> None:
        self.calls.append("weights sent")
        self._llm_weights_sleeping = False


@pytest.mark.parametrize(
    ("mode", "may", "calls"),
    [
        ("colocate", True, ["weights sent", ["kv_cache"], 2]),
        ("colocate", False, ["weights sent"]),
        ("server", True, ["weights sent"]),
    ],
)
def test_a_vllm_that_may_sleeps_during_updates_and_wakes_with_the_new_weights(mode: str, may: bool, calls: Any) -> None:
    generation = FakeGeneration(mode, sleeps=may)
    assert not sleep(generation)
    wake_up(generation)
    assert sleep(generation) == (may and mode == "colocate")
    assert not sleep(generation)
    assert generation.calls == calls


@pytest.mark.parametrize(
    ("settings", "processes", "says"),
    [
        ({"vllm_mode": "server", "vllm_sleep": True}, 1, "within the training processes"),
        ({"vllm_mode": "server", "vllm_tensor_parallel": 2}, 2, "--tensor_parallel_size"),
        ({"vllm_tensor_parallel": 2}, 3, "take a divisor"),
    ],
)
def test_what_vllm_cannot_do_is_refused(settings: Any, processes: int, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        check_vllm(TrainConfig(model="m", engine="vllm", **settings), processes)


def test_without_vllm_nothing_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(vllm_generation, "LLM", raising=False)
    with started_with({"max_num_seqs": 3}) as effective:
        assert not hasattr(vllm_generation, "LLM")
    assert effective == {}


def test_the_mismatch_is_the_mean_log_ratio_and_the_share_that_is_capped() -> None:
    logprobs = torch.tensor([[-1.0, -0.2, -2.0]])
    sampled = torch.tensor([[-1.1, -0.2 - float(np.log(SAMPLING_RATIO_CAP)) - 0.1, -9.0]])
    tokens = Tokens(torch.ones(1, 4, dtype=torch.int64), torch.ones(1, 3))
    batch = MicroBatch(tokens, torch.ones(1, 3), {}, {"sampling_logprobs": sampled})
    found = engine_mismatch(batch, logprobs, torch.tensor([[1.0, 1.0, 0.0]]))
    assert float(found["engine.tokens"]) == 2
    assert float(found["engine.engine_capped"]) == 1
    assert float(found["engine.engine_kl"]) == pytest.approx(-(0.1 + float(np.log(SAMPLING_RATIO_CAP)) + 0.1), abs=1e-5)

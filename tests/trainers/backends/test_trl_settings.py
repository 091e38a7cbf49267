"""Settings that TRL, transformers, PEFT and vLLM carry out: each is seen to act on what they made; sharded weights."""

import re
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, call

import numpy as np
import pytest
import torch

pytest.importorskip("trl", reason="needs the extra 'train'")

import transformers
from safetensors.torch import load_file
from trl.generation import vllm_generation
from trl.trainer import grpo_trainer

from skillc_gym.errors import ConfigError, MissingDataError
from tests.trainers.conftest import make_model
from tests.trainers.toys import GRADED, next_batches, start_learner, toy_config
from trainers.backends.trl.arguments import (
    check_sharding,
    check_vllm,
    lora_config,
    sharded_by_layers,
    sleep,
    started_with,
    wake_up,
)
from trainers.backends.trl.backend import TrlBackend
from trainers.backends.trl.weights import WholeCopy
from trainers.config import TrainConfig
from trainers.engines.registry import TrainerModel, engine_spec
from trainers.learner.objective import SAMPLING_RATIO_CAP, engine_mismatch
from trainers.models import load_model, load_plain_tokenizer, train_upper
from trainers.rollout.batches import MicroBatch, Tokens
from trainers.training import run

Make = Callable[..., Any]


@pytest.fixture
def started(toy: Make) -> Make:
    """Makes a learner, ready for its first update."""
    return lambda **changes: start_learner(toy(**changes))


@pytest.fixture
def made(toy: Make) -> Make:
    """Makes a trainer without an optimiser."""
    return lambda **changes: start_learner(toy(**changes), trains=False).backend.trainer


def test_numbers_optimiser_and_patience_reach_the_trainer(made: Make) -> None:
    changes = {"adam_beta1": 0.7, "adam_beta2": 0.8, "adam_epsilon": 1e-5, "weight_decay": 0.3}
    optimiser = made(**changes).create_optimizer()
    assert isinstance(optimiser, torch.optim.AdamW)
    group = optimiser.param_groups[0]
    assert (group["betas"], group["eps"], group["weight_decay"]) == ((0.7, 0.8), 1e-5, 0.3)
    trainer = made(optimiser="sgd", ddp_timeout=77)
    assert isinstance(trainer.create_optimizer(), torch.optim.SGD)
    assert (trainer.args.ddp_timeout, trainer.args.ddp_find_unused_parameters) == (77, False)
    assert trainer.args.bf16 is torch.cuda.is_available()


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"attention": "flash_attention_2"}, "attention=sdpa"),
        ({"liger": True}, "pip install liger-kernel"),
        ({"trained_layers": "upper:99"}, "the model has"),
    ],
)
def test_what_is_not_there_is_named(made: Make, monkeypatch: Any, settings: dict[str, Any], remedy: str) -> None:
    for room in ("models.loading", "backends.trl.arguments"):
        monkeypatch.setattr(f"trainers.{room}.find_spec", lambda name: None)
    with pytest.raises((ConfigError, MissingDataError), match=remedy):
        made(**settings)


def test_kernels_reach_model_and_trainer(made: Make, toy_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}
    with monkeypatch.context() as patch:
        patch.setattr("trainers.models.loading.find_spec", lambda name: name)
        patch.setattr("transformers.AutoModelForCausalLM.from_pretrained", lambda _, **given: asked.update(given))
        load_model(toy_config(toy_folder, attention="flash_attention_3"))
    assert asked["attn_implementation"] == "flash_attention_3"
    monkeypatch.setattr("trainers.backends.trl.arguments.find_spec", lambda name: name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        args = made(liger=True).args
    assert args.use_liger_kernel
    assert args.liger_kernel_config == {"fused_linear_cross_entropy": False}
    assert not made().args.use_liger_kernel


def test_adapters_go_where_they_are_told(made: Make, toy_folder: Path) -> None:
    model = made(lora_rank=2, lora_targets=("q_proj", "v_proj"), lora_dropout=0.25).model
    trained = {name.split(".lora_")[0].rsplit(".", 1)[1] for name, p in model.named_parameters() if p.requires_grad}
    assert trained == {"q_proj", "v_proj"}
    assert {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)} >= {0.25}
    with pytest.raises(ConfigError, match=r"lora_targets=nothere names no module.*q_proj"):
        made(lora_rank=2, lora_targets=("q_proj", "nothere"))
    for end in ("embed_tokens", "lm_head"):
        tied = toy_config(toy_folder, lora_rank=2, lora_targets=(end, "q_proj"))
        with pytest.raises(ConfigError, match="leave the embeddings and the output layer out"):
            lora_config(tied, make_model(40, tie_word_embeddings=True))
        assert lora_config(tied, make_model(40, tie_word_embeddings=False)).target_modules


@pytest.mark.parametrize(("weights", "rank"), [("policy", 0), ("reference", 0), ("reference", 2)])
def test_dropout_acts_in_the_pass_that_learns_alone(weights: Any, rank: int, started: Make) -> None:
    learner = started(lora_rank=rank, kl_coef=0.1)
    backend, (batch, *_) = learner.backend, next_batches(learner)
    backend.trainer.model_wrapped.train()
    for module in backend.trainer.model.modules():
        if hasattr(module, "attention_dropout"):
            module.attention_dropout = 0.5
    with torch.no_grad():
        first, second = (backend.score(batch.tokens, {"logprobs"}, weights)["logprobs"] for _ in range(2))
    assert torch.equal(first, second)
    learning, again = (backend.forward(batch.tokens, {"logprobs"})["logprobs"] for _ in range(2))
    assert not torch.equal(learning, again)


def test_the_critics_head_is_clipped_with_the_policy(started: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = started(method="ppo", method_options={"value.coefficient": 20.0}, max_grad_norm=0.01, **GRADED)
    trainer = learner.backend.trainer
    for batch in next_batches(learner):
        learner.backend.backward(learner.loss(batch, 1))
    heads = [p for head in trainer.extras.heads.values() for p in head.parameters()]
    policy = list(trainer.model.parameters())
    before, seen = norm([*policy, *heads]), []
    assert before > 1.1 * norm(policy)
    monkeypatch.setattr(trainer.optimizer, "step", lambda: seen.append(norm([*policy, *heads])))
    assert learner.backend.step()["grad_norm"] == pytest.approx(before, rel=1e-4)
    assert seen == pytest.approx([0.01], rel=1e-3)


def norm(parameters: list[torch.nn.Parameter]) -> float:
    return float(torch.stack([p.grad.norm() for p in parameters if p.grad is not None]).norm())


def test_a_separate_teacher(toy: Make, made: Make, started: Make, tmp_path: Path) -> None:
    taught = load_model(toy())
    with torch.no_grad():
        taught.get_output_embeddings().weight.mul_(3)
    taught.save_pretrained(tmp_path)
    teacher, expected = {"reference_model": str(tmp_path), "kl_coef": 0.0}, taught.get_output_embeddings().weight
    trainer = started(method="grpo_opsd", method_options={"teacher_weights": "reference"}, **teacher).backend.trainer
    assert torch.equal(trainer.ref_model.get_output_embeddings().weight, expected)
    assert not torch.equal(trainer.model.get_output_embeddings().weight, expected)
    assert trainer.model.config._name_or_path == toy().model_path
    with pytest.raises(ConfigError, match="leave reference_model out"):
        made(**teacher)
    bigger = load_model(toy()).config
    bigger.intermediate_size *= 2
    type(taught)(bigger).save_pretrained(tmp_path / "bigger")
    teacher = {"reference_model": str(tmp_path / "bigger"), "kl_coef": 0.1}
    made(**teacher)
    with pytest.raises(ConfigError, match="reference_sync_every mixes"):
        made(**teacher, reference_sync_every=1)
    shorter = load_model(toy()).config
    shorter.max_position_embeddings = 12
    type(taught)(shorter).save_pretrained(tmp_path / "shorter")
    with pytest.raises(ConfigError, match=r"for rows of 12 tokens, .* give max_context=12"):
        made(reference_model=str(tmp_path / "shorter"), kl_coef=0.1)


def test_the_reference_is_never_spread_over_devices(made: Make, monkeypatch: Any, caplog: Any) -> None:
    asked: list[dict[str, Any]] = []
    make = grpo_trainer.create_model_from_path
    monkeypatch.setattr(
        grpo_trainer, "create_model_from_path", lambda path, **given: [asked.append(given), make(path, **given)][1]
    )
    made(kl_coef=0.1)
    assert [given.get("device_map", "TRL's choice") for given in asked] == [None]
    assert "model_init_kwargs" not in caplog.text


def test_bfloat16_is_what_a_processor_computes_in_too(started: Make) -> None:
    learner = started(precision="bfloat16")
    model, seen = learner.backend.trainer.model, []
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    model.model.layers[0].mlp.register_forward_hook(lambda module, args, output: seen.append(output.dtype))
    next_batches(learner)
    assert set(seen) == {torch.bfloat16}


def test_an_average_of_weights_in_bfloat16_moves_by_small_steps(started: Make) -> None:
    settings = {"method": "opsd_jsd", "method_options": {"teacher_weights": "average"}, "precision": "pure_bfloat16"}
    backend = started(**settings).backend
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
    asked: dict[str, Any] = {}
    own = load_plain_tokenizer(TrainConfig(model=str(toy_folder / "model")))
    load = "transformers.AutoTokenizer.from_pretrained"
    monkeypatch.setattr(load, lambda model, **options: asked.update(options, model=model) or own)
    load_plain_tokenizer(TrainConfig(model="some/model", revision="v1"))
    assert (asked["model"], asked["revision"]) == ("some/model", "v1")
    with pytest.raises(ConfigError, match=r"revision='v1'.*is a folder"):
        load_plain_tokenizer(TrainConfig(model=str(toy_folder / "model"), revision="v1"))


def test_the_launchers_precision_gives_way(made: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")
    assert made(precision="float32").accelerator.mixed_precision == "no"


def test_a_reference_that_is_wrapped_is_looked_into(made: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    # As DeepSpeed's engine, this has a model's configuration in its module alone.
    monkeypatch.setattr("accelerate.Accelerator.prepare_model", lambda self, model, **_: torch.nn.DataParallel(model))
    assert isinstance(made(kl_coef=0.1).ref_model, torch.nn.DataParallel)


def test_what_is_sharded_is_summed_up_after_every_pass(started: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = started().backend
    monkeypatch.setattr(backend.trainer, "is_fsdp_enabled", True)
    monkeypatch.delattr("accelerate.Accelerator.no_sync")
    with backend.accumulate(last=False):
        assert not backend.trainer.accelerator.gradient_state.sync_gradients


def test_weights_that_deepspeed_keeps(made: Make, started: Make, tmp_path: Path, monkeypatch: Any) -> None:
    backend, prepared = started().backend, list[Path]()
    monkeypatch.setattr(TrlBackend, "_deepspeed", True)
    monkeypatch.setattr(backend.trainer, "prepare", prepared.append)
    backend.restore(tmp_path)
    assert prepared == [tmp_path]
    with pytest.raises(ConfigError, match="take precision=bfloat16"):
        made(precision="pure_bfloat16")


def test_only_the_upper_layers_are_trained(toy: Make, tmp_path: Path) -> None:
    tokenizer = load_plain_tokenizer(toy())
    tokenizer.save_pretrained(tmp_path)
    make_model(len(tokenizer), layers=3).save_pretrained(tmp_path)
    settings = {"trained_layers": "upper:2", "learning_rate": 1e-2, "steps": 2, "share_prefixes": True, **GRADED}
    result = run(toy(model=str(tmp_path), **settings))
    before, after = (load_file(folder / "model.safetensors") for folder in (tmp_path, result.policy))
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    layers = {re.match(r"model\.(layers\.\d|norm)", name)[1] for name in moved}
    assert layers == {"layers.1", "layers.2", "norm"}
    assert all(value.dtype == torch.float32 for value in after.values())


@pytest.mark.parametrize("family", ["Phi", "GPTNeoX", "Qwen2"])
def test_the_last_norm_of_each_family_is_trained_with_its_layers(family: str) -> None:
    sizes = {"vocab_size": 9, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 2}
    config = getattr(transformers, f"{family}Config")(**sizes, num_attention_heads=2, num_key_value_heads=2)
    model = getattr(transformers, f"{family}ForCausalLM")(config)
    train_upper(model, 1)
    trained = {name for name, weights in model.named_parameters() if weights.requires_grad}
    assert any("norm" in name for name in trained if "layers" not in name)
    assert not any("layers.0" in name or "embed" in name for name in trained)


@pytest.mark.parametrize("changes", [{}, {"lora_rank": 2}, {"share_prefixes": True, "engine": "choosing"}])
def test_copies_in_bfloat16_compute_and_float32_weights_learn(started: Make, changes: dict[str, Any]) -> None:
    settings = {**GRADED, "learning_rate": 1e-2, "kl_coef": 0.05, "max_reply_tokens": 8, **changes}
    learner = started(precision="bfloat16_copy", **settings)
    backend, engine = learner.backend, learner.setup.rollouts.policy.engine
    copied = getattr(engine, "_engine", engine).model
    for update in (1, 2):
        for batch in next_batches(learner):
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


def test_gradients_with_copies_are_near_those_without(started: Make) -> None:
    plain, copies = (started(precision=precision, **GRADED) for precision in ("float32", "bfloat16_copy"))
    batches, found = next_batches(plain), []
    for learner in (plain, copies):
        for batch in batches:
            learner.backend.backward(learner.loss(batch, 1))
        gradients = [p.grad for p in learner.backend.trainer.model.parameters() if p.grad is not None]
        found.append(torch.cat([gradient.flatten() for gradient in gradients]))
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


def test_adapters_are_sent_and_saved_merged_and_the_frozen_weights_stay(started, tmp_path, loaded, monkeypatch) -> None:
    backend = started(engine="vllm", lora_rank=2, precision="pure_bfloat16").backend
    own = dict(backend.trainer.model.named_parameters())
    frozen = {name: value.clone() for name, value in own.items() if "lora_" not in name}
    with torch.no_grad():
        for name in own.keys() - frozen.keys():
            own[name].normal_(0, 0.01)
    wake_up(backend.trainer.vllm_generation)
    assert all(torch.equal(own[name], value) for name, value in frozen.items())
    # No second model is loaded: under ZeRO-3 that waits for the processes that do not write.
    monkeypatch.delattr("transformers.AutoModelForCausalLM.from_pretrained")
    backend.trainer.model.get_base_model().register_buffer("bias", torch.ones(2))
    backend.save_policy(tmp_path)
    saved = load_file(tmp_path / "model.safetensors")
    assert saved.pop("bias").tolist() == [1, 1], "buffers of a checkpoint are a part of the policy"
    assert loaded.keys() == saved.keys()
    assert all(torch.equal(loaded[name], value) for name, value in saved.items())


def test_vllm_is_started_with_the_runs_options_and_nothing_is_touched_without_it(monkeypatch: Any) -> None:
    config = TrainConfig(model="m", engine="vllm", max_parallel=64, vllm_dtype="bfloat16", vllm_prefix_caching=False)
    monkeypatch.setattr(vllm_generation, "LLM", lambda **given: given, raising=False)
    plain = vllm_generation.LLM
    with started_with(engine_spec("vllm").llm_options(config)) as effective:
        made: Any = vllm_generation.LLM(model="m", max_num_seqs=8)
    assert effective == made == {"model": "m", "max_num_seqs": 64, "dtype": "bfloat16", "enable_prefix_caching": False}
    assert vllm_generation.LLM is plain
    monkeypatch.delattr(vllm_generation, "LLM")
    with started_with({"max_num_seqs": 3}) as effective:
        assert not hasattr(vllm_generation, "LLM")
    assert effective == {}


def test_what_vllm_is_started_with_follows_from_the_settings() -> None:
    config, spec = TrainConfig(model="some/model", engine="vllm", max_parallel=64), engine_spec("vllm")
    options = spec.llm_options(config.with_(engine_options={"max_num_seqs": 7, "seed": 1}, revision="v1"))
    assert (options["max_num_seqs"], options["seed"]) == (7, 1), "an engine's own options have the last word"
    assert (options["revision"], options["tokenizer_revision"]) == ("v1", "v1")
    assert engine_spec("transformers").llm_options(config) == {}
    shared = config.with_(vllm_tensor_parallel=2, vllm_sleep=True)
    assert spec.llm_options(shared)["max_num_seqs"] == 128, "processes that share one bring as many episodes each"
    asked = spec.backend_arguments(shared)
    assert (asked["vllm_tensor_parallel_size"], asked["vllm_enable_sleep_mode"]) == (2, True)


@pytest.mark.parametrize(
    ("mode", "may", "calls"),
    [
        ("colocate", True, [call.sync_weights(), call.llm.wake_up(tags=["kv_cache"]), call.llm.sleep(level=2)]),
        ("colocate", False, [call.sync_weights()]),
        ("server", True, [call.sync_weights()]),
    ],
)
def test_a_vllm_that_may_sleeps_during_updates_and_wakes_with_the_new_weights(mode: str, may: bool, calls: Any) -> None:
    generation = MagicMock(mode=mode, enable_sleep_mode=may, _llm_weights_sleeping=may)
    generation.sync_weights.side_effect = lambda: setattr(generation, "_llm_weights_sleeping", False)
    assert not sleep(generation)
    wake_up(generation)
    assert sleep(generation) == (may and mode == "colocate")
    assert not sleep(generation)
    assert generation.mock_calls == calls


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


def test_the_mismatch_is_the_mean_log_ratio_and_the_share_that_is_capped() -> None:
    above = float(np.log(SAMPLING_RATIO_CAP)) + 0.1
    logprobs, sampled = torch.tensor([[-1.0, -0.2, -2.0]]), torch.tensor([[-1.1, -0.2 - above, -9.0]])
    tokens = Tokens(torch.ones(1, 4, dtype=torch.int64), torch.ones(1, 3))
    batch = MicroBatch(tokens, torch.ones(1, 3), {}, {"sampling_logprobs": sampled})
    found = engine_mismatch(batch, logprobs, torch.tensor([[1.0, 1.0, 0.0]]))
    assert (float(found["engine.tokens"]), float(found["engine.engine_capped"])) == (2, 1)
    assert float(found["engine.engine_kl"]) == pytest.approx(-(0.1 + above), abs=1e-5)


# Sharding: what a launcher must not be asked for, and whole copies that generate.


def accelerator(**changes: Any) -> Any:
    asked = {"fsdp_version": 2, "state_dict_type": "StateDictType.FULL_STATE_DICT", "cpu_ram_efficient_loading": False}
    return SimpleNamespace(state=SimpleNamespace(fsdp_plugin=SimpleNamespace(**{**asked, **changes})))


ZERO3 = SimpleNamespace(state=SimpleNamespace(deepspeed_plugin=SimpleNamespace(zero_stage=3)))
ALONE = SimpleNamespace(state=SimpleNamespace())


@pytest.mark.parametrize(
    ("asked", "given", "moves", "says"),
    [
        (accelerator(fsdp_version=1), {}, False, "--fsdp_version 2"),
        (accelerator(state_dict_type="SHARDED_STATE_DICT"), {}, False, "--fsdp_state_dict_type FULL_STATE_DICT"),
        (accelerator(cpu_ram_efficient_loading=True), {}, False, "--fsdp_cpu_ram_efficient_loading false"),
        (ZERO3, {"heads": ["values"]}, False, "heads of its own"),
        (ZERO3, {}, True, "reference_sync_every"),
        # A teacher that averages needs whole weights.
        (ZERO3, {"average_decay": 0.99}, False, "shard with FSDP2"),
        (accelerator(), {"average_decay": 0.99}, False, ""),
        (ALONE, {"heads": ["values"], "average_decay": 0.99}, True, ""),
    ],
)
def test_what_would_fail_later_is_refused_at_once(asked: Any, given: dict[str, Any], moves: bool, says: str) -> None:
    objective: Any = SimpleNamespace(**{"heads": (), "average_decay": None, **given})
    with pytest.raises(ConfigError, match=says) if says else nullcontext():
        check_sharding(asked, objective, moving_reference=moves)


def test_a_reference_is_sharded_layer_by_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[Any] = []
    monkeypatch.setattr(grpo_trainer, "prepare_fsdp", lambda part, accelerator: (parts.append(part), part)[1])
    reference = make_model(40)
    with sharded_by_layers():
        assert grpo_trainer.prepare_fsdp(reference, None) is reference
    assert parts == [*reference.model.layers, reference]


def test_a_copy_follows_the_trained_weights_alone() -> None:
    policy = make_model(40)
    copy = WholeCopy(policy, torch.device("cpu"))
    policy.lm_head.requires_grad_(False)
    for differing in ([], ["lm_head.weight"]):
        with torch.no_grad():
            for parameter in policy.parameters():
                parameter.add_(1.0)
        copy.refresh()
        mine = dict(copy.model.named_parameters())
        assert [name for name, p in policy.named_parameters() if not torch.equal(mine[name], p)] == differing


def test_an_engine_over_sharded_weights_generates_from_the_copy() -> None:
    policy, other, refreshed = make_model(40), make_model(40, seed=1), []
    config, spec = toy_config(Path("x")), engine_spec("transformers")
    sharded = TrainerModel(policy, [1], config, sharded=True, whole=lambda: (other, lambda: refreshed.append(1)))
    engine: Any = spec.for_trainer(sharded)
    assert engine.model is other
    engine.reset()
    assert refreshed == [1]
    with pytest.raises(ConfigError, match="DeepSpeed"):
        spec.for_trainer(TrainerModel(policy, [1], config, sharded=True))

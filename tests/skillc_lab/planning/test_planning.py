"""The planner against what small models really take, and what it says of large ones."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

pytest.importorskip("trl", reason="needs the extra 'train'")

from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config

from skillc_gym.errors import ConfigError, MissingDataError, UnknownNameError
from skillc_lab.cli.main import main as skillc
from skillc_lab.cli.options import parse
from skillc_lab.commands.train import TrainOptions
from skillc_lab.planning import Machine, Plan, load_setup, make_plan, setup_names
from skillc_lab.planning.memory import Workload, update_operations
from skillc_lab.planning.setups import LAUNCHERS, launch_command
from skillc_lab.planning.shapes import KNOWN, Arithmetic, ModelShape, config_of, layer_bytes, shape_of
from tests.trainers.toys import next_batches, toy_config
from trainers.backends.trl.backend import TrlBackend
from trainers.config import TrainConfig
from trainers.tracking import SilentProgress
from trainers.training import prepare, run

ROWS, LENGTH = 2, 96
SEVEN = TrainConfig(
    model="Qwen/Qwen2.5-7B-Instruct",
    method="skillc",
    engine="vllm",
    vllm_memory=0.35,
    micro_batches=16,
    gradient_checkpointing=True,
)


def saved_bytes(model: Any, passed: Any) -> int:
    """Bytes that autograd keeps in a forward pass, the model's own weights apart."""
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept: dict[int, torch.Tensor] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        place = tensor.untyped_storage().data_ptr()
        if place not in own:
            kept.setdefault(place, tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        kept_alive = passed()
    size = sum(tensor.untyped_storage().nbytes() for tensor in kept.values())
    del kept_alive
    return size


def small(kind: type[Any], layers: int, dtype: torch.dtype, rank: int, checkpointing: bool) -> Any:
    heads = {"head_dim": 24} if kind is Qwen3Config else {}
    config = kind(
        vocab_size=200, hidden_size=96, intermediate_size=256, num_hidden_layers=layers, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, tie_word_embeddings=False, **heads,
    )  # fmt: skip
    model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa", dtype=dtype)
    if rank:
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(model, LoraConfig(r=rank, target_modules="all-linear", task_type="CAUSAL_LM"))
    if checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model.train()


def measured_layer(kind: type[Any], arithmetic: Arithmetic, rank: int, checkpointing: bool) -> float:
    """Bytes per token of one more layer, autocast's copies of its weights apart."""
    dtype = torch.bfloat16 if arithmetic == "bfloat16" else torch.float32
    ids = torch.zeros(ROWS, LENGTH, dtype=torch.long)
    sizes = []
    for layers in (1, 2):
        model = small(kind, layers, dtype, rank, checkpointing)
        with torch.autocast("cpu", torch.bfloat16, enabled=arithmetic == "autocast"):
            sizes.append(saved_bytes(model, lambda m=model: m(input_ids=ids, use_cache=False)))
    copies = 0
    if arithmetic == "autocast" and not checkpointing:
        copies = (
            2 * sum(p.numel() for p in model.base_model.parameters() if p.ndim == 2 and p.shape[0] != 200) // layers
        )
    return (sizes[1] - sizes[0] - copies) / (ROWS * LENGTH)


@pytest.mark.parametrize(
    ("kind", "arithmetic", "rank"),
    [
        *((Qwen2Config, arithmetic, 0) for arithmetic in get_args(Arithmetic)),
        *((Qwen2Config, arithmetic, 4) for arithmetic in ("autocast", "bfloat16")),
        *((LlamaConfig, "autocast", 0), (Qwen3Config, "float32", 4), (Qwen3Config, "bfloat16", 0)),
    ],
)
def test_a_layer_keeps_what_the_planner_says(kind: type[Any], arithmetic: Any, rank: int) -> None:
    shape = shape_of(small(kind, 1, torch.float32, 0, checkpointing=False).config)
    said = layer_bytes(shape, arithmetic, rank)
    assert measured_layer(kind, arithmetic, rank, checkpointing=False) == pytest.approx(said, rel=0.1)


@pytest.mark.parametrize("arithmetic", get_args(Arithmetic))
def test_a_checkpointed_layer_keeps_its_input(arithmetic: Any) -> None:
    shape = shape_of(small(Qwen2Config, 1, torch.float32, 0, checkpointing=False).config)
    said = shape.width * (2 if arithmetic == "bfloat16" else 4)
    assert measured_layer(Qwen2Config, arithmetic, 0, checkpointing=True) == pytest.approx(said, rel=0.1)


@pytest.mark.parametrize(
    "changes",
    [{}, {"lora_rank": 4}, {"kl_coef": 0.0, "method": "grpo"}, {"trained_layers": "upper:1"}],
    ids=["all", "lora", "alone", "upper"],
)
def test_the_state_of_a_run_is_what_the_planner_says(toy_folder: Path, tmp_path: Path, changes: dict[str, Any]) -> None:
    config = toy_config(toy_folder, run=str(tmp_path), **changes)
    with ExitStack() as stack:
        learner, _ = prepare(config, SilentProgress(), stack)
        learner.backend.prepare(None)
        assert isinstance(learner.backend, TrlBackend)
        trainer = learner.backend.trainer
        optimiser = trainer.create_optimizer()
        for batch in next_batches(learner):
            learner.loss(batch, 1).backward()
        gradients = sum(p.grad.nbytes for p in trainer.model.parameters() if p.grad is not None)
        optimiser.step()
    measured = {
        "weights": sum(p.nbytes for p in trainer.model.parameters()),
        "gradients": gradients,
        "optimiser": sum(v.nbytes for found in optimiser.state.values() for v in found.values() if v.ndim),
        "reference": sum(p.nbytes for p in trainer.ref_model.parameters()) if trainer.ref_model else 0,
    }
    parts = {part.name: part.size for part in make_plan(config, Machine()).parts}
    assert {name: parts.get(name, 0) for name in measured} == pytest.approx(measured, rel=0.1)
    (tmp_path / "saved").mkdir()
    trainer.save(tmp_path / "saved")
    kept = [path for path in (tmp_path / "saved").iterdir() if path.suffix in (".safetensors", ".pt")]
    saved = sum(path.stat().st_size for path in kept if not path.name.startswith("scheduler"))
    assert make_plan(config, Machine()).checkpoint == pytest.approx(saved, rel=0.1, abs=16_000)  # names and pickles


@pytest.mark.parametrize("changes", [{}, {"lora_rank": 4}, {"gradient_checkpointing": True}], ids=str)
def test_an_update_computes_what_the_planner_says(changes: dict[str, Any]) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    model = small(Qwen2Config, 2, torch.float32, changes.get("lora_rank", 0), "gradient_checkpointing" in changes)
    ids = torch.zeros(ROWS, 32, dtype=torch.long)
    with FlopCounterMode(display=False) as counted:
        model(input_ids=ids, use_cache=False).logits.sum().backward()
    config = TrainConfig(model="m", micro_batches=1, **changes)
    work = Workload("float32", rows=1, update_rows=ROWS, row_tokens=32, own_tokens=32, playing=ROWS)
    said = update_operations(
        config, shape_of(small(Qwen2Config, 2, torch.float32, 0, checkpointing=False).config), work
    )
    assert said == pytest.approx(counted.get_total_flops(), rel=0.1)


def test_what_is_scored_beside_costs_forward_passes(seven: ModelShape) -> None:
    kept = {"gradient_checkpointing": False, "method": "grpo"}
    plain = planned(seven, kl_coef=0.0, **kept).operations
    assert planned(seven, kl_coef=0.1, **kept).operations == pytest.approx(plain * 4 / 3)
    assert planned(seven, kl_coef=0.1, num_minibatches=2, **kept).operations == pytest.approx(plain * 5 / 3)


def test_published_sizes() -> None:
    sizes = {name.split("-")[1]: shape_of(config_of(TrainConfig(model=name))).parameters for name in KNOWN}
    assert sizes == pytest.approx({"0.5B": 0.494e9, "1.5B": 1.544e9, "7B": 7.616e9}, rel=1e-3)


@pytest.fixture(scope="module")
def seven() -> ModelShape:
    return shape_of(config_of(SEVEN))


EIGHT = Machine(8)


def planned(shape: ModelShape, machine: Machine = EIGHT, row_tokens: int = 8192, **changes: Any) -> Plan:
    return make_plan(SEVEN.with_(**changes), machine, row_tokens=row_tokens, shape=shape)


def test_what_does_not_fit_is_mended_by_what_it_names(seven: ModelShape) -> None:
    assert planned(seven, Machine(8, sharding="fsdp2")).remedies == ()
    plan = planned(seven)
    assert not plan.fits
    assert any(remedy.fits for remedy in plan.remedies)
    for remedy in plan.remedies:
        settings, machine = {}, Machine(8)
        for word in remedy.words.replace("--sharding fsdp2", "").split():
            name, _, value = word.partition("=")
            settings[name] = {"true": True}.get(value, int(value) if value.isdecimal() else value)
        if "--sharding fsdp2" in remedy.words:
            machine = Machine(8, sharding="fsdp2")
        again = planned(seven, machine, **settings)
        assert (again.total, again.fits) == (remedy.total, remedy.fits)
        assert again.total < plan.total


LOWER = {
    **{"gradient_checkpointing": True, "lora_rank": 8, "optimiser": "adamw_8bit", "micro_batches": 64},
    **{"precision": "pure_bfloat16", "vllm_memory": 0.2, "kl_coef": 0.0},
}


@pytest.mark.parametrize("name", LOWER)
def test_each_setting_lowers_the_sum(seven: ModelShape, name: str) -> None:
    base = {"gradient_checkpointing": False, "micro_batches": 4}
    totals = [each.total for each in (planned(seven, **{**base, name: LOWER[name]}), planned(seven, **base))]
    assert totals == sorted({*totals, planned(seven, EIGHT, 16384, **base).total})[:2]


def test_rows_that_a_method_adds_and_teachers_are_planned(seven: ModelShape) -> None:
    plain, more = (planned(seven, method=name, micro_batches=4) for name in ("half_skill_grpo", "skillc+relabelling"))
    assert (plain.work.update_rows, more.work.update_rows) == (8, 12)
    assert (plain.work.rows, more.work.rows) == (2, 3)
    assert more.operations == pytest.approx(1.5 * plain.operations)
    assert more.update > plain.update
    assert "50% more than the rollouts at most" in str(more)
    taught = planned(seven, method="grpo_opsd")
    assert taught.work.scored == plain.work.scored + 1
    assert taught.operations > planned(seven, method="grpo").operations


def test_the_hosts_memory_and_checkpoints_are_planned(seven: ModelShape) -> None:
    sharded = Machine(8, sharding="fsdp2")
    plan = planned(seven, sharded)
    assert plan.host == 8 * 2 * 4 * seven.parameters  # every process loads policy and reference in float32
    assert plan.checkpoint == 16 * seven.parameters  # weights twice, two moments
    assert planned(seven, sharded, kl_coef=0.0).host == plan.host / 2
    assert planned(seven, sharded, lora_rank=8, precision="pure_bfloat16").host == plan.host / 4
    assert planned(seven, replace(sharded, host_memory=512)).fits
    small = planned(seven, replace(sharded, host_memory=400))
    assert not small.fits
    assert any("The host has 400 GiB" in warning for warning in small.warnings)


@pytest.mark.parametrize(
    ("machine", "changes", "says"),
    [
        (Machine(3), {}, "no multiple of 3"),
        (Machine(8, sharding="zero3"), {"engine": "transformers"}, "engine=vllm"),
        (Machine(8, sharding="zero3"), {"precision": "pure_bfloat16"}, "take precision=bfloat16"),
        (
            Machine(8, sharding="zero3"),
            {"method": "skillc+forward_distillation", "method_options": {"teacher_weights": "average"}},
            "shard with fsdp2",
        ),
        (Machine(8, sharding="fsdp2"), {"method": "ppo"}, "heads of its own"),
        (Machine(8, sharding="fsdp2"), {"reference_sync_every": 5}, "reference_sync_every"),
    ],
)
def test_what_training_refuses_does_not_fit(
    seven: ModelShape, machine: Machine, changes: dict[str, Any], says: str
) -> None:
    plan = planned(seven, machine, **changes)
    assert not plan.fits
    assert any(says in refusal for refusal in plan.refusals)
    assert "Training refuses it" in str(plan)
    if machine.sharding == "fsdp2":
        assert all("fsdp2" not in each.words for each in planned(seven, Machine(8), **changes).remedies)


def test_it_warns_of_what_cannot_work(seven: ModelShape) -> None:
    assert any("vllm_memory=0.1" in warning for warning in planned(seven, vllm_memory=0.1).warnings)


@pytest.mark.parametrize("name", setup_names())
def test_every_setup_fits_its_machine_and_its_command_is_understood(name: str) -> None:
    setup = load_setup(name)
    plan = make_plan(setup.config, setup.machine, row_tokens=setup.row_tokens)
    assert plan.fits
    assert plan.warnings == ()
    words = launch_command(setup.settings, setup.machine).partition(" train ")[2].split()
    assert parse(TrainOptions, words, "skillc train").config() == setup.config


@pytest.mark.parametrize("name", setup_names())
def test_every_setup_runs_scaled_down(name: str, toy_folder: Path, tmp_path: Path) -> None:
    """A tiny random model, one update, the engine that is at hand; all else as the file says."""
    toy = toy_config(toy_folder, run=str(tmp_path))
    here = {n: getattr(toy, n) for n in ("model", "env", "library", "run", "chat", "chat_options", "max_reply_tokens")}
    small_run = {"steps": 1, "tasks_per_step": 2, "group_size": 2, "max_context": 64, "panel_per_type": 1}
    config = load_setup(name).config.with_(**here, **small_run, engine="transformers", micro_batches=2)
    assert run(config).finished


@pytest.mark.parametrize("name", LAUNCHERS)
def test_accelerate_reads_the_launchers_files(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    from accelerate.commands.config.config_args import load_config_from_file

    assert skillc(["plan", "--launcher", name]) == 0
    asked = load_config_from_file(capsys.readouterr().out.strip())
    assert asked.num_processes == 8
    if name == "fsdp2":
        assert (asked.fsdp_config["fsdp_version"], asked.fsdp_config["fsdp_cpu_ram_efficient_loading"]) == (2, False)
    else:
        assert asked.deepspeed_config["zero_stage"] == 3
    words = launch_command({}, Machine(4, sharding=name))
    assert f'--config_file "$(skillc plan --launcher {name})" --num_processes 4 ' in words


def test_what_sleeps_or_is_whole_is_planned_so(seven: ModelShape) -> None:
    awake, asleep = (planned(seven, vllm_sleep=sleep) for sleep in (False, True))
    assert asleep.generation == awake.generation
    assert asleep.update < awake.update
    copied = planned(seven, Machine(8, sharding="fsdp2"), engine="transformers")
    assert {part.name: part.size for part in copied.parts}["whole copy"] == 4 * seven.parameters


def test_the_command_says_whether_it_fits_and_how_long_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    small_model = ["plan", "--model", "shipped", "--tflops", "0.5", "--steps", "90"]
    assert skillc([*small_model, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["fits"]
    assert found["command"].startswith("skillc train model=shipped")
    assert found["seconds"] == pytest.approx(found["operations"] / 0.5e12)
    assert skillc([*small_model, "--json", "--gpu-memory", "0.05"]) == 1
    assert json.loads(capsys.readouterr().out)["remedies"]
    assert skillc(small_model) == 0
    assert "h for 90 of them" in capsys.readouterr().out
    assert skillc(small_model[:3]) == 0
    assert "skillc gpu-check measures" in capsys.readouterr().out


def test_a_setup_is_a_start_that_words_change(capsys: pytest.CaptureFixture[str]) -> None:
    assert skillc(["plan", "--setup", "qwen2.5-0.5b-1x80", "--gpu-memory", "32", "--vllm-memory", "0.2"]) == 0
    said = capsys.readouterr().out
    assert all(words in said for words in ("1 x 32 GiB", "It fits.", "vllm_memory=0.2"))
    assert skillc(["plan", "--setup", "qwen2.5-0.5b-1x80", "--json", "--no-gradient-checkpointing"]) == 1
    command = json.loads(capsys.readouterr().out)["command"]
    assert "gradient_checkpointing=false" in command, "a default that is typed counts too"
    assert skillc(["plan", "--setup", "list"]) == 0
    assert all(name in capsys.readouterr().out for name in setup_names()[:1])


def test_what_is_missing_is_said_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert skillc(["plan"]) == 2
    assert "--setup list" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="gpus must be at least 1"):
        Machine(0)
    with pytest.raises(UnknownNameError, match=r"qwen2\.5-7b-8x80"):
        load_setup("qwen2.5-7b")
    with pytest.raises(MissingDataError, match="nowhere"):
        make_plan(TrainConfig(model="nowhere"), Machine())

"""The planner against what small models really take, and what it says of large ones."""

import json
import re
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, get_args

import pytest
import torch
import yaml
from torch.utils.flop_counter import FlopCounterMode

pytest.importorskip("trl", reason="needs the extra 'train'")

from accelerate.commands.config.config_args import load_config_from_file
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config

from skillc_gym.errors import ConfigError, MissingDataError, UnknownNameError
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
MODEL, SAVING = "Qwen/Qwen2.5-7B-Instruct", {"micro_batches": 16, "gradient_checkpointing": True}
SEVEN = TrainConfig(MODEL, method="skillc", engine="vllm", vllm_memory=0.35, **SAVING)
EIGHT, SHARDED = Machine(8), Machine(8, sharding="fsdp2")


@pytest.fixture(scope="module")
def seven() -> ModelShape:
    return shape_of(config_of(SEVEN))


def planned(shape: ModelShape, machine: Machine = EIGHT, row_tokens: int = 8192, **changes: Any) -> Plan:
    return make_plan(SEVEN.with_(**changes), machine, row_tokens=row_tokens, shape=shape)


def saved_bytes(model, passed) -> int:
    """Bytes that autograd keeps in a forward pass, the model's own weights apart."""
    kept: dict[int, torch.Tensor] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        passed()
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    return sum(tensor.untyped_storage().nbytes() for place, tensor in kept.items() if place not in own)


def small(kind, layers: int, dtype=torch.float32, rank: int = 0, checkpointing: bool = False) -> Any:
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


def measured_layer(kind, arithmetic: Arithmetic, rank: int, checkpointing: bool) -> float:
    """Bytes per token of one more layer, autocast's copies of its weights apart."""
    dtype = torch.bfloat16 if arithmetic == "bfloat16" else torch.float32
    ids = torch.zeros(ROWS, LENGTH, dtype=torch.long)
    sizes = []
    for layers in (1, 2):
        model = small(kind, layers, dtype, rank, checkpointing)
        with torch.autocast("cpu", torch.bfloat16, enabled=arithmetic == "autocast"):
            sizes.append(saved_bytes(model, lambda m=model: m(input_ids=ids, use_cache=False)))
    maps = sum(p.numel() for p in model.base_model.parameters() if p.ndim == 2 and p.shape[0] != 200)
    copies = 2 * maps // layers if arithmetic == "autocast" and not checkpointing else 0
    return (sizes[1] - sizes[0] - copies) / (ROWS * LENGTH)


@pytest.mark.parametrize(
    ("kind", "arithmetic", "rank", "checkpointing"),
    [
        *((Qwen2Config, arithmetic, 0, kept) for arithmetic in get_args(Arithmetic) for kept in (False, True)),
        *((Qwen2Config, arithmetic, 4, False) for arithmetic in ("autocast", "bfloat16")),
        *((LlamaConfig, "autocast", 0, False), (Qwen3Config, "float32", 4, False), (Qwen3Config, "bfloat16", 0, False)),
    ],
)
def test_a_layer_keeps_what_the_planner_says_and_a_checkpointed_one_its_input(kind, arithmetic, rank, checkpointing):
    shape = shape_of(small(kind, 1).config)
    said = (
        shape.width * (2 if arithmetic == "bfloat16" else 4) if checkpointing else layer_bytes(shape, arithmetic, rank)
    )
    assert measured_layer(kind, arithmetic, rank, checkpointing) == pytest.approx(said, rel=0.1)


@pytest.mark.parametrize(
    "changes",
    [{}, {"lora_rank": 4}, {"kl_coef": 0.0, "method": "grpo"}, {"trained_layers": "upper:1"}],
    ids=["all", "lora", "alone", "upper"],
)
def test_the_state_of_a_run_is_what_the_planner_says(toy_folder, tmp_path, changes):
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
    plan = make_plan(config, Machine())
    parts = {part.name: part.size for part in plan.parts}
    assert {name: parts.get(name, 0) for name in measured} == pytest.approx(measured, rel=0.1)
    (tmp_path / "saved").mkdir()
    trainer.save(tmp_path / "saved")
    kept = [path for path in (tmp_path / "saved").iterdir() if path.suffix in (".safetensors", ".pt")]
    saved = sum(path.stat().st_size for path in kept if not path.name.startswith("scheduler"))
    assert plan.checkpoint == pytest.approx(saved, rel=0.1, abs=16_000)  # names and pickles


@pytest.mark.parametrize("changes", [{}, {"lora_rank": 4}, {"gradient_checkpointing": True}], ids=str)
def test_an_update_computes_what_the_planner_says(changes):
    model = small(Qwen2Config, 2, torch.float32, changes.get("lora_rank", 0), "gradient_checkpointing" in changes)
    ids = torch.zeros(ROWS, 32, dtype=torch.long)
    with FlopCounterMode(display=False) as counted:
        model(input_ids=ids, use_cache=False).logits.sum().backward()
    config = TrainConfig(model="m", micro_batches=1, **changes)
    work = Workload("float32", rows=1, update_rows=ROWS, row_tokens=32, own_tokens=32, playing=ROWS)
    said = update_operations(config, shape_of(small(Qwen2Config, 2).config), work)
    assert said == pytest.approx(counted.get_total_flops(), rel=0.1)


def test_what_is_scored_beside_costs_forward_passes(seven):
    kept = {"gradient_checkpointing": False, "method": "grpo"}
    plain = planned(seven, kl_coef=0.0, **kept).operations
    assert planned(seven, kl_coef=0.1, **kept).operations == pytest.approx(plain * 4 / 3)
    assert planned(seven, kl_coef=0.1, num_minibatches=2, **kept).operations == pytest.approx(plain * 5 / 3)


def test_published_sizes():
    sizes = {name.split("-")[1]: shape_of(config_of(TrainConfig(model=name))).parameters for name in KNOWN}
    assert sizes == pytest.approx({"0.5B": 0.494e9, "1.5B": 1.544e9, "7B": 7.616e9}, rel=1e-3)


def test_what_does_not_fit_is_mended_by_what_it_names(seven):
    assert planned(seven, SHARDED).remedies == ()
    plan = planned(seven)
    assert not plan.fits
    assert any(remedy.fits for remedy in plan.remedies)
    for remedy in plan.remedies:
        sharding = "--sharding fsdp2"
        pairs = [word.split("=") for word in remedy.words.replace(sharding, "").split()]
        settings = {name: yaml.safe_load(value) for name, value in pairs}
        again = planned(seven, SHARDED if sharding in remedy.words else EIGHT, **settings)
        assert (again.total, again.fits) == (remedy.total, remedy.fits)
        assert again.total < plan.total


@pytest.mark.parametrize(
    "settings", [{"precision": "bfloat16_copy"}, {"trained_layers": "upper:4"}, {"reference_model": "Qwen/Qwen2.5-7B"}]
)
def test_a_run_that_does_not_fit_is_offered_what_goes_with_its_settings(seven, settings):
    plan = planned(seven, **{"gradient_checkpointing": False, **settings})
    assert not plan.fits
    assert plan.remedies


LOWER = {
    **{"gradient_checkpointing": True, "lora_rank": 8, "optimiser": "adamw_8bit", "micro_batches": 64},
    **{"precision": "pure_bfloat16", "vllm_memory": 0.2, "kl_coef": 0.0},
}


@pytest.mark.parametrize("name", LOWER)
def test_each_setting_lowers_the_sum(seven, name):
    base = {"gradient_checkpointing": False, "micro_batches": 4}
    totals = [each.total for each in (planned(seven, **{**base, name: LOWER[name]}), planned(seven, **base))]
    assert totals == sorted({*totals, planned(seven, EIGHT, 16384, **base).total})[:2]


def test_rows_that_a_method_adds_and_teachers_are_planned(seven):
    plain, more = (planned(seven, method=name, micro_batches=4) for name in ("half_skill_grpo", "skillc+relabelling"))
    assert (plain.work.update_rows, more.work.update_rows) == (8, 12)
    assert (plain.work.rows, more.work.rows) == (2, 3)
    assert more.operations == pytest.approx(1.5 * plain.operations)
    assert more.update > plain.update
    assert "50% more than the rollouts at most" in str(more)
    taught = planned(seven, method="grpo_opsd")
    assert taught.work.scored == plain.work.scored + 1
    assert taught.operations > planned(seven, method="grpo").operations


def test_each_turn_is_a_row_where_thoughts_are_dropped_as_in_the_window_form(seven):
    dropped, window = (
        planned(seven, max_episode_steps=9, **each) for each in ({"thoughts": "drop"}, {"form": "window:5"})
    )
    assert dropped.work == window.work
    assert dropped.work.update_rows == 9 * planned(seven, max_episode_steps=9).work.update_rows
    assert dropped.work.own_tokens <= planned(seven).work.own_tokens


def test_the_hosts_memory_and_checkpoints_are_planned(seven):
    plan = planned(seven, SHARDED)
    assert plan.host == 8 * 2 * 4 * seven.parameters  # every process loads policy and reference in float32
    assert plan.checkpoint == 16 * seven.parameters  # weights twice, two moments
    assert planned(seven, SHARDED, kl_coef=0.0).host == plan.host / 2
    assert planned(seven, SHARDED, lora_rank=8, precision="pure_bfloat16").host == plan.host / 4
    assert planned(seven, replace(SHARDED, host_memory=512)).fits
    low = planned(seven, replace(SHARDED, host_memory=400))
    assert not low.fits
    assert any("The host has 400 GiB" in warning for warning in low.warnings)
    assert any("vllm_memory=0.1" in warning for warning in planned(seven, vllm_memory=0.1).warnings)


TAUGHT = {"method": "skillc+forward_distillation", "method_options": {"teacher_weights": "average"}}


@pytest.mark.parametrize(
    ("machine", "changes", "says"),
    [
        (Machine(3), {}, "no multiple of 3"),
        (Machine(8, sharding="zero3"), {"engine": "transformers"}, "engine=vllm"),
        (Machine(8, sharding="zero3"), {"precision": "pure_bfloat16"}, "take precision=bfloat16"),
        (Machine(8, sharding="zero3"), TAUGHT, "shard with fsdp2"),
        (Machine(1), {"rollouts_ahead": True, "engine": "transformers", "method": "skillrl"}, "which skills it shows"),
        (Machine(1), {"engine": "openai"}, "cannot train"),
        (Machine(1), {"engine": "vllm", "vllm_mode": "server", "vllm_sleep": True}, "vllm_mode=server"),
        (Machine(4), {"engine": "vllm", "vllm_tensor_parallel": 3}, "a divisor of their number"),
        (Machine(1), {"method": "skillc", "group_size": 1}, "group_size"),
        (SHARDED, {"method": "ppo"}, "heads of its own"),
        (SHARDED, {"reference_sync_every": 5}, "reference_sync_every"),
        (Machine(1), {"reference_sync_every": 5, "kl_coef": 0.0}, "with kl_coef=0 this run has none"),
        (Machine(1), {"reference_model": "other", "kl_coef": 0.0}, "Nothing asks for the reference"),
        (Machine(1), {"attention": "flash_attention_2", "engine": "transformers"}, "needs masks"),
        (Machine(1), {"split": "valid_unsen"}, "Unknown split"),
        (Machine(1), {"task_types": ("heat", "bad")}, "Unknown task type 'bad'"),
        (Machine(1), {"metrics": ("no:f",)}, "'no'"),
        (Machine(1), {"report_to": ("paper",)}, "Unknown logger 'paper'"),
        (Machine(1), {"library": "no-such-folder"}, "no-such-folder"),
        (Machine(1), {"engine": "transformers", "engine_options": {"foo": 3}}, "Unknown option .*'foo'"),
        (Machine(1), {"env": "NoSuch-v0"}, "Unknown environment 'NoSuch-v0'"),
        (Machine(1), {"env_options": {"nope": 1}}, "Unknown option of skillc/ALFWorld-v0 'nope'"),
        (Machine(1), {"env_wrappers": {"nomod:X": {}}}, "'nomod'"),
        (Machine(1), {"trained_layers": "upper:99"}, "upper:99, and the model has 28 layers"),
    ],
)
def test_what_training_refuses_does_not_fit(seven, machine, changes, says):
    plan = planned(seven, machine, **changes)
    assert not plan.fits
    assert any(re.search(says, refusal) for refusal in plan.refusals)
    assert "Training refuses it" in str(plan)
    if machine.sharding == "fsdp2":
        assert all("fsdp2" not in each.words for each in planned(seven, **changes).remedies)


def test_weights_that_play_ahead_are_counted_and_a_copy_in_bfloat16_once(seven):
    def parts(**changes):
        plan = planned(seven, Machine(1), engine="transformers", method="grpo", gradient_checkpointing=False, **changes)
        return {part.name: part for part in plan.parts}, plan

    (own, plain), (ahead, more) = parts(), parts(rollouts_ahead=True)
    copy = ahead["copy ahead"].size
    assert copy == own["weights"].size
    assert more.update == plain.update + copy + own["KV cache"].size
    assert more.checkpoint == plain.checkpoint + copy
    copied, _ = parts(precision="bfloat16_copy", rollouts_ahead=True)
    assert "copies" in copied
    assert "weights in bfloat16" not in copied
    assert copied["copy ahead"].size == own["weights"].size / 2


@pytest.mark.parametrize("name", setup_names())
def test_every_setup_fits_its_machine_and_its_command_is_understood(name):
    setup = load_setup(name)
    plan = make_plan(setup.config, setup.machine, row_tokens=setup.row_tokens)
    assert (plan.fits, plan.warnings) == (True, ())
    words = launch_command(setup.settings, setup.machine).partition(" train ")[2].split()
    assert parse(TrainOptions, words, "skillc train").config() == setup.config


@pytest.mark.parametrize("name", setup_names())
def test_every_setup_runs_scaled_down(name, toy_folder, tmp_path):
    """A tiny random model, one update, the engine that is at hand; all else as the file says."""
    toy = toy_config(toy_folder, run=str(tmp_path))
    here = {n: getattr(toy, n) for n in ("model", "env", "library", "run", "chat", "chat_options", "max_reply_tokens")}
    small_run = {"steps": 1, "tasks_per_step": 2, "group_size": 2, "max_context": 64, "panel_per_type": 1}
    config = load_setup(name).config.with_(**here, **small_run, engine="transformers", micro_batches=2)
    assert run(config).finished


@pytest.mark.parametrize("name", LAUNCHERS)
def test_accelerate_reads_the_launchers_files(name, says):
    asked = load_config_from_file(says("plan --launcher", name).strip())
    assert asked.num_processes == 8
    if name == "fsdp2":
        assert (asked.fsdp_config["fsdp_version"], asked.fsdp_config["fsdp_cpu_ram_efficient_loading"]) == (2, False)
    else:
        assert asked.deepspeed_config["zero_stage"] == 3
    words = launch_command({}, Machine(4, sharding=name))
    assert f'--config_file "$(skillc plan --launcher {name})" --num_processes 4 ' in words


def test_what_sleeps_or_is_whole_is_planned_so(seven):
    awake, asleep = (planned(seven, vllm_sleep=sleep) for sleep in (False, True))
    assert asleep.generation == awake.generation
    assert asleep.update < awake.update
    copied = planned(seven, SHARDED, engine="transformers")
    assert {part.name: part.size for part in copied.parts}["whole copy"] == 4 * seven.parameters


def test_the_command_says_whether_it_fits_and_how_long_it_takes(says):
    small_model = "plan --model shipped --tflops 0.5 --steps 90"
    found = json.loads(says(f"{small_model} --json"))
    assert found["fits"]
    assert found["command"].startswith("skillc train model=shipped")
    assert found["seconds"] == pytest.approx(found["operations"] / 0.5e12)
    assert json.loads(says(f"{small_model} --json --gpu-memory 0.05", status=1))["remedies"]
    assert "h for 90 of them" in says(small_model)
    assert "kl_coef=0.0" in json.loads(says(f"{small_model} --json --kl-coef 0"))["command"], "not what its folder says"
    assert "skillc gpu-check measures" in says("plan --model shipped")


def test_a_setup_is_a_start_that_words_change(says):
    said = says("plan --setup qwen2.5-0.5b-1x80 --gpu-memory 32 --vllm-memory 0.2")
    assert all(words in said for words in ("1 x 32 GiB", "It fits.", "vllm_memory=0.2"))
    typed = says("plan --setup qwen2.5-0.5b-1x80 --json --no-gradient-checkpointing", status=1)
    assert "gradient_checkpointing=false" in json.loads(typed)["command"], "a default that is typed counts too"
    assert setup_names()[0] in says("plan --setup list")
    assert "--setup list" in says("plan", status=2)


def test_what_is_missing_is_said_in_words():
    with pytest.raises(ConfigError, match="gpus must be at least 1"):
        Machine(0)
    with pytest.raises(UnknownNameError, match=r"qwen2\.5-7b-8x80"):
        load_setup("qwen2.5-7b")
    with pytest.raises(MissingDataError, match="nowhere"):
        make_plan(TrainConfig(model="nowhere"), Machine())

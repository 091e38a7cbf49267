"""verl: the registered agent loop plays rows with a fake server manager, which writes replies as tokens."""

import asyncio
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from byte_tokenizers import byte_tokenizer
from scripted import ENV_KWARGS, ROOT, blocks_of, check_record, pairs

pytest.importorskip("verl", reason="needs the verl extra, in an environment of its own: make test-adapters")

import hydra
import pandas
import yaml
from omegaconf import OmegaConf
from transformers import Qwen2Config
from verl.experimental.agent_loop.agent_loop import DictConfigWrap, _agent_loop_registry
from verl_faked import Servers

import skillc_gym.adapters.verl
from skillc_gym.adapters import ChatEnv
from skillc_gym.errors import ConfigError

TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


@pytest.fixture(scope="module")
def tokenizer():
    return byte_tokenizer(TEMPLATE, ["<|im_start|>", "<|im_end|>"])


def play(tokenizer, row, response_length=20_000, prompt_length=20_000):
    rollout = {"prompt_length": prompt_length, "response_length": response_length}
    config = OmegaConf.create({"actor_rollout_ref": {"rollout": rollout}, "data": {}})

    async def run():
        loop = hydra.utils.instantiate(
            {**_agent_loop_registry["skillc"], "env": "alfworld", "env_kwargs": ENV_KWARGS},
            trainer_config=DictConfigWrap(config=config),
            server_manager=Servers(tokenizer),
            tokenizer=tokenizer,
            processor=None,
            hf_model_type="qwen2",
            dataset_cls=None,
            data_config=DictConfigWrap(config.data),
        )
        return await loop.run({"temperature": 0.5}, raw_prompt=[], **row)

    return asyncio.run(run())


def test_pairs_and_provenance_survive_the_round_trip(tokenizer):
    for request in pairs(seed=2):
        output = play(tokenizer, request.to_row())
        check_record(output.extra_fields["episode"], request)
        numbers = output.extra_fields["reward_extra_info"]
        assert output.reward_score == numbers["condition"] == numbers["won"] == request.condition
        assert ("Skill:" in tokenizer.decode(output.prompt_ids)) == bool(request.condition)


def test_verls_trainers_are_told_by_which_weights_replies_came(tokenizer):
    told = play(tokenizer, pairs()[0].to_row()).extra_fields
    steps = told["episode"]["steps"]
    assert (told["min_global_steps"], told["max_global_steps"]) == (3, 2 + steps)
    assert told["spec_num_draft_tokens"] == 5 * steps
    assert (len(told["turn_scores"]), told["tool_rewards"]) == (steps, [])


def test_only_replies_are_trained_on(tokenizer):
    output = play(tokenizer, pairs()[0].to_row())
    assert len(output.response_ids) == len(output.response_mask) == len(output.response_logprobs)
    trained = [token for token, kept in zip(output.response_ids, output.response_mask, strict=True) if kept]
    replies = tokenizer.decode(trained).split("<|im_end|>")[:-1]
    assert len(replies) == output.extra_fields["episode"]["steps"]
    assert all(reply.startswith("<think>") and reply.endswith("</action>") for reply in replies)
    told = [p for p, kept in zip(output.response_logprobs, output.response_mask, strict=True) if kept]
    assert set(told) == {-0.5}


@pytest.mark.parametrize("room", [10, 60, 400])
def test_an_episode_without_room_is_truncated(tokenizer, room):
    output = play(tokenizer, pairs()[0].to_row(), response_length=room)
    assert len(output.response_ids) == len(output.response_mask) <= room
    assert output.extra_fields["episode"]["truncated"]
    assert output.reward_score == 0.0


def test_a_prompt_without_room_is_refused_and_not_cut(tokenizer):
    shown, hidden = pairs()
    length = len(play(tokenizer, shown.to_row()).prompt_ids)
    assert "Skill:" in tokenizer.decode(play(tokenizer, shown.to_row(), prompt_length=length).prompt_ids)
    with pytest.raises(ConfigError, match=f"at most {length - 1} tokens .* got {length}.*max_prompt_length={length}"):
        play(tokenizer, shown.to_row(), prompt_length=length - 1)
    play(tokenizer, hidden.to_row(), prompt_length=length - 1)


def test_an_episodes_environment_is_closed(tokenizer, monkeypatch):
    closed = []
    monkeypatch.setattr(ChatEnv, "close", lambda env: closed.append(env.record()["steps"]))
    output = play(tokenizer, pairs()[0].to_row())
    with pytest.raises(ConfigError):
        play(tokenizer, pairs()[0].to_row(), prompt_length=1)
    assert closed == [output.extra_fields["episode"]["steps"], 0]


def test_importing_the_loop_leaves_the_arguments_of_its_file(monkeypatch):
    configured = {"_target_": "skillc_gym.adapters.verl.SkillAgentLoop", "env": "webshop"}
    monkeypatch.setitem(_agent_loop_registry, "skillc", configured)  # as verl does before its first row
    importlib.reload(skillc_gym.adapters.verl)
    assert _agent_loop_registry["skillc"] is configured


SMALL = {
    "actor_rollout_ref.model.path": "model",
    "actor_rollout_ref.rollout.agent.num_workers": 1,
    "transfer_queue.backend.SimpleStorage.num_data_storage_units": 1,
    "trainer.total_training_steps": 2,
    "data.dataloader_num_workers": 0,
    "data.max_prompt_length": 20_000,  # a token is a byte here
    "data.max_response_length": 100_000,
    "ray_kwargs.ray_init.num_cpus": 8,
    "+ray_kwargs.ray_init.include_dashboard": False,
}


def pages_command():
    """The page's command: the variables that it sets, and its words."""
    page = (ROOT / "docs" / "adapters" / "verl.md").read_text(encoding="utf-8")
    line = re.search(r"^PYTHONPATH=.*?[^\\]$", page, re.DOTALL | re.MULTILINE)
    words = shlex.split(line[0].replace("\\\n", " "))
    start = words.index("python")
    return dict(word.split("=", 1) for word in words[:start]), words[start + 1 :]


def write_the_pages_files(tokenizer):
    """What the page writes, over tasks that the expert can play, and a model's tokenizer."""
    data, module = blocks_of("verl.md")
    exec(data.replace('data="generated"', "**ENV_KWARGS"), {"ENV_KWARGS": ENV_KWARGS})
    table, (loop,) = pandas.read_parquet("train.parquet"), yaml.safe_load(Path("agent_loops.yaml").read_text())
    assert table["condition"].tolist() == [1, 0] * 4
    assert loop == {
        "name": "skillc",
        "_target_": "skillc_gym.adapters.verl.SkillAgentLoop",
        "env": "alfworld",
        "env_kwargs": {"data": "generated"},
    }
    Path("agent_loops.yaml").write_text(yaml.safe_dump([{**loop, "env_kwargs": ENV_KWARGS}]))
    Path("skillc_verl.py").write_text(module)
    tokenizer.save_pretrained("model")
    Qwen2Config(vocab_size=300, architectures=["Qwen2ForCausalLM"]).save_pretrained("model")


@pytest.mark.slow
def test_the_pages_command_trains_on_pairs(tokenizer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_the_pages_files(tokenizer)
    variables, words = pages_command()
    paths = [variables["PYTHONPATH"], str(ROOT), str(ROOT / "tests"), str(Path(__file__).parent)]
    variables = {
        "PYTHONPATH": os.pathsep.join(paths),
        "VERL_USE_EXTERNAL_MODULES": variables["VERL_USE_EXTERNAL_MODULES"] + ",verl_faked",
        "LEARNED": str(tmp_path / "learned.jsonl"),
    }
    command = [sys.executable, *words, *(f"{name}={value}" for name, value in SMALL.items())]
    with Path("log").open("w") as log:
        ended = subprocess.run(command, env=os.environ | variables, stdout=log, stderr=log, timeout=500, check=False)
    assert ended.returncode == 0, Path("log").read_text()[-5000:]
    updates = [json.loads(line) for line in Path("learned.jsonl").read_text().splitlines()]
    assert len(updates) == 2
    for update in updates:
        played = sorted((row["group_id"], row["condition"]) for row in update["episodes"])
        assert played == [(group, shown) for group in range(4) for shown in (0, 1)]
        assert all(row["won"] == row["condition"] for row in update["episodes"])
        assert all((row["advantage"] > 0) == bool(row["won"]) for row in update["episodes"])
        assert update["contrast"] == {"skillc/contrast/pick_and_place_simple": 1.0}

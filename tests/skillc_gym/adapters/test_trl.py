"""TRL: one real training step over pairs, with scripted replies, since an untrained model never calls a tool."""

import json
from functools import partial
from pathlib import Path

import pytest
from scripted import ENV_KWARGS, byte_tokenizer, check_record, expert_command, run_blocks

from skillc_gym.adapters import ChatEnv, EpisodeRequest, paired_requests
from skillc_gym.adapters.trl import ToolEnvironment, dataset_rows
from skillc_gym.errors import ConfigError

FACTORY = partial(ToolEnvironment, "alfworld", **ENV_KWARGS)


def rows(tasks: int) -> list[dict]:
    return dataset_rows(paired_requests(ChatEnv("alfworld", **ENV_KWARGS).task_ids[:tasks], seed=5))


def play(environment, row):
    heard = [{"role": "user", "content": environment.reset(**row)}]
    for _ in range(30):
        heard.append({"role": "tool", "content": environment.act(expert_command(heard))})
    return heard


def test_the_page_runs():
    names = run_blocks("trl.md")
    assert [record["condition"] for record in names["records"]] == [1, 0]


def test_a_pair_survives_the_round_trip():
    environment = FACTORY()
    for row in rows(1):
        heard = play(environment, row)
        check_record(environment.record, EpisodeRequest.from_row(row))
        assert environment.get_reward() == row["condition"]
        assert heard[-1]["content"] == "The episode is over."


def test_an_episode_that_is_cut_is_truncated():
    environment = FACTORY()
    environment.reset(**rows(1)[0])
    environment.act("look")
    assert environment.record["truncated"]  # a reward function's view: TRL asks them first
    assert environment.get_reward() == 0.0
    assert environment.record["truncated"]
    assert environment.act("look") == "The episode is over."


def test_a_row_without_task_is_refused():
    with pytest.raises(ConfigError, match="paired_requests"):
        FACTORY().reset(prompt=[], seed=0)


@pytest.fixture(scope="module")
def qwen3(tmp_path_factory):
    """A tiny random model with a tokenizer of single bytes and Qwen3's chat template, as TRL ships it."""
    trl = pytest.importorskip("trl", reason="needs the train extra")
    from transformers import Qwen2Config, Qwen2ForCausalLM

    template = (Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja").read_text()
    tags = ["<tool_call>", "</tool_call>", "<think>", "</think>"]
    tokenizer = byte_tokenizer(template, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], tags)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=16_384,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    return Qwen2ForCausalLM(config), tokenizer


@pytest.mark.slow
@pytest.mark.parametrize("tools", [True, False])
def test_trl_trains_on_pairs(qwen3, tmp_path, tools):
    """With tool calls; a reply in tags plays nothing, and reward functions see that such an episode was cut."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    model, tokenizer = qwen3
    seen = []

    def note(environments, **columns):
        seen.append([environment.record for environment in environments])
        return [0.0] * len(environments)

    config = GRPOConfig(
        output_dir=str(tmp_path),
        per_device_train_batch_size=4,
        num_generations=2,
        max_steps=1,
        max_completion_length=12_000,
        shuffle_dataset=False,
        use_cpu=True,
        report_to=[],
        bf16=False,
        save_strategy="no",
    )
    trainer = GRPOTrainer(
        model,
        reward_funcs=[note],
        args=config,
        train_dataset=Dataset.from_list(rows(1)),
        processing_class=tokenizer,
        environment_factory=FACTORY,
    )
    trainer._generate_single_turn = partial(scripted_turn, tokenizer, call if tools else in_tags)
    trainer.train()
    (records,) = seen
    assert [record["condition"] for record in records] == [1, 1, 0, 0]
    assert len({(record["task_id"], record["seed"], record["group_id"]) for record in records}) == 1
    assert [record["won"] for record in records] == [tools, tools, False, False]
    assert [record["terminated"] for record in records] == [tools, tools, False, False]
    assert [record["truncated"] for record in records] == [not tools, not tools, True, True]
    assert all(bool(record["steps"]) == tools for record in records)
    assert trainer.state.log_history[0]["rewards/ToolEnvironment/mean"] == 0.5 * tools
    assert trainer.state.log_history[0]["tools/failure_frequency"] == 0.0


def scripted_turn(tokenizer, reply, prompt_ids, *_args, **_kwargs):
    """What the model would say to each prompt."""
    replies = [tokenizer.encode(reply(tokenizer.decode(ids))) for ids in prompt_ids]
    return replies, [[0.0] * len(ids) for ids in replies]


def in_tags(text: str) -> str:
    return "<think>Anything new?</think><action>look</action><|im_end|>"


def call(text: str) -> str:
    """A tool call with the expert's next command, or the end token once it is over."""
    said = [turn.partition("\n")[2].split("<|im_end|>")[0] for turn in text.split("<|im_start|>user")[1:]]
    chat = [{"role": "user", "content": turn.replace("\n</tool_response>", "").rstrip("\n")} for turn in said]
    if "episode is over" in said[-1] or len(said) > 21:
        return "Done.<|im_end|>"
    arguments = {"name": "act", "arguments": {"command": expert_command(chat)}}
    return f"<tool_call>\n{json.dumps(arguments)}\n</tool_call><|im_end|>"

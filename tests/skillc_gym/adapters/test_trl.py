"""TRL: one real training step over pairs, with scripted replies, since an untrained model never calls a tool."""

import json
from functools import partial
from pathlib import Path

import pytest
from byte_tokenizers import byte_tokenizer
from scripted import ENV_KWARGS, check_record, expert_command, pairs, run_blocks

from skillc_gym.adapters import EpisodeRequest
from skillc_gym.adapters.trl import ToolEnvironment, dataset_rows

FACTORY = partial(ToolEnvironment, "alfworld", **ENV_KWARGS)


@pytest.fixture
def rows() -> list[dict]:
    return dataset_rows(pairs(seed=5))


def test_the_page_runs():
    names = run_blocks("trl.md")
    assert [record["condition"] for record in names["records"]] == [1, 0]


def test_a_pair_survives_the_round_trip(rows):
    environment = FACTORY()
    for row in rows:
        heard = [{"role": "user", "content": environment.reset(**row)}]
        for _ in range(30):
            heard.append({"role": "tool", "content": environment.act(expert_command(heard))})
        check_record(environment.record, EpisodeRequest.from_row(row))
        assert "<action>" not in heard[0]["content"]
        assert environment.record["malformed"] == 0
        assert environment.get_reward() == row["condition"]
        assert heard[-1]["content"] == "The episode is over."


def test_an_episode_that_is_cut_is_truncated(rows):
    environment = FACTORY()
    environment.reset(**rows[0])
    environment.act("look")
    assert environment.record["truncated"]  # a reward function's view: TRL asks them first
    assert environment.get_reward() == 0.0
    assert environment.record["truncated"]
    assert environment.act("look") == "The episode is over."


@pytest.fixture(scope="module")
def qwen3(tmp_path_factory):
    """A tiny random model with a tokenizer of single bytes and Qwen3's chat template, as TRL ships it."""
    trl = pytest.importorskip("trl", reason="needs the train extra")
    from tests.trainers.conftest import make_model

    template = (Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja").read_text()
    tags = ["<tool_call>", "</tool_call>", "<think>", "</think>"]
    tokenizer = byte_tokenizer(template, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], tags)
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    return make_model(len(tokenizer), layers=1, max_position_embeddings=16_384, **ends), tokenizer


@pytest.mark.slow
@pytest.mark.parametrize("tools", [True, False])
def test_trl_trains_on_pairs(qwen3, rows, tmp_path, tools):
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
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
        environment_factory=FACTORY,
    )
    trainer._generate_single_turn = partial(scripted_turn, tokenizer, call if tools else in_tags)
    trainer.train()
    (records,) = seen
    assert [record["condition"] for record in records] == [1, 1, 0, 0]
    assert len({(record["task_id"], record["seed"], record["group_id"]) for record in records}) == 1
    ends = [(record["won"], record["terminated"], record["truncated"], record["steps"] > 0) for record in records]
    assert ends == [(tools, tools, not tools, tools)] * 2 + [(False, False, True, tools)] * 2
    told = trainer.state.log_history[0]
    assert (told["rewards/ToolEnvironment/mean"], told["tools/failure_frequency"]) == (0.5 * tools, 0.0)


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

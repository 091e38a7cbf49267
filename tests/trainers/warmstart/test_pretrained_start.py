"""Warm starts of language models with a chat template of their own, on a tiny random one of SmolLM2's architecture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("peft", reason="needs the train extra")

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from skillc_gym.errors import ConfigError
from skillc_lab.commands.make_policy import Cloning, MakePolicyOptions, Shown
from tests.trainers.models.test_pretrained import byte_tokenizer
from trainers.config import TrainConfig
from trainers.evaluation.policy import evaluate_policy
from trainers.rollout.chat_tokens import ChatTokens
from trainers.warmstart import PolicyRecipe, make_policy
from trainers.warmstart.cloning import IGNORED, tokenise_conversation

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
CHAT = [
    {"role": "system", "content": "agent"},
    {"role": "user", "content": "see mug"},
    {"role": "assistant", "content": "<action> take mug </action>"},
    {"role": "user", "content": "nothing"},
    {"role": "assistant", "content": "<action> look </action>"},
]


def chatml_tokenizer() -> Any:
    tokenizer = byte_tokenizer()
    tokenizer.add_special_tokens(
        {"eos_token": "<|im_end|>", "pad_token": "<|im_end|>", "additional_special_tokens": ["<|im_start|>"]}
    )
    tokenizer.chat_template = CHATML
    return tokenizer


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama with tied embeddings, and fewer heads for keys than for queries."""
    folder, tokenizer = tmp_path_factory.mktemp("chatml"), chatml_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=24, intermediate_size=32, num_hidden_layers=1, num_attention_heads=3,
        num_key_value_heads=1, max_position_embeddings=8192, tie_word_embeddings=True, bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def recipe(start: Path, **cloning: Any) -> PolicyRecipe:
    options = {"batches": 6, "batch_episodes": 2, "learning_rate": 1e-2, "context_weight": 0.0, "held_out": 4}
    made = MakePolicyOptions(
        Shown(episodes=8), Cloning(**{**options, "start": str(start), **cloning}), out=start, env="coins"
    )
    return made.recipe()


def test_a_dialogue_is_what_the_template_writes_and_replies_end_with_their_token() -> None:
    tokenizer = chatml_tokenizer()
    item = tokenise_conversation(ChatTokens(tokenizer), CHAT, {0})
    rendered = tokenizer.apply_chat_template(CHAT, tokenize=False).removesuffix("\n")
    assert tokenizer.decode(item.ids) == rendered
    labelled = [label for label in item.labels if label != IGNORED]
    assert tokenizer.decode(labelled) == "<action> look </action><|im_end|>"
    slipped = [token for token, slip in zip(item.ids, item.slips, strict=True) if slip]
    assert tokenizer.decode(slipped) == "<action> take mug </action><|im_end|>"
    assert len(tokenise_conversation(ChatTokens(tokenizer), CHAT, max_length=9).ids) == 9


@pytest.mark.parametrize(("lora_rank", "precision"), [(0, "float32"), (0, "bfloat16"), (4, "float32")])
def test_a_language_model_learns_from_demonstrations(
    start: Path, tmp_path: Path, lora_rank: int, precision: str
) -> None:
    card = make_policy(recipe(start, lora_rank=lora_rank, precision=precision), tmp_path)
    before, after = card["loss_held_out"]
    assert after < before
    assert card["start_sha256"] != card["weights_sha256"]
    kept = LlamaForCausalLM.from_pretrained(tmp_path)
    assert type(kept) is LlamaForCausalLM
    assert kept.config.tie_word_embeddings
    if lora_rank:
        peft = pytest.importorskip("peft", reason="needs the extra 'train'")
        adapted = peft.PeftModel.from_pretrained(LlamaForCausalLM.from_pretrained(start), tmp_path / "adapter")
        for name, weights in adapted.merge_and_unload().state_dict().items():
            assert torch.equal(weights, kept.state_dict()[name]), name


def test_what_was_cloned_plays_by_its_own_template(start: Path, tmp_path: Path) -> None:
    make_policy(replace(recipe(start, batches=1), held_out=0), tmp_path)
    config = TrainConfig(
        model=str(tmp_path), env="coins", chat="compact", max_episode_steps=2, max_reply_tokens=4, max_context=4096
    )
    report = evaluate_policy(config, per_type=1)
    assert all(episode.turns for episode in report.paired.episodes)


def test_adapters_need_a_model() -> None:
    with pytest.raises(ConfigError, match="name one as start"):
        make_policy(PolicyRecipe(lora_rank=4), Path("nowhere"))

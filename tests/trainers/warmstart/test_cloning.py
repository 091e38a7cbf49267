"""The small policy and its cloning: its tokenizer, what is imitated, and that an interrupted one goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("transformers", reason="needs the train extra")

import torch

from skillc_gym.envs.registry import warm_started
from skillc_gym.envs.warm_start import PLAIN_WORDS
from skillc_gym.errors import CheckpointError, ConfigError
from skillc_lab.commands.make_policy import Cloning, MakePolicyOptions, Shown
from trainers.rollout.chat_tokens import ChatTokens
from trainers.warmstart import CloningConfig, PolicySize, build_model, build_tokenizer, clone, make, vocabulary
from trainers.warmstart.cloning import CLONING_FILE, IGNORED, ProgressFile, tokenise_conversation
from trainers.warmstart.policy import SPECIAL, UNKNOWN, words

WORDS = ["see", "take", "mug", "plate", "nothing"]
SIZE = PolicySize(layers=1, width=32, heads=2, feed_forward=32)


def chat(thing: str) -> list[dict[str, str]]:
    return [
        {"role": "user", "content": f"see {thing}"},
        {"role": "assistant", "content": f"<action> take {thing} </action>"},
        {"role": "user", "content": "nothing"},
        {"role": "assistant", "content": "<action> see </action>"},
    ]


def test_replies_are_imitated_to_their_end_and_slips_neither_imitated_nor_predicted():
    tokenizer = build_tokenizer(WORDS)
    plain, slipped = (tokenise_conversation(ChatTokens(tokenizer), chat("mug"), slips) for slips in ((), {0}))
    assert plain.ids == slipped.ids
    assert all(label in (IGNORED, token) for label, token in zip(plain.labels, plain.ids, strict=True))
    replies = tokenizer.convert_ids_to_tokens([label for label in plain.labels if label != IGNORED])
    assert replies == ["<action>", "take", "mug", "</action>", "<|end|>", "<action>", "see", "</action>", "<|end|>"]
    labelled = tokenizer.convert_ids_to_tokens([label for label in slipped.labels if label != IGNORED])
    assert labelled == ["<action>", "see", "</action>", "<|end|>"]
    left_out = [token for token, slip in zip(slipped.ids, slipped.slips, strict=True) if slip]
    assert tokenizer.convert_ids_to_tokens(left_out) == ["<action>", "take", "mug", "</action>", "<|end|>"]
    assert not any(plain.slips)


def test_cloning_learns_to_copy_and_is_deterministic():
    tokenizer = build_tokenizer(WORDS)
    data = [tokenise_conversation(ChatTokens(tokenizer), chat(thing)) for thing in ("mug", "plate")] * 8
    config = CloningConfig(batches=60, batch_episodes=8, learning_rate=1e-2)
    models = [build_model(tokenizer, SIZE) for _ in range(2)]
    runs = [clone(model, data, config, pad_token_id=tokenizer.pad_token_id) for model in models]
    assert runs[0] == runs[1]
    assert runs[0][-1] < 0.1 < 1.0 < runs[0][0]


def asked_for(out: Path) -> MakePolicyOptions:
    return MakePolicyOptions(Shown(episodes=8, max_steps=5), Cloning(batches=6, batch_episodes=2), out=out / "p")


def test_an_interrupted_cloning_goes_on_to_the_same_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, steps = asked_for(tmp_path), list[int]()

    def interrupt(phase: str, done: int, total: int, loss: float) -> None:
        steps.extend([done] * (phase == "cloning"))
        if steps == [1, 2, 3]:
            raise KeyboardInterrupt

    monkeypatch.setattr(make, "ProgressFile", lambda path, key: ProgressFile(path, key, every=2))
    with pytest.raises(KeyboardInterrupt):
        make.make_policy(asked.recipe(), asked.out, progress=interrupt)
    begun = (asked.out / CLONING_FILE).read_bytes()
    with pytest.raises(ConfigError, match="begun with other settings"):
        make.make_policy(replace(asked.recipe(), seed=1), asked.out, progress=interrupt)
    (asked.out / CLONING_FILE).write_bytes(b"half a file")
    with pytest.raises(CheckpointError, match="remove it to begin anew"):
        make.make_policy(asked.recipe(), asked.out, progress=interrupt)
    assert (asked.out / CLONING_FILE).read_bytes() == b"half a file", "it is not taken away unasked"
    (asked.out / CLONING_FILE).write_bytes(begun)
    gone_on = make.make_policy(asked.recipe(), asked.out, progress=interrupt)
    assert steps == [1, 2, 3, 3, 4, 5, 6], "the third step was not written down yet, and nothing else was computed"
    assert not (asked.out / CLONING_FILE).exists()
    assert gone_on == make.make_policy(asked.recipe(), tmp_path / "at-once")


def test_replies_that_are_all_cut_off_are_refused_before_anything_is_cloned(tmp_path: Path) -> None:
    asked = asked_for(tmp_path)
    with pytest.raises(ConfigError, match="max_length=4 cuts off all replies"):
        make.make_policy(replace(asked.recipe(), max_length=4), asked.out)
    assert not (asked.out / "model.safetensors").exists()


SHOP = warm_started("webshop")[1].spelling
CHAT = [
    {"role": "system", "content": "You play."},
    {"role": "user", "content": "On the cabinet 1, you see a mug 1, and a plate 2."},
    {"role": "assistant", "content": "<think> find mug </think> <action> take mug 1 </action>"},
]
KNOWN = ["you", "play", "on", "cabinet", "see", "mug", "plate", "find", "take", "1", "2"]


def test_words_are_single_tokens_without_articles_and_punctuation_and_replies_come_back():
    tokenizer = build_tokenizer(KNOWN)
    reply = CHAT[-1]["content"]
    assert tokenizer.decode(tokenizer.encode(reply)) == reply
    tokens = tokenizer.convert_ids_to_tokens(tokenizer.encode(CHAT[1]["content"]))
    assert tokens == ["on", "cabinet", "1", "you", "see", "mug", "1", "plate", "2"]
    assert tokenizer.convert_ids_to_tokens(tokenizer.encode("zebra mug")) == [UNKNOWN, "mug"]


def test_checkpoint_folder_loads_with_the_auto_classes_and_tokenises_alike(tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = build_tokenizer(KNOWN, max_length=128)
    build_model(tokenizer, SIZE).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    rendered = loaded.apply_chat_template(CHAT, tokenize=True, return_dict=False)
    assert rendered == tokenizer.apply_chat_template(CHAT, tokenize=True, return_dict=False)
    assert AutoModelForCausalLM.from_pretrained(tmp_path).config.vocab_size == len(loaded)


def test_equal_seeds_give_equal_weights_and_leave_the_global_generator_alone():
    tokenizer, before = build_tokenizer(KNOWN), torch.get_rng_state()
    first, second, third = (build_model(tokenizer, SIZE, seed=seed).lm_head.weight for seed in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(first, second)
    assert not torch.equal(first, third)


def test_vocabulary_is_ordered_by_count_then_name():
    assert vocabulary(["b a1 b", "c the a1 b"]) == ["b", "a1", "c"]


LABELS = ['24" x 36"', "8gb ram | 256gb ssd", "1 fl oz (pack of 1)", "b-blue", "7.5 wide", "< prev", "b0gbdg6upi", "5"]


@pytest.mark.parametrize("label", LABELS)
def test_labels_to_click_on_come_back_as_they_were(label, tmp_path):
    from transformers import PreTrainedTokenizerFast

    page = f"Back to Search [SEP] size [SEP] {label.upper()} [SEP] Price: $23.23 [SEP] Buy Now"
    build_tokenizer(vocabulary([page, "choose"], SHOP), SHOP).save_pretrained(tmp_path)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(tmp_path)
    reply = f"<think> choose {label} </think> <action> click[{label}] </action>"
    assert tokenizer.decode(tokenizer.encode(reply)) == reply


def test_prices_lose_their_cents_and_sizes_keep_their_halves():
    found = words("size: 7.5, and price lower than 40.00 dollars [SEP] $9.6 to $100.0 [SEP] $1234.56", SHOP)
    assert found == ["size", "7.5", "and", "price", "lower", "than", "40.00", "dollars", "$9", "to", "$100", "$1234"]


@pytest.mark.parametrize("spelling", [PLAIN_WORDS, SHOP])
@given(text=st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cs"])))
def test_a_text_of_known_words_has_no_unknown_token(spelling, text):
    tokenizer = build_tokenizer(vocabulary([text], spelling), spelling)
    apart = len([*SPECIAL, *spelling.kept])
    spoken = [number for number in tokenizer.encode(text) if number >= apart]
    assert tokenizer.convert_ids_to_tokens(spoken) == words(text, spelling)

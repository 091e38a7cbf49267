from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("transformers", reason="needs the train extra")

from skillc_gym.envs.registry import warm_started
from skillc_gym.envs.warm_start import PLAIN_WORDS
from trainers.warmstart import PolicySize, build_model, build_tokenizer, vocabulary
from trainers.warmstart.policy import UNKNOWN, words

SHOP = warm_started("webshop")[1].spelling
CHAT = [
    {"role": "system", "content": "You play."},
    {"role": "user", "content": "On the cabinet 1, you see a mug 1, and a plate 2."},
    {"role": "assistant", "content": "<think> find mug </think> <action> take mug 1 </action>"},
]
WORDS = ["you", "play", "on", "cabinet", "see", "mug", "plate", "find", "take", "1", "2"]


def test_words_are_single_tokens_without_articles_and_punctuation_and_replies_come_back():
    tokenizer = build_tokenizer(WORDS)
    reply = CHAT[-1]["content"]
    assert tokenizer.decode(tokenizer.encode(reply)) == reply
    tokens = tokenizer.convert_ids_to_tokens(tokenizer.encode(CHAT[1]["content"]))
    assert tokens == ["on", "cabinet", "1", "you", "see", "mug", "1", "plate", "2"]
    assert tokenizer.convert_ids_to_tokens(tokenizer.encode("zebra mug")) == [UNKNOWN, "mug"]


def test_checkpoint_folder_loads_with_the_auto_classes_and_tokenises_alike(tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = build_tokenizer(WORDS, max_length=128)
    build_model(tokenizer, PolicySize(layers=1, width=16, heads=2, feed_forward=16)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    rendered = loaded.apply_chat_template(CHAT, tokenize=True, return_dict=False)
    assert rendered == tokenizer.apply_chat_template(CHAT, tokenize=True, return_dict=False)
    assert AutoModelForCausalLM.from_pretrained(tmp_path).config.vocab_size == len(loaded)


def test_equal_seeds_give_equal_weights_and_leave_the_global_generator_alone():
    import torch

    tokenizer = build_tokenizer(WORDS)
    size = PolicySize(layers=1, width=16, heads=2, feed_forward=16)
    before = torch.get_rng_state()
    first, second, third = (build_model(tokenizer, size, seed=seed).lm_head.weight for seed in (1, 1, 2))
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
    assert words("size: 7.5, and price lower than 40.00 dollars [SEP] $9.6 to $100.0 [SEP] $1234.56", SHOP) == [
        *("size", "7.5", "and", "price", "lower", "than", "40.00", "dollars", "$9", "to", "$100", "$1234")
    ]


@pytest.mark.parametrize("spelling", [PLAIN_WORDS, SHOP])
@given(text=st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cs"])))
def test_a_text_of_known_words_has_no_unknown_token(spelling, text):
    known = words(text, spelling)
    tokenizer = build_tokenizer(vocabulary([text], spelling), spelling)
    ids = tokenizer.encode(" ".join(known))
    assert tokenizer.unk_token_id not in ids
    assert len(ids) == len(known)

from __future__ import annotations

import pytest

pytest.importorskip("transformers", reason="needs the train extra")

from trainers.rollout.chat_encoder import ChatEncoder
from trainers.warmstart import CloningConfig, PolicySize, build_model, build_tokenizer, clone
from trainers.warmstart.cloning import IGNORED, tokenise_dialogue

WORDS = ["see", "take", "mug", "plate", "nothing"]
SIZE = PolicySize(layers=1, width=32, heads=2, feed_forward=32)


def chat(thing: str) -> list[dict[str, str]]:
    return [
        {"role": "user", "content": f"see {thing}"},
        {"role": "assistant", "content": f"<action> take {thing} </action>"},
        {"role": "user", "content": "nothing"},
        {"role": "assistant", "content": "<action> see </action>"},
    ]


def test_only_the_replies_carry_labels_with_their_end_token():
    tokenizer = build_tokenizer(WORDS)
    item = tokenise_dialogue(ChatEncoder(tokenizer), chat("mug"))
    labelled = tokenizer.convert_ids_to_tokens([label for label in item.labels if label != IGNORED])
    assert labelled == ["<action>", "take", "mug", "</action>", "<|end|>", "<action>", "see", "</action>", "<|end|>"]
    assert all(label in (IGNORED, token) for label, token in zip(item.labels, item.ids, strict=True))


def test_slips_are_context_that_is_neither_imitated_nor_predicted():
    tokenizer = build_tokenizer(WORDS)
    plain, slipped = (tokenise_dialogue(ChatEncoder(tokenizer), chat("mug"), slips) for slips in ((), {0}))
    assert plain.ids == slipped.ids
    labelled = tokenizer.convert_ids_to_tokens([label for label in slipped.labels if label != IGNORED])
    assert labelled == ["<action>", "see", "</action>", "<|end|>"]
    left_out = [token for token, slip in zip(slipped.ids, slipped.slips, strict=True) if slip]
    assert tokenizer.convert_ids_to_tokens(left_out) == ["<action>", "take", "mug", "</action>", "<|end|>"]
    assert not any(plain.slips)


def test_cloning_learns_to_copy_and_is_deterministic():
    tokenizer = build_tokenizer(WORDS)
    data = [tokenise_dialogue(ChatEncoder(tokenizer), chat(thing)) for thing in ("mug", "plate")] * 8
    config = CloningConfig(batches=60, batch_episodes=8, learning_rate=1e-2)
    runs = []
    for _ in range(2):
        model = build_model(tokenizer, SIZE)
        runs.append(clone(model, data, config, pad_token_id=tokenizer.pad_token_id))
    assert runs[0] == runs[1]
    assert runs[0][-1] < 0.1 < 1.0 < runs[0][0]


def test_batches_hold_every_dialogue_once_per_epoch():
    import numpy as np

    from trainers.warmstart.cloning import _epoch

    batches = _epoch(np.arange(100) % 17, 8, np.random.default_rng(0))
    assert sorted(index for batch in batches for index in batch) == list(range(100))

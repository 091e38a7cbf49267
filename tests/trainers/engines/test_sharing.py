"""Engines that compute less, by lines that conversations share and by drafts, beside the one that does not."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tests.trainers.conftest import make_model
from tests.trainers.engines.test_transformers import EOS, assert_uncached, shapes_of_passes
from trainers.engines import Request, Sampling
from trainers.engines.batching import Batch
from trainers.engines.drafts import Drafts
from trainers.engines.sharing import SharingEngine
from trainers.engines.transformers import TransformersEngine
from trainers.models.segments import _attention, segments_of


def play(engine: Any, temperature: float) -> list[Any]:
    """Three groups of five: what each hears depends on what it said, so members of a group part or stay together."""
    starts = np.random.default_rng(0).integers(2, 40, (3, 9)).tolist()
    talks, said = {(g, m): starts[g] for g in range(3) for m in range(5)}, []
    for turn in range(4):
        going = [key for key in talks if sum(key) % 4 != 3 or turn < 2]
        requests = [Request(key, talks[key], 50 * key[0] + key[1], 2 + (key[1] // 3 + turn) % 5, turn) for key in going]
        for key, reply in zip(going, engine.generate(requests, Sampling(temperature)), strict=True):
            said.append((talks[key], reply))
            heard = np.random.default_rng([turn, *reply.token_ids]).integers(2, 40, 4 + turn).tolist()
            talks[key] = talks[key] + reply.token_ids + heard
        engine.release([key for key in going if turn == 1 and sum(key) % 4 == 3])
    return said


@pytest.mark.parametrize("temperature", [0.2, 1.0])
@pytest.mark.parametrize("limits", [{}, {"max_rows": 15}, {"max_rows": 4}, {"prefill_tokens": 16}])
@pytest.mark.parametrize(("engine", "drafted"), [(SharingEngine, 0), (SharingEngine, 3), (TransformersEngine, 4)])
def test_replies_are_those_without_sharing_and_drafts(
    tiny_model: Any, temperature: float, limits: Any, engine: Any, drafted: int
) -> None:
    plain = play(TransformersEngine(tiny_model, [EOS]), temperature)
    found = play(engine(tiny_model, [EOS], draft_tokens=drafted, **limits), temperature)
    assert [reply.token_ids for _, reply in found] == [reply.token_ids for _, reply in plain]
    assert_uncached(tiny_model, found, temperature)


def test_what_is_shared_is_computed_once(tiny_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = shapes_of_passes(tiny_model, monkeypatch)
    play(TransformersEngine(tiny_model, [EOS]), 1e-3)
    apart = sum(map(math.prod, shapes))
    shapes.clear()
    said = [tuple(prompt + reply.token_ids) for prompt, reply in play(SharingEngine(tiny_model, [EOS]), 1e-3)]
    beginnings = {each[:n] for each in said for n in range(len(each))}
    # Rows that have ended are carried along for a while, and a prompt's last token is always computed.
    assert len(beginnings) - 1 <= sum(map(math.prod, shapes)) < 0.6 * apart


def test_values_need_not_be_as_wide_as_keys() -> None:
    draw = torch.Generator().manual_seed(1)
    shapes = ((1, 4, 6, 8), (1, 2, 6, 8), (1, 2, 6, 5))
    parents, mask = np.array([-1, 0, 1, 2, 1, 4]), torch.ones(6, 6, dtype=torch.bool).tril()
    mask[4:, 2:4] = False  # two ends of one beginning
    made = [torch.randn(*shape, generator=draw, dtype=torch.float64) for shape in shapes]
    found, expected = ([each.clone().requires_grad_() for each in made] for _ in range(2))
    module = SimpleNamespace(num_key_value_groups=2, is_causal=True)
    segments = segments_of(parents, torch.device("cpu"))
    seen, _ = _attention(module, *found, None, segments=segments)
    keys, values = (each.repeat_interleave(2, 1) for each in expected[1:])
    plain = torch.nn.functional.scaled_dot_product_attention(expected[0], keys, values, attn_mask=mask)
    assert torch.allclose(seen, plain.transpose(1, 2), atol=1e-6)
    for each in (seen, plain.transpose(1, 2)):
        each.square().sum().backward()
    assert all(torch.allclose(a.grad, b.grad, atol=1e-5) for a, b in zip(found, expected, strict=True))


def test_a_conversation_that_has_ended_goes_on_where_it_was_though_its_line_went_on(tiny_model: Any) -> None:
    engine = SharingEngine(tiny_model, [])
    short, long = engine.generate([Request("a", [5, 6], 0, 2), Request("b", [5, 6], 0, 9)], Sampling(greedy=True))
    assert long.token_ids[:2] == short.token_ids
    prompts = {"b": [5, 6, *long.token_ids, 9, 9], "a": [5, 6, *short.token_ids, 8, 8]}
    for keys in ("ab", "ba"):
        said = engine.generate([Request(key, prompts[key], 0, 4) for key in keys], Sampling(greedy=True))
        assert_uncached(tiny_model, [(prompts[key], reply) for key, reply in zip(keys, said, strict=True)])


def test_lines_without_conversations_are_forgotten(tiny_model: Any) -> None:
    """Fifteen conversations need fifteen rows at most, however often their lines part."""
    engine = SharingEngine(tiny_model, [EOS])
    for _ in range(2):
        play(engine, 1.0)
        engine.release([(g, m) for g in range(3) for m in range(5)])
    assert len(engine._slots) <= 15


def test_rows_of_lines_that_are_gone_are_used_again(tiny_model: Any) -> None:
    """Two sets of conversations speak in turn: the cache stays as large as both need."""
    engine = SharingEngine(tiny_model, [], max_rows=8)
    talks = {(s, m): [5 + s, 6, 7] for s in range(2) for m in range(4)}
    for turn in range(30):
        requests = [Request(key, talks[key], key[1], 2, turn=turn) for key in talks if key[0] == turn % 2]
        for request, reply in zip(requests, engine.generate(requests, Sampling()), strict=True):
            talks[request.key] = [*talks[request.key], *reply.token_ids, 9][:40]
    assert len(engine._slots) <= 24


def proposed(drafts: Drafts, prompt: int, said: int) -> list[int]:
    batch = Batch([Request("a", [prompt], 0, 9)])
    batch.add(np.array([0]), np.array([said]), np.zeros(1), np.array([EOS]))
    return drafts.propose(batch, np.array([0]))[0].tolist()


def test_the_longest_context_that_is_known_decides_and_nothing_where_votes_are_tied() -> None:
    drafts = Drafts(1)
    for prompt, reply in ((5, [2, 3]), (5, [2, 3]), (5, [2, 3]), (6, [2, 4])):
        drafts.learn(np.array([prompt]), reply)
    assert proposed(drafts, 6, 2) == [4]
    assert proposed(drafts, 9, 2) == [3]
    for _ in range(3):
        drafts.learn(np.array([5]), [2, 4])
    assert proposed(drafts, 5, 2) == []
    drafts.learn(np.array([5]), [2, 4])
    assert proposed(drafts, 5, 2) == [4]


@pytest.mark.parametrize("engine", [TransformersEngine, SharingEngine])
def test_what_is_said_again_takes_few_passes(engine: type, tiny_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = shapes_of_passes(tiny_model, monkeypatch)
    generates = engine(tiny_model, [], draft_tokens=3)
    first, again = (generates.generate([Request(n, [5, 6, 7], n, 13)], Sampling(greedy=True))[0] for n in range(2))
    assert first.token_ids == again.token_ids
    assert shapes[-4:] == [(1, 3), (1, 4), (1, 4), (1, 4)]
    generates.reset()
    shapes.clear()
    generates.generate([Request(2, [5, 6, 7], 2, 13)], Sampling(greedy=True))
    assert shapes == [(1, 3), *[(1, 1)] * 12]


@pytest.mark.parametrize("engine", [TransformersEngine, SharingEngine])
@pytest.mark.parametrize("draft_tokens", [0, 4])
def test_no_pass_reaches_beyond_the_models_limit(engine: type, draft_tokens: int) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"n_positions": 16, "n_embd": 16, "n_layer": 1, "n_head": 2, "initializer_range": 0.5}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=6, eos_token_id=1, bos_token_id=None, **sizes)).eval()
    generates, plain = engine(model, [EOS], draft_tokens=draft_tokens), TransformersEngine(model, [EOS])
    for n in range(4):
        requests = [Request((n, i), [2, 3, 4][: 1 + i % 3], i, 13) for i in range(9)]
        replies = generates.generate(requests, Sampling(0.2))
        assert [r.token_ids for r in replies] == [r.token_ids for r in plain.generate(requests, Sampling(0.2))]
        generates.release([request.key for request in requests])
        plain.reset()


def test_one_at_its_limit_does_not_keep_others_from_drafts(tiny_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    generates = TransformersEngine(tiny_model, [], draft_tokens=3)
    generates.generate([Request("first", [5, 6, 7], 0, 13)], Sampling(greedy=True))
    shapes = shapes_of_passes(tiny_model, monkeypatch)
    generates.generate([Request("long", [8] * 30, 0, 1), Request("again", [5, 6, 7], 0, 13)], Sampling(greedy=True))
    assert shapes[-3:] == [(1, 4)] * 3


def test_what_one_has_said_is_not_taken_for_what_its_row_went_on_with(tiny_model: Any) -> None:
    """One ends inside a draft that the other refuses: their row then holds the other's tokens, not its own."""
    prompt = [5, 6, 7]
    requests = [Request("ends", prompt, 1, 4), Request("goes on", prompt, 4, 9)]
    ends, goes_on = TransformersEngine(tiny_model, []).generate(requests, Sampling(0.5))
    assert ends.token_ids[:2] == goes_on.token_ids[:2]
    assert ends.token_ids[2] != goes_on.token_ids[2]
    engine = SharingEngine(tiny_model, [], draft_tokens=4)
    engine._drafts.learn(np.array(prompt), ends.token_ids)
    assert [said.token_ids for said in engine.generate(requests, Sampling(0.5))] == [ends.token_ids, goes_on.token_ids]
    prompts = {"ends": [*prompt, *ends.token_ids, 9], "goes on": [*prompt, *goes_on.token_ids, 9]}
    again = engine.generate([Request(key, own, 0, 4) for key, own in prompts.items()], Sampling())
    assert_uncached(tiny_model, list(zip(prompts.values(), again, strict=True)))


@pytest.mark.parametrize("seed", range(6))
def test_many_that_say_much_alike_part_and_stay_as_they_should(seed: int) -> None:
    """Five words and twelve members: drafts are confirmed, refused and ended in all at once."""
    model, rng = make_model(5), np.random.default_rng(seed)
    talks = dict.fromkeys(range(12), rng.integers(0, 5, 4).tolist())
    shared, plain = SharingEngine(model, [EOS], draft_tokens=1 + 2 * (seed % 3)), TransformersEngine(model, [EOS])
    for turn in range(3):
        going = [member for member in talks if rng.random() < 0.8] or [0]
        requests = [Request(m, talks[m], 100 * seed + m, int(rng.integers(1, 9)), turn=turn) for m in going]
        replies = shared.generate(requests, Sampling(0.5))
        assert [r.token_ids for r in replies] == [r.token_ids for r in plain.generate(requests, Sampling(0.5))]
        assert_uncached(model, list(zip([talks[m] for m in going], replies, strict=True)), 0.5)
        for member, reply in zip(going, replies, strict=True):
            talks[member] = [*talks[member], *reply.token_ids, *([2, 3] if rng.random() < 0.7 else [4])]

"""The engine that computes what conversations share once, beside the one that does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.trainers.engines.test_transformers import EOS, assert_uncached
from trainers.engines import Request, Sampling
from trainers.engines.sharing import SharingEngine
from trainers.engines.transformers import TransformersEngine


def play(engine: Any, *, turns: int = 4, temperature: float = 0.2, release: bool = False) -> list[Any]:
    """Three groups of five: what each hears depends on what it said, so members of a group part or stay together."""
    rng = np.random.default_rng(0)
    talks = {(g, m): rng.integers(2, 40, 9).tolist() if not m else [] for g in range(3) for m in range(5)}
    talks = {(g, m): list(talks[g, 0]) for g, m in talks}
    said = []
    for turn in range(turns):
        going = [key for key in talks if sum(key) % 4 != 3 or turn < 2]
        requests = [
            Request(key, list(talks[key]), int(50 * key[0] + key[1]), 2 + (key[1] // 3 + turn) % 5, turn=turn)
            for key in going
        ]
        for key, reply in zip(going, engine.generate(requests, Sampling(temperature)), strict=True):
            said.append((list(talks[key]), reply))
            heard = np.random.default_rng([turn, *reply.token_ids]).integers(2, 40, 4 + turn).tolist()
            talks[key] = talks[key] + reply.token_ids + heard
        if release:
            engine.release([key for key in going if turn == 1 and sum(key) % 4 == 3])
    return said


def counted(model: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tokens of every forward pass of a model from now on."""
    sizes: list[int] = []
    forward = model.forward

    def counting(*args: Any, **options: Any) -> Any:
        sizes.append(options["input_ids"].numel())
        return forward(*args, **options)

    monkeypatch.setattr(model, "forward", counting)
    return sizes


@pytest.mark.parametrize("temperature", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("limits", [{}, {"max_rows": 15}, {"max_rows": 4}, {"prefill_tokens": 16}])
@pytest.mark.parametrize("draft_tokens", [0, 1, 3])
def test_replies_are_those_without_sharing(tiny_model: Any, temperature: float, limits: Any, draft_tokens: int) -> None:
    apart = play(TransformersEngine(tiny_model, [EOS]), temperature=temperature)
    shared = play(
        SharingEngine(tiny_model, [EOS], draft_tokens=draft_tokens, **limits), temperature=temperature, release=True
    )
    assert [reply.token_ids for _, reply in shared] == [reply.token_ids for _, reply in apart]
    assert_uncached(tiny_model, shared, temperature)


def test_what_is_shared_is_computed_once(tiny_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = counted(tiny_model, monkeypatch)
    play(TransformersEngine(tiny_model, [EOS]), temperature=1e-3)
    apart = sum(sizes)
    sizes.clear()
    said = play(SharingEngine(tiny_model, [EOS]), temperature=1e-3)
    beginnings = {
        tuple((prompt + reply.token_ids)[:n]) for prompt, reply in said for n in range(len(prompt + reply.token_ids))
    }
    # Rows that have ended are carried along for a while, and a prompt's last token is always computed.
    assert len(beginnings) - 1 <= sum(sizes) < 0.6 * apart


def test_greedy_twins_never_part(tiny_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = counted(tiny_model, monkeypatch)
    requests = [Request(i, [5, 6, 7], i, 6) for i in range(8)]
    replies = SharingEngine(tiny_model, []).generate(requests, Sampling(greedy=True))
    assert sizes == [3, *[1] * 5]
    assert all(reply == replies[0] for reply in replies)


def test_a_conversation_that_has_ended_goes_on_where_it_was(tiny_model: Any) -> None:
    """One that stops early keeps its beginning while its line goes on with the others."""
    engine = SharingEngine(tiny_model, [])
    short, long = engine.generate([Request("a", [5, 6], 0, 2), Request("b", [5, 6], 0, 9)], Sampling(greedy=True))
    assert long.token_ids[:2] == short.token_ids
    prompts = {"b": [5, 6, *long.token_ids, 9, 9], "a": [5, 6, *short.token_ids, 8, 8]}
    for first, second in (("a", "b"), ("b", "a")):
        both = [Request(key, prompts[key], 0, 4) for key in (first, second)]
        said = engine.generate(both, Sampling(greedy=True))
        assert_uncached(tiny_model, [(prompts[key], reply) for key, reply in zip((first, second), said, strict=True)])


def test_rows_of_lines_that_are_gone_are_used_again(tiny_model: Any) -> None:
    """Two sets of conversations speak in turn: the cache stays as large as both need."""
    engine = SharingEngine(tiny_model, [], max_rows=8)
    talks = {(s, m): [5 + s, 6, 7] for s in range(2) for m in range(4)}
    for turn in range(30):
        requests = [Request(key, talks[key], key[1], 2, turn=turn) for key in talks if key[0] == turn % 2]
        for request, reply in zip(requests, engine.generate(requests, Sampling()), strict=True):
            talks[request.key] = [*talks[request.key], *reply.token_ids, 9][:40]
    assert len(engine._slots) <= 24

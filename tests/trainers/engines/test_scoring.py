"""Choosing among replies: the scores are those of plain forward passes, one reply at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError
from tests.trainers.conftest import make_model
from tests.trainers.engines.test_transformers import uncached_logprobs
from trainers.engines import Generation, Request, Sampling
from trainers.engines.registry import engine_spec
from trainers.engines.scoring import ScoringEngine, ScoringOptions, TokenTree
from trainers.rollout.policies import possible_commands

EOS = 1
Replies = list[list[int]]


def requests(*, rows: int, seed: int) -> list[Request]:
    """Prompts of several lengths; replies of several lengths with beginnings in common."""
    rng = np.random.default_rng(seed)
    made = []
    for row in range(rows):
        start = rng.integers(2, 40, 2).tolist()
        replies = [[*start[: k % 3], *rng.integers(2, 40, rng.integers(0, 4)).tolist(), EOS] for k in range(3 + row)]
        made.append(Request(row, rng.integers(2, 40, rng.integers(3, 30)).tolist(), 100 + row, choices=replies))
    return made


def plain_scores(model: Any, request: Request, *, mean: bool) -> list[float]:
    found = [uncached_logprobs(model, list(request.prompt_ids), Generation(list(r)), 1.0) for r in request.choices]
    return [float(each.mean() if mean else each.sum()) for each in found]


@pytest.mark.parametrize("normalise", ["mean", "sum"])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_the_reply_with_the_best_score_is_taken(normalise: Any, attention: str) -> None:
    model = make_model(40, kv_heads=1)
    model.set_attn_implementation(attention)
    engine = ScoringEngine(model, [EOS], ScoringOptions(normalise=normalise))
    asked = requests(rows=6, seed=0)
    for turn in range(3):
        chosen = engine.generate(asked, Sampling(greedy=True))
        for request, reply in zip(asked, chosen, strict=True):
            scores = plain_scores(model, request, mean=normalise == "mean")
            assert list(request.choices[int(np.argmax(scores))]) == reply.token_ids
            expected = uncached_logprobs(model, list(request.prompt_ids), reply, 1.0)
            assert torch.tensor(reply.logprobs) == pytest.approx(expected.numpy(), abs=1e-4)
        # The conversations grow, so that the next turn's prompts lie in the cache.
        later = {request.key: request for request in requests(rows=6, seed=turn + 1)}
        asked = [
            Request(r.key, [*r.prompt_ids, *reply.token_ids, 3, 4], r.seed, choices=later[r.key].choices)
            for r, reply in zip(asked, chosen, strict=True)
        ]


def test_draws_follow_the_softmax_of_the_scores_and_the_seed(tiny_model: Any) -> None:
    engine = ScoringEngine(tiny_model, [EOS], ScoringOptions(normalise="sum"))
    request = requests(rows=1, seed=0)[0]
    asked = [Request(i, request.prompt_ids, i, choices=request.choices) for i in range(600)]
    replies = [reply.token_ids for reply in engine.generate(asked, Sampling(2.0))]
    expected = torch.tensor(plain_scores(tiny_model, request, mean=False)).div(2.0).softmax(-1)
    for choice, share in zip(request.choices, expected, strict=True):
        assert np.mean([reply == list(choice) for reply in replies]) == pytest.approx(float(share), abs=0.07)
    assert [reply.token_ids for reply in engine.generate(asked[5:9], Sampling(2.0))] == replies[5:9]


def test_replies_over_the_limit_are_left_out_and_words_of_its_own_refused(tiny_model: Any) -> None:
    engine = ScoringEngine(tiny_model, [EOS], ScoringOptions())
    (reply,) = engine.generate([Request(0, [5], 0, 2, choices=[[2, 3, EOS], [7, EOS]])], Sampling(greedy=True))
    assert reply.token_ids == [7, EOS]
    with pytest.raises(ConfigError, match="chooses among the commands"):
        engine.generate([Request(0, [5], 0)], Sampling())
    with pytest.raises(ConfigError, match="cannot train"):
        engine_spec("scoring").for_trainer(tiny_model)


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), min_size=1, max_size=8))
def test_a_tree_holds_every_reply(replies: Replies) -> None:
    tree = TokenTree.of(replies)
    seen = tree.ancestors()
    for reply, path in zip(replies, tree.paths, strict=True):
        assert tree.tokens[path].tolist() == reply
        assert tree.parents[path].tolist() == [-1, *path[:-1]]
        assert tree.depths[path].tolist() == list(range(len(reply)))
        for node in path[:-1]:
            assert node < tree.inner
            assert np.flatnonzero(seen[node]).tolist() == sorted(path[: int(tree.depths[node]) + 1])
    assert len(tree.tokens) == len({tuple(reply[: i + 1]) for reply in replies for i in range(len(reply))})


def test_the_goal_stands_for_words_of_ones_own() -> None:
    info = {"goal": "find a \\1 red mug", "admissible_commands": ["search[<query>]", "click[b]", "click[b]"]}
    assert possible_commands(info) == ["search[find a \\1 red mug]", "click[b]"]

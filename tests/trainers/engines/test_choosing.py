"""Choosing among possible replies: drawn along their tree, and trained on; or scored, each as a whole."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError
from tests.trainers.conftest import make_model
from tests.trainers.engines.test_transformers import EOS, assert_uncached, shapes_of_passes, uncached_logprobs
from tests.trainers.toys import next_batches, start_learner, toy_config
from trainers.engines import Generation, Request, Sampling
from trainers.engines.choosing import ChoosingOptions, TrieEngine
from trainers.engines.scoring import ScoringEngine, ScoringOptions, TokenTree
from trainers.engines.sharing import SharingEngine
from trainers.engines.transformers import TransformersEngine
from trainers.evaluation.policy import evaluate_policy
from trainers.rollout.policies import possible_commands
from trainers.rollout.rows import choices_of, own_tokens
from trainers.training import run


def requests(*, rows: int, seed: int) -> list[Request]:
    """Prompts of several lengths; replies of several lengths with beginnings in common."""
    rng = np.random.default_rng(seed)
    made = []
    for row in range(rows):
        start = rng.integers(2, 40, 2).tolist()
        replies = [[*start[: k % 3], *rng.integers(2, 40, rng.integers(0, 4)).tolist(), EOS] for k in range(3 + row)]
        made.append(Request(row, rng.integers(2, 40, rng.integers(3, 30)).tolist(), 100 + row, choices=replies))
    return made


def going_on(asked: Sequence[Request], replies: Sequence[Generation], seed: int) -> list[Request]:
    """The conversations behind these replies, whose prompts lie in the cache; with other choices."""
    return [
        Request(r.key, [*r.prompt_ids, *reply.token_ids, 3, 4], r.seed, choices=new.choices)
        for r, reply, new in zip(asked, replies, requests(rows=len(asked), seed=seed), strict=True)
    ]


def plain(model: Any, request: Request, reply: Generation, temperature: float) -> list[float]:
    """The definition: a plain pass, and at every token the softmax over what a possible reply goes on with."""
    with torch.no_grad():
        ids = torch.tensor([[*request.prompt_ids, *reply.token_ids]])
        logits = model(ids).logits[0, len(request.prompt_ids) - 1 : -1] / temperature
    found = []
    for place, token in enumerate(reply.token_ids):
        begun = [list(each) for each in request.choices if list(each[:place]) == reply.token_ids[:place]]
        following = sorted({each[place] for each in begun})
        assert reply.allowed[place] == tuple(following)
        found.append(float(logits[place, following].log_softmax(-1)[following.index(token)]))
    return found


@pytest.mark.parametrize("below", [TransformersEngine, SharingEngine])
def test_log_probabilities_are_those_of_a_plain_pass_over_what_is_possible(tiny_model: Any, below: Any) -> None:
    engine = TrieEngine(below(tiny_model, [EOS]))
    asked = requests(rows=6, seed=0)
    for turn in range(4):
        replies = engine.generate(asked, Sampling(0.7))
        for request, reply in zip(asked, replies, strict=True):
            assert reply.token_ids in [list(each) for each in request.choices]
            assert reply.logprobs == pytest.approx(plain(tiny_model, request, reply, 0.7), abs=1e-4)
        asked = going_on(asked, replies, seed=turn + 1)


@pytest.mark.parametrize("options", [{}, {"max_rows": 2}, {"prefill_tokens": 8}])
def test_draws_do_not_depend_on_neighbours(tiny_model: Any, options: Any) -> None:
    asked = [
        Request((i, r.key), r.prompt_ids, 7 * i, choices=r.choices) for i in range(5) for r in requests(rows=4, seed=1)
    ]
    together = TrieEngine(SharingEngine(tiny_model, [EOS], **options)).generate(asked, Sampling())
    alone = [TrieEngine(TransformersEngine(tiny_model, [EOS])).generate([request], Sampling())[0] for request in asked]
    assert [reply.token_ids for reply in together] == [reply.token_ids for reply in alone]


def test_a_pass_is_made_where_replies_part_and_nowhere_else(tiny_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = shapes_of_passes(tiny_model, monkeypatch)
    engine = TrieEngine(TransformersEngine(tiny_model, [EOS]))
    (reply,) = engine.generate([Request(0, [5, 6], 0, choices=[[9, 8, 7, 6, EOS], [9, 8, 7, 5, 4, EOS]])], Sampling())
    assert shapes == [(1, 2 + 3)]
    assert own_tokens(reply) == [0, 0, 0, 1, *[0] * (len(reply.token_ids) - 4)]
    assert choices_of(reply) == ((5, 6),)
    (forced,) = engine.generate([Request(1, [5, 6], 0, choices=[[9, EOS]])], Sampling())
    assert (forced.token_ids, forced.logprobs, len(shapes)) == ([9, EOS], [0.0, 0.0], 1)


def test_a_reply_is_always_possible(tiny_model: Any) -> None:
    engine = TrieEngine(TransformersEngine(tiny_model, [EOS]))
    for sampling in (Sampling(greedy=True), Sampling(1e-6), Sampling(top_k=1), Sampling(5.0, top_p=0.1, min_p=0.9)):
        for request, limit in itertools.product(requests(rows=5, seed=2), (1, 2, 64)):
            (reply,) = engine.generate([Request(0, request.prompt_ids, 0, limit, choices=request.choices)], sampling)
            shortest = min(map(len, request.choices))
            assert reply.token_ids in [list(each) for each in request.choices if len(each) <= max(limit, shortest)]


def test_words_without_choices_are_generated_below_and_commands_are_worded(tiny_model: Any) -> None:
    free = [Request(0, [5, 6], 1, 6)]
    engine = TrieEngine(TransformersEngine(tiny_model, [EOS]), ChoosingOptions(reply="go: {command}", never=["help"]))
    assert engine.generate(free, Sampling()) == TransformersEngine(tiny_model, [EOS]).generate(free, Sampling())
    with pytest.raises(ConfigError, match="all of them or none"):
        engine.generate([*free, Request(1, [5], 1, choices=[[3, EOS]])], Sampling())
    assert engine.worded(["help", "look"]) == ["go: look"]
    assert engine.worded(["help"]) == ["go: help"]


# Training ------------------------------------------------------------------------------------------------------------


def choosing(folder: Path, run_folder: Path, **changes: Any) -> Any:
    settings = {"engine": "choosing", "max_reply_tokens": 8, "env_options": {"turns": 3}, "kl_coef": 0.0}
    return toy_config(folder, run=str(run_folder), **{**settings, **changes})


@pytest.mark.parametrize("changes", [{}, {"share_prefixes": True}, {"form": "window:2"}, {"temperature": 0.6}])
def test_the_trainer_gives_the_engines_probabilities_and_forced_tokens_no_loss(
    toy_folder: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    pytest.importorskip("trl", reason="needs the extra 'train'")
    learner = start_learner(choosing(toy_folder, tmp_path / "run", **changes))
    learner.objective.has_no_gradient = lambda row: False
    for batch in next_batches(learner):
        figures = learner.backend.score(batch.tokens, {"logprobs", "entropies", "logits"})
        # Of `<action> WORD </action> <end>` the word alone is a choice, among eight.
        turns = sum(len(row.row.reply_lengths) for row in batch.rows)
        assert int(batch.tokens.mask.sum()) == turns
        assert batch.tokens.allowed is not None
        assert batch.tokens.allowed.shape == (turns, 8)
        assert torch.allclose(figures["logprobs"], batch.figures["sampling_logprobs"], atol=1e-4)
        entropies = batch.tokens.take(figures["entropies"])
        assert (entropies <= np.log(8) + 1e-5).all()
        every = figures["logits"].log_softmax(-1)
        assert torch.allclose(entropies, -(every.exp() * every).sum(-1), atol=1e-5)
        assert torch.equal((every.exp() > 0).sum(-1), torch.full((turns,), 8))


METHODS = ("contrastive_relabelling", "context_distillation", "skillc+forward_distillation", "sdar", "gigpo")


@pytest.mark.parametrize("method", METHODS)
def test_methods_that_teach_and_relabel_keep_the_choices(toy_folder: Path, tmp_path: Path, method: str) -> None:
    pytest.importorskip("trl", reason="needs the extra 'train'")
    # One turn, so that one draw in eight wins and there is something to relabel.
    settings = {"kl_coef": 0.05, "num_minibatches": 2, "group_size": 8, "env_options": {"turns": 1}}
    config = choosing(toy_folder, tmp_path / "run", method=method, steps=2, **settings)
    trained = [record for record in run(config).metrics if record["event"] == "train"]
    assert all(np.isfinite(record["loss"]) for record in trained)
    assert all(0 < record["entropy"] < np.log(8) + 1e-5 for record in trained)
    assert all(record.get("extra_rows", 1) for record in trained)


@pytest.mark.parametrize("engine", ["choosing", "scoring"])
def test_an_evaluation_acts_possibly_in_every_turn(toy_folder: Path, engine: str) -> None:
    config = toy_config(toy_folder, engine=engine, max_reply_tokens=8, env_options={"turns": 3})
    turns = [turn for episode in evaluate_policy(config, per_type=1).paired.episodes for turn in episode.turns]
    assert turns
    assert all(turn.action_valid and turn.format_valid for turn in turns)
    assert turns[0].reply.startswith("<action>")


# Scoring -------------------------------------------------------------------------------------------------------------


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
        best = [int(np.argmax(plain_scores(model, request, mean=normalise == "mean"))) for request in asked]
        assert [reply.token_ids for reply in chosen] == [r.choices[i] for r, i in zip(asked, best, strict=True)]
        assert_uncached(model, [(list(r.prompt_ids), reply) for r, reply in zip(asked, chosen, strict=True)])
        asked = going_on(asked, chosen, seed=turn + 1)


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


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), min_size=1, max_size=8))
def test_a_tree_holds_every_reply(replies: list[list[int]]) -> None:
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
    sizes = {"goal": "a rug", "admissible_commands": ["click[<em>]", "say <word>"], "clickables": ["<em>"]}
    assert possible_commands(sizes) == ["click[<em>]", "say a rug"], "what can be clicked is whole as it is"

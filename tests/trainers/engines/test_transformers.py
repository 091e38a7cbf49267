"""The engine over transformers, random numbers by seed and counter, and what may be drawn."""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError
from tests.trainers.conftest import make_model
from trainers.config import TrainConfig
from trainers.engines import CheckpointModel, Generation, Request, Sampling, engine_spec
from trainers.engines.batching import chunks_by_length, draw, likely_tokens
from trainers.engines.random import derive_seed, uniforms
from trainers.engines.transformers import TransformersEngine
from trainers.models import segments

EOS = 1


def converse(engine: Any, *, rows: int = 5, turns: int = 4, temperature: float = 1.0) -> list[Any]:
    """Random conversations of ragged lengths; returns (prompt, generation) of every reply."""
    rng, sampling = np.random.default_rng(0), Sampling(temperature)
    talks = {row: rng.integers(2, 40, rng.integers(3, 30)).tolist() for row in range(rows)}
    said = []
    for turn in range(turns):
        alive = [row for row in talks if not (row % 3 == 1 and turn > row % 4)]
        requests = [Request(row, list(talks[row]), 100 + row, int(rng.integers(1, 6))) for row in alive]
        for row, reply in zip(alive, engine.generate(requests, sampling), strict=True):
            said.append((list(talks[row]), reply))
            talks[row] += reply.token_ids + rng.integers(2, 40, rng.integers(1, 12)).tolist()
    return said


def uncached_logprobs(model: Any, prompt: list[int], reply: Generation, temperature: float) -> torch.Tensor:
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([prompt + reply.token_ids])).logits[0, len(prompt) - 1 : -1] / temperature
    return logits.log_softmax(-1).gather(-1, torch.tensor(reply.token_ids)[:, None])[:, 0]


def shapes_of_passes(model: Any, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shape of the tokens of every forward pass of a model from now on."""
    shapes: list[tuple[int, ...]] = []
    forward = model.forward

    def noting(*args: Any, **options: Any) -> Any:
        shapes.append(tuple(options["input_ids"].shape))
        return forward(*args, **options)

    monkeypatch.setattr(model, "forward", noting)
    return shapes


def assert_uncached(model: Any, said: list[Any], temperature: float = 1.0) -> None:
    for prompt, reply in said:
        expected = uncached_logprobs(model, prompt, reply, temperature)
        assert torch.tensor(reply.logprobs) == pytest.approx(expected.numpy(), abs=1e-4)


@pytest.mark.parametrize("temperature", [1.0, 0.4])
@pytest.mark.parametrize("options", [{"max_rows": 4}, {"prefill_tokens": 16}])
def test_logprobs_equal_an_uncached_forward_pass_and_small_limits_change_nothing(
    tiny_model: Any, temperature: float, options: dict[str, int]
) -> None:
    plain, limited = (
        converse(TransformersEngine(tiny_model, [EOS], **limits), rows=9, turns=6, temperature=temperature)
        for limits in ({}, options)
    )
    assert [reply.token_ids for _, reply in plain] == [reply.token_ids for _, reply in limited]
    for said in (plain, limited):
        assert_uncached(tiny_model, said, temperature)


def family(name: str, **options: Any) -> Any:
    import transformers

    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    ends = {"eos_token_id": 1, "pad_token_id": 0, "bos_token_id": None}
    config = getattr(transformers, f"{name}Config")(vocab_size=40, num_key_value_heads=2, **ends, **sizes, **options)
    return getattr(transformers, f"{name}ForCausalLM")(config).eval()


MODELS: dict[str, Any] = {
    "shared key heads": lambda: make_model(40, kv_heads=1),
    "sliding windows": lambda: make_model(40, use_sliding_window=True, sliding_window=7, max_window_layers=1),
    "Llama": lambda: family("Llama"),
    "Qwen3": lambda: family("Qwen3", head_dim=8),
    "windows of all layers": lambda: family("Mistral", sliding_window=7, initializer_range=0.3),
}


@pytest.mark.parametrize("kind", MODELS)
def test_models_of_other_kinds_and_attentions_which_keep_their_mode(kind: str) -> None:
    model = MODELS[kind]().train()
    plain = deepcopy(model).eval()  # with the attention of transformers: the engine's takes shared keys as they lie
    kinds = getattr(plain.config, "layer_types", ())  # Mistral's configuration has none
    assert ("sliding_attention" in kinds) == (kind == "sliding windows")
    assert_uncached(plain, converse(TransformersEngine(model, [EOS])))
    assert model.training
    plain.set_attn_implementation("eager")
    assert_uncached(plain, converse(TransformersEngine(plain, [EOS])))


@pytest.mark.parametrize("declared", [[EOS, 7], 7])
def test_a_reply_ends_at_every_end_that_the_model_declares(declared: Any) -> None:
    model = make_model(40)
    model.generation_config.eos_token_id = declared
    checkpoint = CheckpointModel([EOS], TrainConfig(model="m"), lambda: model)
    engine = engine_spec("transformers").for_checkpoint(checkpoint)
    assert engine._eos.tolist() == [EOS, 7]


def test_grouped_key_heads_in_narrow_numbers_and_as_a_kernel_lays_them_out(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = torch.Generator().manual_seed(3)
    query, key, value = (torch.randn(3, heads, n, 16, generator=draw) for heads, n in ((4, 5), (2, 9), (2, 9)))
    mask = torch.rand(3, 1, 5, 9, generator=draw) < 0.7
    mask[0, 0, 0] = False  # padding sees nothing, and must not spoil the rest
    seeing, kernel, calls = mask[:, 0].any(-1), torch.nn.functional.scaled_dot_product_attention, list[bool]()
    shared = [each.repeat_interleave(2, 1) for each in (key, value)]
    expected = kernel(query, *shared, attn_mask=mask).transpose(1, 2)

    def swapped(query: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
        """Tokens before heads, as the memory-efficient kernel of a GPU has them."""
        calls.append(query.requires_grad)
        return kernel(query, *args, **options).transpose(1, 2).contiguous().transpose(1, 2)

    monkeypatch.setattr(segments, "scaled_dot_product_attention", swapped)
    assert torch.allclose(segments._folded(query, key, value, mask)[seeing], expected[seeing], atol=1e-5)
    narrow = [each.bfloat16() for each in (query, key, value)]
    weighed = torch.zeros(mask.shape, dtype=torch.bfloat16).masked_fill_(~mask, -100.0)
    for each in (mask, weighed):
        found = segments._folded(*narrow, each, scale=None, dropout_p=0.0)
        assert found.isfinite().all()
        assert (found.float() - expected)[seeing].abs().max() < 0.05
    narrow[0].requires_grad_()
    segments._folded(*narrow, mask | ~seeing[:, None, :, None], scale=None, dropout_p=0.0)
    assert calls == [False, False, True], "wide numbers, other masks and gradients go through the kernel"


def test_prompts_are_padded_little_on_a_processor() -> None:
    lengths = np.array([413, 110, 45, 412, 44, 3, 47, 2])
    chunks = chunks_by_length(range(8), lengths, 8192, torch.device("cpu"))
    assert chunks == [[5, 7], [2, 4, 6], [1], [0, 3]]
    assert len(chunks_by_length(range(8), lengths, 8192, torch.device("meta"))) == 2


def test_draws_follow_the_distribution(tiny_model: Any) -> None:
    requests = [Request(i, [5, 6, 7], i, 1) for i in range(4000)]
    replies = TransformersEngine(tiny_model, [EOS], max_rows=2000).generate(requests, Sampling())
    with torch.no_grad():
        expected = tiny_model(torch.tensor([[5, 6, 7]])).logits[0, -1].softmax(-1).numpy()
    seen = np.bincount([reply.token_ids[0] for reply in replies], minlength=40) / 4000
    assert np.abs(seen - expected).max() < 5 * np.sqrt(0.25 / 4000)


def test_replies_end_with_the_end_token_or_the_limit(tiny_model: Any) -> None:
    requests = [Request(i, [4 + i], i, 30) for i in range(16)]
    replies = TransformersEngine(tiny_model, [EOS, 9]).generate(requests, Sampling())
    ended = [r.token_ids for r in replies if r.token_ids[-1] in (EOS, 9)]
    assert ended
    assert all(not {EOS, 9} & set(r.token_ids[:-1]) for r in replies)
    assert all(len(r.token_ids) == 30 for r in replies if r.token_ids[-1] not in (EOS, 9))


def test_what_is_not_in_the_cache_as_it_is_asked_for_is_computed_again(tiny_model: Any, monkeypatch: Any) -> None:
    """A prompt that was changed or cut, and what a call left behind that was cut short."""
    engine = TransformersEngine(tiny_model, [EOS])

    def say(prompt: list[int], tokens: int = 4) -> Generation:
        return engine.generate([Request("a", prompt, 0, tokens)], Sampling())[0]

    changed = [5, 6, 30, 8, *say([5, 6, 7, 8]).token_ids, 12]
    for prompt in (changed, changed[:2]):
        assert_uncached(tiny_model, [(prompt, say(prompt))])
    monkeypatch.setattr(engine, "_decode", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        say([5, 20, 21, 22, 23])
    monkeypatch.undo()
    assert_uncached(tiny_model, [([5, 6, 7, 8, 9], say([5, 6, 7, 8, 9], 6))])


def test_only_what_is_new_is_computed(tiny_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, shapes = TransformersEngine(tiny_model, []), shapes_of_passes(tiny_model, monkeypatch)
    talk = list(range(2, 30))
    talk += [*engine.generate([Request(0, talk, 0, 3)], Sampling())[0].token_ids, 4, 5]
    engine.generate([Request(0, talk, 0, 3)], Sampling())
    # The last token drawn was never computed, so three are new: it and the two of the environment.
    assert shapes == [(1, 28), (1, 1), (1, 1), (1, 3), (1, 1), (1, 1)]
    shapes.clear()
    requests = [Request(i, [5, 6, 7 + i // 4], i, 5) for i in range(1, 9)]
    replies = engine.generate(requests, Sampling())
    assert shapes[0] == (3, 3), "equal prompts that are fresh are computed once"
    assert_uncached(tiny_model, [(list(q.prompt_ids), r) for q, r in zip(requests, replies, strict=True)])


def test_released_rows_are_used_again(tiny_model: Any) -> None:
    engine = TransformersEngine(tiny_model, [EOS])
    for round_ in range(5):
        engine.generate([Request((round_, i), [5, 6, i + 7], i, 4) for i in range(6)], Sampling())
        engine.release([(round_, i) for i in range(6)] + ["unknown"])
    assert len(engine._slots) == 6


def test_bad_requests(tiny_model: Any) -> None:
    for requests in ([Request(0, [5], 0), Request(0, [6], 0)], [Request(0, [], 0)], [Request(0, [5], 0, 0)]):
        with pytest.raises(ConfigError, match=r"same key|at least one prompt token and max_tokens >= 1"):
            TransformersEngine(tiny_model, [EOS]).generate(requests, Sampling())


def test_replies_share_their_draws_by_turn_and_place_however_long_their_prompts_are() -> None:
    model = make_model(40)
    with torch.no_grad():
        model.lm_head.weight.zero_()  # all tokens alike: the draws alone decide
    requests = [Request("with", [2] * 30, 7, 12, turn=3), Request("without", [2] * 5, 7, 12, turn=3)]
    requests += [Request("later", [2] * 5, 7, 12, turn=4), Request("other", [2] * 5, 8, 12, turn=3)]
    with_, without, later, other = TransformersEngine(model, []).generate(requests, Sampling())
    assert with_.token_ids == without.token_ids
    assert len({tuple(reply.token_ids) for reply in (without, later, other)}) == 3


LOGITS = st.lists(st.integers(-40, 40).map(lambda n: n / 8), min_size=3, max_size=12, unique=True)


def slow(logits: list[float], sampling: Sampling) -> set[int]:
    """The tokens that may be drawn, the most probable first."""
    order = sorted(range(len(logits)), key=lambda i: -logits[i])
    shares = {i: float(np.exp(logits[i] - max(logits))) for i in order}
    kept = order[: sampling.top_k] if sampling.top_k else order
    kept = [i for i in kept if shares[i] >= sampling.min_p]
    total, before, inside = sum(shares[i] for i in kept), 0.0, set()
    for i in kept:
        if before / total < sampling.top_p or sampling.top_p == 1:
            inside.add(i)
        before += shares[i]
    return inside


@given(LOGITS, st.floats(0.05, 1), st.integers(0, 5), st.floats(0, 0.9), st.floats(0, 0.999))
def test_what_may_be_drawn_is_drawn_and_its_log_probability_stays_whole(
    logits: list[float], top_p: float, top_k: int, min_p: float, number: float
) -> None:
    rows, sampling = torch.tensor([logits], dtype=torch.float64), Sampling(top_p=top_p, top_k=top_k, min_p=min_p)
    every = torch.log_softmax(rows, dim=-1)
    found = set(torch.nonzero(likely_tokens(every, sampling)[0]).flatten().tolist())
    # A bound that is met up to rounding may go either way.
    near = {Sampling(top_p=min(1.0, top_p * f), top_k=top_k, min_p=min(0.99, min_p * f)) for f in (1 - 1e-9, 1 + 1e-9)}
    assert found in [slow(logits, each) for each in near] + [slow(logits, sampling)]
    tokens, logprobs = draw(rows, np.array([number]), sampling)
    assert int(tokens[0]) in found
    assert logprobs[0] == pytest.approx(float(every[0, tokens[0]]), abs=1e-6)


def test_a_sampling_out_of_range_is_refused() -> None:
    for wrong in ({"top_p": 0.0}, {"top_p": 1.5}, {"top_k": -1}, {"min_p": 1.0}):
        with pytest.raises(ConfigError, match=r"top_p|top_k|min_p"):
            Sampling(**wrong)
    assert not Sampling().truncates


WORD = st.integers(0, 2**64 - 1)


@given(st.lists(st.tuples(WORD, WORD), min_size=1, max_size=20))
def test_each_pair_decides_its_own_number_in_the_half_open_unit_interval(pairs: list[tuple[int, int]]) -> None:
    seeds, counters = np.array(pairs, dtype=np.uint64).T
    numbers = uniforms(seeds, counters).tolist()
    assert numbers == [uniforms(seeds[i : i + 1], counters[i : i + 1])[0] for i in range(len(pairs))]
    assert all(0.0 <= number < 1.0 for number in numbers)


def test_seeds_differ_by_every_number_and_streams_and_counters_look_independent() -> None:
    assert len({derive_seed(a, b, c) for a in range(4) for b in range(4) for c in range(4)}) == 64
    seeds, counters = np.meshgrid(np.arange(200, dtype=np.uint64), np.arange(200, dtype=np.uint64))
    grid = uniforms(seeds.ravel(), counters.ravel()).reshape(200, 200)
    assert abs(grid.mean() - 0.5) < 0.01
    assert abs(grid.std() - np.sqrt(1 / 12)) < 0.01
    assert np.abs(np.corrcoef(grid) - np.eye(200)).max() < 0.35
    assert len(np.unique(grid)) == grid.size

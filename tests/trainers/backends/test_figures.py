"""Figures of own tokens, beside TRL's of all tokens."""

from functools import partial

import pytest

pytest.importorskip("trl", reason="needs the train extra")

import numpy as np
import torch
import transformers
from trl.trainer.utils import add_fused_lm_head

from skillc_gym.errors import ConfigError
from tests.trainers.conftest import make_model
from trainers.backends.trl import figures
from trainers.backends.trl.figures import own_figures
from trainers.models import segments
from trainers.models.segments import segments_of
from trainers.rollout.batches import Tokens
from trainers.warmstart import PolicySize
from trainers.warmstart.policy import build_model, build_tokenizer

TEMPERATURE = 0.7


def figures_of(model, tokens, *wants, **options):
    layer = model.get_output_embeddings()
    return own_figures(model, layer, tokens, set(wants), **{"temperature": TEMPERATURE, **options})


@pytest.fixture
def model():
    tokenizer = build_tokenizer(map(str, range(20)))
    made = build_model(tokenizer, PolicySize(layers=2, width=16, heads=2, feed_forward=16))
    add_fused_lm_head(made, temperature=TEMPERATURE, outputs=("log_probs", "entropy"))
    return made


@pytest.fixture
def rows() -> Tokens:
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(6, 20, (5, 30), generator=generator)
    mask = (torch.rand(5, 22, generator=generator) < 0.3).float()
    return Tokens(ids, mask * torch.tensor([1.0, 1.0, 0.0, 1.0, 1.0])[:, None])


def test_own_tokens_have_log_probabilities_and_gradients_of_a_whole_forward_pass(model, rows):
    logits = model(input_ids=rows.input_ids).logits
    found = figures_of(model, rows, "logprobs", "entropies")
    assert torch.equal(model(input_ids=rows.input_ids).logits, logits), "the model forgets the hook"
    plain = torch.distributions.Categorical(logits=logits[:, :-1] / TEMPERATURE)
    expected = plain.log_prob(rows.input_ids[:, 1:])[:, -22:] * rows.mask
    assert torch.allclose(found["logprobs"], expected, atol=1e-5)
    assert torch.allclose(found["entropies"], plain.entropy()[:, -22:] * rows.mask, atol=1e-5)
    assert not found["entropies"].requires_grad
    ours, theirs = (
        torch.autograd.grad(values.exp().sum(), [*model.parameters()]) for values in (found["logprobs"], expected)
    )
    assert all(map(partial(torch.allclose, atol=1e-5), ours, theirs))


def test_the_fused_layer_of_accelerators_says_the_same(model, rows):
    own = torch.nn.functional.pad(rows.mask, (rows.input_ids.shape[1] - rows.mask.shape[1], 0))
    picked = figures_of(model, Tokens(rows.input_ids, own), "logprobs", "entropies")
    fused = figures._fused(model, rows.input_ids, own > 0)
    for name in ("logprobs", "entropies"):
        assert torch.allclose(picked[name][:, 1:], fused[name], atol=1e-5)


def test_whole_distributions_and_heads_are_of_the_own_tokens_row_by_row(model, rows):
    head, own = torch.nn.Linear(16, 1), rows.mask > 0
    found = figures_of(model, rows, "logprobs", "logits", "values", heads={"values": head})
    chosen = found["logits"].log_softmax(-1).gather(-1, rows.input_ids[:, -22:][own][:, None]).squeeze(-1)
    assert torch.allclose(chosen, found["logprobs"][own], atol=1e-6)
    hidden = model(input_ids=rows.input_ids, output_hidden_states=True).hidden_states[-1]
    assert torch.allclose(found["values"], head(hidden)[:, :-1, 0][:, -22:] * rows.mask, atol=1e-5)


@pytest.mark.parametrize("share", [False, True])
def test_heads_are_float32_under_autocast(model, alike, share):
    with torch.autocast("cpu", torch.bfloat16):
        found, _ = with_gradient(model, alike, share)
    assert found["value"].dtype == torch.float32
    assert torch.allclose(found["value"], with_gradient(model, alike, share)[0]["value"], atol=0.1)


def test_rows_without_own_tokens_give_zeros_that_can_be_differentiated(model, rows):
    found = figures_of(model, Tokens(rows.input_ids, 0 * rows.mask), "logprobs")["logprobs"]
    found.sum().backward()
    assert not found.any()
    assert not any(parameter.grad.any() for parameter in model.parameters() if parameter.grad is not None)


@pytest.fixture
def alike() -> Tokens:
    """Rows that share beginnings of several lengths, one twice, one of no own token, one that begins apart."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(6, 20, (7, 30), generator=generator)
    mask = (torch.rand(7, 22, generator=generator) < 0.4).float()
    for row, source, length in ((1, 0, 12), (2, 1, 20), (3, 2, 30), (4, 0, 9)):
        ids[row, :length] = ids[source, :length]
    mask[3] = mask[2]
    mask[4], mask[5, 10:] = 0.0, 0.0
    return Tokens(ids, mask)


def with_gradient(model, tokens, share):
    head = torch.nn.Linear(16, 1)
    torch.nn.init.constant_(head.weight, 0.1)
    torch.nn.init.zeros_(head.bias)
    found = figures_of(model, tokens, "logprobs", "entropies", "logits", "value", heads={"value": head}, share=share)
    model.zero_grad()
    weights = torch.arange(1.0, 1 + found["logprobs"].numel()).reshape(found["logprobs"].shape)
    loss = (weights * (found["logprobs"] + found["value"])).sum() + found["logits"].pow(2).sum()
    loss.backward()
    return {name: value.detach() for name, value in found.items()}, [p.grad.clone() for p in model.parameters()]


def test_a_tree_of_one_short_row_still_goes_through_the_model(model):
    alone, nothing = (Tokens(torch.tensor([[7, 8]]), torch.tensor([[own]])) for own in (1.0, 0.0))
    shared, apart = (with_gradient(model, alone, share)[0]["logprobs"] for share in (True, False))
    assert torch.allclose(shared, apart, atol=1e-6)
    assert with_gradient(model, nothing, share=True)[0]["logprobs"].tolist() == [[0.0]]


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("options", [{}, {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}])
@pytest.mark.parametrize("longest", [128, 3])
def test_what_rows_begin_alike_with_is_computed_once_with_shared_heads_windows_and_checkpointing(
    alike, options, checkpointing, longest, monkeypatch
):
    monkeypatch.setattr(segments, "_LONGEST_ON_CPU", longest)
    model = make_model(30, hidden_size=16, intermediate_size=24, **options).train()
    seen = []
    model.get_input_embeddings().register_forward_hook(lambda _, args, __: seen.append(args[0].numel()))
    apart = with_gradient(model, alike, share=False)
    if checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    shared = with_gradient(model, alike, share=True)
    for name, value in apart[0].items():
        assert torch.allclose(shared[0][name], value, atol=1e-4), name
    for mine, theirs in zip(shared[1], apart[1], strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-4, atol=1e-4 * float(theirs.abs().max()))
    assert seen[1] < 0.6 * seen[0]
    assert any(float(gradient.abs().max()) > 1.0 for gradient in apart[1])


@pytest.mark.parametrize("name", ["StableLm", "Phimoe"])  # hand no segments on, no window to the attention
def test_models_whose_layers_cannot_share_are_refused(name, alike):
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}
    more = {"num_local_experts": 2, "sliding_window": 5} if name == "Phimoe" else {}
    config = getattr(transformers, f"{name}Config")(vocab_size=30, num_key_value_heads=1, **sizes, **more)
    made = getattr(transformers, f"{name}ForCausalLM")(config)
    with pytest.raises(ConfigError, match="layers that attend by segments"):
        figures_of(made, alike, "logprobs", share=True)


def test_memory_grows_with_the_tokens_of_the_tree(model):
    def kept(rows: int) -> int:
        ids = torch.randint(6, 20, (rows, 60), generator=torch.Generator().manual_seed(0))
        ids[:, :40] = ids[0, :40]
        sizes = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: (sizes.append(t.numel()), t)[1], lambda t: t):
            figures_of(model, Tokens(ids, torch.ones(rows, 2)), "logprobs", temperature=1.0, share=True)
        return sum(sizes)

    small, large, larger = kept(10), kept(40), kept(160)
    assert (larger - large) == pytest.approx(4 * (large - small), rel=0.05)


def test_segments_lie_on_the_way_to_their_tokens():
    #  0 - 1 - 2 - 3
    #      |   + - 6 - 7
    #      + - 4 - 5
    found = segments_of(np.array([-1, 0, 1, 2, 1, 4, 2, 6]), torch.device("cpu"))
    assert [(each.start, each.end, each.path.tolist()) for each in found] == [
        (0, 4, [0, 1, 2, 3]),
        (4, 6, [0, 1, 4, 5]),
        (6, 8, [0, 1, 2, 6, 7]),
    ]


def test_long_segments_are_cut_on_a_processor():
    found = segments_of(np.arange(-1, 299), torch.device("cpu"))
    assert [(each.start, each.end) for each in found] == [(0, 128), (128, 256), (256, 300)]
    assert [each.path.tolist() for each in found] == [list(range(each.end)) for each in found]


def test_attention_that_segments_do_not_know_is_refused(alike):
    model = make_model(30, hidden_size=16, intermediate_size=24, attention_dropout=0.5).train()
    with pytest.raises(ConfigError, match="dropout"):
        with_gradient(model, alike, share=True)

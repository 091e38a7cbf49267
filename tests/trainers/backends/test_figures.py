"""Figures of own tokens, beside TRL's of all tokens."""

from __future__ import annotations

import pytest

pytest.importorskip("trl", reason="needs the train extra")

import numpy as np
import torch
from trl.trainer.utils import add_fused_lm_head

from skillc_gym.errors import ConfigError
from tests.trainers.conftest import make_model
from trainers.backends.trl import figures
from trainers.backends.trl.figures import own_figures
from trainers.models import segments
from trainers.models.segments import segments_of
from trainers.rollout.batches import Tokens
from trainers.warmstart import PolicySize, build_model, build_tokenizer

TEMPERATURE = 0.7
WANTS = {"logprobs", "entropies"}


def own_logprobs(model, ids, mask):
    found = own_figures(model, model.get_output_embeddings(), Tokens(ids, mask), WANTS, temperature=TEMPERATURE)
    return found["logprobs"], found["entropies"]


@pytest.fixture
def model():
    tokenizer = build_tokenizer(map(str, range(20)))
    made = build_model(tokenizer, PolicySize(layers=2, width=16, heads=2, feed_forward=16))
    add_fused_lm_head(made, temperature=TEMPERATURE, outputs=("log_probs", "entropy"))
    return made


@pytest.fixture
def rows() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(6, 20, (5, 30), generator=generator)
    mask = (torch.rand(5, 22, generator=generator) < 0.3).float()
    return ids, mask * torch.tensor([1.0, 1.0, 0.0, 1.0, 1.0])[:, None]


def of_all_tokens(model, ids, columns):
    """The plain definition: the whole forward pass, every logit."""
    logits = model(input_ids=ids).logits[:, :-1] / TEMPERATURE
    distribution = torch.distributions.Categorical(logits=logits)
    return distribution.log_prob(ids[:, 1:])[:, -columns:], distribution.entropy()[:, -columns:]


def test_own_tokens_have_log_probabilities_and_gradients_of_a_whole_forward_pass(model, rows):
    ids, mask = rows
    found, entropies = own_logprobs(model, ids, mask)
    expected, entropy = of_all_tokens(model, ids, mask.shape[1])
    assert torch.allclose(found, expected * mask, atol=1e-5)
    assert torch.allclose(entropies, entropy * mask, atol=1e-5)
    assert not entropies.requires_grad
    parameters = list(model.parameters())
    for mine, plain in zip(
        torch.autograd.grad(found.exp().sum(), parameters),
        torch.autograd.grad(((expected * mask).exp()).sum(), parameters),
        strict=True,
    ):
        assert torch.allclose(mine, plain, atol=1e-5)


def test_the_fused_layer_of_accelerators_says_the_same(model, rows):
    ids, mask = rows
    own = torch.nn.functional.pad(mask, (ids.shape[1] - mask.shape[1], 0)) > 0
    output_layer = model.get_output_embeddings()
    picked = own_figures(model, output_layer, Tokens(ids, own.float()), WANTS, temperature=TEMPERATURE)
    fused = figures._fused(model, ids, own)
    assert torch.allclose(picked["logprobs"][:, 1:], fused["logprobs"], atol=1e-5)
    assert torch.allclose(picked["entropies"][:, 1:], fused["entropies"], atol=1e-5)


def test_whole_distributions_and_heads_are_of_the_own_tokens_row_by_row(model, rows):
    ids, mask = rows
    head = torch.nn.Linear(16, 1)
    wants = {"logprobs", "logits", "values"}
    found = own_figures(
        model, model.get_output_embeddings(), Tokens(ids, mask), wants, temperature=TEMPERATURE, heads={"values": head}
    )
    own = mask > 0
    chosen = found["logits"].log_softmax(-1).gather(-1, ids[:, -mask.shape[1] :][own][:, None]).squeeze(-1)
    assert torch.allclose(chosen, found["logprobs"][own], atol=1e-6)
    hidden = model(input_ids=ids, output_hidden_states=True).hidden_states[-1]
    expected = head(hidden)[:, :-1, 0][:, -mask.shape[1] :]
    assert torch.allclose(found["values"], expected * mask, atol=1e-5)


@pytest.mark.parametrize("share", [False, True])
def test_heads_are_float32_under_autocast(model, alike, share):
    with torch.autocast("cpu", torch.bfloat16):
        found, _ = with_gradient(model, alike, share)
    assert found["value"].dtype == torch.float32
    assert torch.allclose(found["value"], with_gradient(model, alike, share)[0]["value"], atol=0.1)


def test_rows_without_own_tokens_give_zeros_that_can_be_differentiated(model, rows):
    ids, mask = rows
    found, _ = own_logprobs(model, ids, 0 * mask)
    found.sum().backward()
    assert not found.any()
    assert not any(parameter.grad.any() for parameter in model.parameters() if parameter.grad is not None)


def test_the_model_forgets_the_hook(model, rows):
    ids, mask = rows
    before = model(input_ids=ids).logits
    own_logprobs(model, ids, mask)
    assert torch.equal(model(input_ids=ids).logits, before)


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
    found = own_figures(
        model,
        model.get_output_embeddings(),
        tokens,
        {"logprobs", "entropies", "logits", "value"},
        temperature=TEMPERATURE,
        heads={"value": head},
        share=share,
    )
    model.zero_grad()
    weights = torch.arange(1.0, 1 + found["logprobs"].numel()).reshape(found["logprobs"].shape)
    loss = (weights * (found["logprobs"] + found["value"])).sum() + found["logits"].pow(2).sum()
    loss.backward()
    return {name: value.detach() for name, value in found.items()}, [p.grad.clone() for p in model.parameters()]


def assert_alike(shared, apart):
    """Figures and gradients."""
    for name, value in apart[0].items():
        assert torch.allclose(shared[0][name], value, atol=1e-4), name
    for mine, theirs in zip(shared[1], apart[1], strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-4, atol=1e-4 * float(theirs.abs().max()))


def test_what_rows_begin_alike_with_is_computed_once_to_the_same_figures_and_gradients(model, alike):
    seen = []
    handle = model.get_input_embeddings().register_forward_hook(lambda _, args, __: seen.append(args[0].numel()))
    figures_apart, gradients_apart = with_gradient(model, alike, share=False)
    figures_shared, gradients_shared = with_gradient(model, alike, share=True)
    handle.remove()
    assert seen[1] < 0.6 * seen[0]
    assert_alike((figures_shared, gradients_shared), (figures_apart, gradients_apart))
    assert any(float(gradient.abs().max()) > 1.0 for gradient in gradients_apart)


def test_a_tree_of_one_short_row_still_goes_through_the_model(model):
    tokens = Tokens(torch.tensor([[7, 8]]), torch.tensor([[1.0]]))
    alone = with_gradient(model, tokens, share=True)[0]
    assert torch.allclose(alone["logprobs"], with_gradient(model, tokens, share=False)[0]["logprobs"], atol=1e-6)
    nothing = Tokens(torch.tensor([[7, 8]]), torch.tensor([[0.0]]))
    assert with_gradient(model, nothing, share=True)[0]["logprobs"].tolist() == [[0.0]]


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("options", [{}, {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}])
@pytest.mark.parametrize("longest", [128, 3])
def test_segments_are_row_by_row_with_shared_heads_windows_and_checkpointing(
    alike, options, checkpointing, longest, monkeypatch
):
    monkeypatch.setattr(segments, "_LONGEST_ON_CPU", longest)
    model = make_model(30, hidden_size=16, intermediate_size=24, **options).train()
    apart = with_gradient(model, alike, share=False)
    if checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    assert_alike(with_gradient(model, alike, share=True), apart)


def test_memory_grows_with_the_tokens_of_the_tree(model):
    def kept(rows: int) -> int:
        ids = torch.randint(6, 20, (rows, 60), generator=torch.Generator().manual_seed(0))
        ids[:, :40] = ids[0, :40]
        sizes = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: (sizes.append(t.numel()), t)[1], lambda t: t):
            own_figures(
                model, model.get_output_embeddings(), Tokens(ids, torch.ones(rows, 2)), {"logprobs"},
                temperature=1.0, share=True,
            )  # fmt: skip
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

"""Figures of own tokens, beside TRL's of all tokens."""

from __future__ import annotations

import pytest

pytest.importorskip("trl", reason="needs the train extra")

import torch
from trl.trainer.utils import add_fused_lm_head

from trainers.backends.trl import figures
from trainers.backends.trl.figures import own_figures
from trainers.rollout.collate import Tokens
from trainers.warmstart.model import PolicySize, build_model
from trainers.warmstart.tokenizer import build_tokenizer

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


def test_own_tokens_have_the_log_probabilities_of_a_whole_forward_pass(model, rows):
    ids, mask = rows
    found, entropies = own_logprobs(model, ids, mask)
    expected, entropy = of_all_tokens(model, ids, mask.shape[1])
    assert torch.allclose(found, expected * mask, atol=1e-5)
    assert torch.allclose(entropies, entropy * mask, atol=1e-5)
    assert not entropies.requires_grad


def test_gradients_are_those_of_a_whole_forward_pass(model, rows):
    ids, mask = rows
    found, _ = own_logprobs(model, ids, mask)
    expected, _ = of_all_tokens(model, ids, mask.shape[1])
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
    picked = figures._picked(model, output_layer, ids, own, temperature=TEMPERATURE, wants=WANTS, heads=None)
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

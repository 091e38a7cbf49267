"""Log-probabilities of the model's own tokens, and of nothing else.

An episode is mostly what the environment said. The output layer, the widest of all, is therefore applied only where one
of the model's own tokens is predicted. On an accelerator that is TRL's fused output layer; on a CPU, where TRL's scores
every token, a hook picks those positions out of the hidden states on their way into the layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

__all__ = ["own_logprobs"]

_IGNORED = -100


def own_logprobs(
    model: Any, head: torch.nn.Module, input_ids: torch.Tensor, mask: torch.Tensor, *, temperature: float
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Computes log-probabilities, and entropies if the model's fused output layer was asked for them.

    Args:
        model: A causal language model with TRL's fused output layer, wrapped for training or not.
        head: Its output layer.
        input_ids: Token ids, padded on the right, shape (rows, length).
        mask: 1 for the model's own tokens, for the last columns of ``input_ids``, shape (rows, tokens); a row's first
            token is never its own.
        temperature: Divides the logits; the fused layer was made with the same.

    Returns:
        Log-probabilities in nats, and entropies without gradient; both of shape (rows, tokens), 0 outside the mask.
    """
    own = torch.zeros_like(input_ids, dtype=torch.bool)
    own[:, -mask.shape[1] :] = mask > 0
    on_cpu = input_ids.device.type == "cpu"
    found = _picked(model, head, input_ids, own, temperature) if on_cpu else _fused(model, input_ids, own)
    logprobs, entropies = found
    return logprobs[:, -mask.shape[1] :], None if entropies is None else entropies[:, -mask.shape[1] :]


def _fused(model: Any, input_ids: torch.Tensor, own: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
    labels = input_ids.masked_fill(~own, _IGNORED)
    everything = torch.ones_like(input_ids)
    found = model(input_ids=input_ids, attention_mask=everything, labels=labels, fused_lm_head=True)
    return found.log_probs, found.entropy


def _picked(
    model: Any, head: torch.nn.Module, input_ids: torch.Tensor, own: torch.Tensor, temperature: float
) -> tuple[torch.Tensor, torch.Tensor | None]:
    # The token in column t is predicted from the hidden state in column t - 1.
    with _only_at(head, own.roll(-1, dims=1)):
        logits = model(input_ids=input_ids, use_cache=False).logits.float() / temperature
    every = torch.log_softmax(logits, dim=-1)
    chosen = every.gather(-1, input_ids[own].unsqueeze(-1)).squeeze(-1)
    with torch.no_grad():
        entropies = -(every.exp() * every).sum(-1)
    blank = torch.zeros(own.shape, dtype=chosen.dtype)
    return blank.masked_scatter(own, chosen), blank.masked_scatter(own, entropies)


@contextmanager
def _only_at(head: torch.nn.Module, positions: torch.Tensor) -> Iterator[None]:
    """Lets the output layer see the hidden states of some positions only, as (positions, width)."""
    hook = head.register_forward_pre_hook(lambda _, args: (args[0][positions], *args[1:]))
    try:
        yield
    finally:
        hook.remove()

"""Log-probabilities and other figures of the model's own tokens, and of nothing else.

An episode is mostly what the environment said. The output layer, the widest of all, is therefore applied only where one
of the model's own tokens is predicted. On an accelerator that is TRL's fused output layer; on a CPU, where TRL's scores
every token, and wherever whole distributions or hidden states are wanted, a hook picks those positions out of the
hidden states on their way into the layer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from trainers.backends.trl.predictions import Predictions, as_tree, own_tokens, row_by_row
from trainers.rollout.collate import Tokens

__all__ = ["own_figures"]

_IGNORED = -100
_FUSED = {"logprobs", "entropies"}

Heads = Mapping[str, torch.nn.Module]
Figures = dict[str, torch.Tensor]


def own_figures(
    model: Any,
    output_layer: torch.nn.Module,
    tokens: Tokens,
    wants: Collection[str],
    *,
    temperature: float,
    heads: Heads | None = None,
    share: bool = False,
) -> Figures:
    """One forward pass over rows of tokens.

    Args:
        model: A causal language model with TRL's fused output layer, wrapped for training or not.
        output_layer: Its output layer.
        tokens: The rows; a row's first token is never its own.
        wants: ``logprobs`` (nats), ``entropies`` (without gradient), ``logits``, or heads by name.
        temperature: Divides the logits; the fused layer was made with the same.
        heads: Modules over the last hidden states, one number each.
        share: Compute what rows begin alike with once; the model must take any mask.

    Returns:
        Shape (rows, tokens) each, 0 outside the mask; the logits (own tokens row by row, vocabulary).
    """
    columns = tokens.mask.shape[1]
    if share or tokens.input_ids.device.type == "cpu" or not set(wants) <= _FUSED:
        predictions = as_tree(tokens) if share else row_by_row(tokens)
        found = _picked(model, output_layer, predictions, temperature=temperature, wants=wants, heads=heads)
    else:
        found = _fused(model, tokens.input_ids, own_tokens(tokens))
    return {name: value if name == "logits" else value[:, -columns:] for name, value in found.items()}


def _fused(model: Any, input_ids: torch.Tensor, own: torch.Tensor) -> Figures:
    labels = input_ids.masked_fill(~own, _IGNORED)
    everything = torch.ones_like(input_ids)
    found = model(input_ids=input_ids, attention_mask=everything, labels=labels, fused_lm_head=True)
    figures = {"logprobs": found.log_probs}
    return figures if found.entropy is None else {**figures, "entropies": found.entropy}


def _picked(
    model: Any,
    output_layer: torch.nn.Module,
    predictions: Predictions,
    *,
    temperature: float,
    wants: Collection[str],
    heads: Heads | None,
) -> Figures:
    own, which, targets = predictions.own, predictions.which, predictions.targets
    with _only_at(output_layer, predictions.places) as hidden:
        logits = model(**predictions.inputs, use_cache=False).logits.float() / temperature
    every = torch.log_softmax(logits, dim=-1)
    chosen = every[which, targets] if predictions.shared else every.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    blank = torch.zeros(own.shape, dtype=chosen.dtype, device=chosen.device)
    figures = {"logprobs": blank.masked_scatter(own, chosen)}
    if "entropies" in wants:
        with torch.no_grad():
            figures["entropies"] = blank.masked_scatter(own, -(every.exp() * every).sum(-1)[which])
    if "logits" in wants:
        figures["logits"] = logits[which]
    for name, head in (heads or {}).items():
        if name in wants:
            figures[name] = blank.masked_scatter(own, head(hidden[0].float()).squeeze(-1)[which])
    return figures


@contextmanager
def _only_at(output_layer: torch.nn.Module, positions: torch.Tensor) -> Iterator[list[torch.Tensor]]:
    """Lets the output layer see the hidden states of some positions only, as (positions, width); keeps them too."""
    seen: list[torch.Tensor] = []

    def pick(_: torch.nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        seen[:] = [args[0][positions]]
        return (seen[0], *args[1:])

    hook = output_layer.register_forward_pre_hook(pick)
    try:
        yield seen
    finally:
        hook.remove()

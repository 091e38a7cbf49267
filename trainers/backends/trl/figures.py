"""Log-probabilities and other figures of the model's own tokens, and of nothing else.

An episode is mostly what the environment said. The output layer, the widest of all, is therefore applied only where one
of the model's own tokens is predicted. On an accelerator that is TRL's fused output layer; on a CPU, where TRL's scores
every token, and wherever whole distributions or hidden states are wanted, a hook picks those positions out of the
hidden states on their way into the layer.

Rollouts of one task are much alike: they share their prompt, and while they do the same they see the same. As a tree of
tokens every beginning that rows share goes through the model once, a token attends to those on the way to it
(:mod:`trainers.models.segments`), and each row reads its figures off its own path. Figures and gradients are those of
row by row, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from skillc_gym.errors import ConfigError
from trainers.engines.scoring import TokenTree
from trainers.models.loading import only_at
from trainers.models.segments import Segment, attend_by_segments, segments_of, sliding_window
from trainers.rollout.batches import Tokens

_IGNORED = -100
_IMPOSSIBLE = -1e9
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
    dtype: torch.dtype | None = None,
) -> Figures:
    """One forward pass over rows of tokens, by a causal model with TRL's fused output layer, wrapped or not.

    Figures: ``logprobs`` (nats), ``entropies`` (without gradient), ``logits``, or ``heads`` by name: modules over the
    last hidden states, one number each. Logits are divided by ``temperature``, that of the fused layer; with ``share``
    what rows begin alike with is computed once, with ``dtype`` copies of the weights in that type compute. Shapes are
    (rows, tokens), 0 outside the mask; of the logits (own tokens row by row, vocabulary).
    """
    columns = tokens.mask.shape[1]
    choosing = tokens.allowed is not None
    if share:
        attend_by_segments(model)
    forward = model if dtype is None else rounded(model, dtype)
    if share or choosing or tokens.input_ids.device.type == "cpu" or not set(wants) <= _FUSED:
        predictions = as_tree(tokens) if share else row_by_row(tokens)
        found = _picked(
            forward, output_layer, predictions, tokens.allowed, temperature=temperature, wants=wants, heads=heads
        )
        if share:
            _check_shared(getattr(model, "module", model), predictions.inputs["segments"])
    else:
        found = _fused(forward, tokens.input_ids, own_tokens(tokens))
    return {name: value if name == "logits" else value[:, -columns:] for name, value in found.items()}


def _check_shared(model: Any, segments: Sequence[Segment]) -> None:
    """Refuses a model whose layers did not attend by segments: tokens have seen other rows."""
    taken = segments[0].taken
    if not taken or (sliding_window(model) is not None and not any(taken)):
        raise ConfigError("share_prefixes needs layers that attend by segments, and this model's do not; leave it out.")


def _fused(model: Callable[..., Any], input_ids: torch.Tensor, own: torch.Tensor) -> Figures:
    labels = input_ids.masked_fill(~own, _IGNORED)
    everything = torch.ones_like(input_ids)
    found = model(input_ids=input_ids, attention_mask=everything, labels=labels, fused_lm_head=True)
    figures = {"logprobs": found.log_probs}
    return figures if found.entropy is None else {**figures, "entropies": found.entropy}


def _picked(
    model: Callable[..., Any],
    output_layer: torch.nn.Module,
    predictions: Predictions,
    allowed: torch.Tensor | None,
    *,
    temperature: float,
    wants: Collection[str],
    heads: Heads | None,
) -> Figures:
    own, which, targets = predictions.own, predictions.which, predictions.targets
    # A place that rows share is computed once; ``which`` finds it again for each of the own tokens behind it.
    with only_at(output_layer, predictions.places) as hidden:
        logits = model(**predictions.inputs, use_cache=False).logits.float() / temperature
    if allowed is not None:
        # Places that rows share may be followed by other choices in each: from here on every own token has its own.
        hidden = [states[which] for states in hidden]
        logits, which = within(logits[which], allowed), slice(None)
    every = torch.log_softmax(logits, dim=-1)
    # Where each has its own, gather keeps an index of one column for the gradient, and no second one of rows.
    one_each = isinstance(which, slice)
    chosen = every.gather(-1, targets.unsqueeze(-1)).squeeze(-1) if one_each else every[which, targets]
    blank = torch.zeros(own.shape, dtype=chosen.dtype, device=chosen.device)
    figures = {"logprobs": blank.masked_scatter(own, chosen)}
    if "entropies" in wants:
        # For the log alone: without gradient its products over the vocabulary are not kept.
        with torch.no_grad():
            figures["entropies"] = blank.masked_scatter(own, -(every.exp() * every).sum(-1)[which])
    if "logits" in wants:
        figures["logits"] = logits[which]
    for name, head in (heads or {}).items():
        if name in wants:
            # Heads are float32, as the figures are; autocast would give theirs in bfloat16.
            with torch.autocast(own.device.type, enabled=False):
                found = head(hidden[0].float()).squeeze(-1)[which]
            figures[name] = blank.masked_scatter(own, found)
    return figures


def rounded(model: Any, dtype: torch.dtype) -> Callable[..., Any]:
    """The forward pass of a model with its weights in another type; gradients go to the weights as they are."""

    def forward(**inputs: Any) -> Any:
        # Rounded once a pass, where autocast casts every layer's inputs and outputs, too.
        weights = {name: weight.to(dtype) for name, weight in model.named_parameters()}
        return torch.func.functional_call(model, weights, kwargs=inputs)

    return forward


def within(logits: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
    """Logits (n, vocabulary) under which only the allowed ids, (n, most) filled up with -1, have a probability."""
    rows, columns = torch.nonzero(allowed >= 0, as_tuple=True)
    possible = torch.zeros_like(logits, dtype=torch.bool)
    possible[rows, allowed[rows, columns]] = True
    # Finite, so that what a probability of 0 is multiplied with (an entropy, a divergence) stays a number.
    return logits.masked_fill(~possible, _IMPOSSIBLE)


@dataclass(frozen=True)
class Predictions:
    """One forward pass, the ``inputs`` that the model is given, and what it predicts: ``targets`` (own,), row by row.

    ``own`` are the model's own tokens, bool (rows, columns); ``places`` those whose hidden state predicts, bool in the
    shape of ``input_ids``; ``which`` place predicts each own token, a slice if there is one for each, in order.
    """

    inputs: Mapping[str, Any]
    own: torch.Tensor
    targets: torch.Tensor
    places: torch.Tensor
    which: torch.Tensor | slice


def own_tokens(tokens: Tokens) -> torch.Tensor:
    """Which tokens are the model's own, bool (rows, columns)."""
    own = torch.zeros_like(tokens.input_ids, dtype=torch.bool)
    own[:, -tokens.mask.shape[1] :] = tokens.mask > 0
    return own


def row_by_row(tokens: Tokens) -> Predictions:
    """Rows as they are; the token in column t is predicted from the hidden state in column t - 1."""
    own = own_tokens(tokens)
    return Predictions({"input_ids": tokens.input_ids}, own, tokens.input_ids[own], own.roll(-1, dims=1), slice(None))


def as_tree(tokens: Tokens) -> Predictions:
    """All rows in one sequence of tokens, each up to its last own token, which nothing has to be predicted from."""
    own = own_tokens(tokens)
    mask, ids = own.cpu().numpy(), tokens.input_ids.cpu().numpy()
    ends = np.where(mask.any(1), mask.shape[1] - mask[:, ::-1].argmax(1), 1)
    # A row of one token would leave no inner node; the model needs one.
    tree = TokenTree.of([[*row[:end].tolist(), -1][: max(end, 2)] for row, end in zip(ids, ends, strict=True)])
    before = np.concatenate([path[np.flatnonzero(of) - 1] for path, of in zip(tree.paths, mask, strict=True)])
    places, which = np.unique(before, return_inverse=True)
    predicting = np.zeros((1, tree.inner), dtype=bool)
    predicting[0, places] = True

    def tensor(array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(own.device)

    inputs: dict[str, Any] = {
        "input_ids": tensor(tree.tokens[None, : tree.inner]),
        "position_ids": tensor(tree.depths[None, : tree.inner]),
        # A mask of four dimensions is taken as it is: none is made for a sequence that has its segments.
        "attention_mask": torch.ones(1, 1, 1, 1, dtype=torch.bool, device=own.device),
        "segments": segments_of(tree.parents[: tree.inner], own.device),
    }
    return Predictions(inputs, own, tokens.input_ids[own], tensor(predicting), tensor(which))

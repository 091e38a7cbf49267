"""Where a forward pass predicts the model's own tokens: row by row, or in one tree of rows that begin alike.

Rollouts of one task are much alike: they share their prompt, and while they do the same they see the same. As a tree of
tokens every beginning that rows share goes through the model once, a token attends to those on the way to it, and
each row reads its figures off its own path. Figures and gradients are those of row by row, up to rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from trainers.engines.token_tree import TokenTree
from trainers.rollout.collate import Tokens

__all__ = ["Predictions", "as_tree", "own_tokens", "row_by_row"]


@dataclass(frozen=True)
class Predictions:
    """One forward pass and what it predicts.

    Attributes:
        inputs: What the model is given.
        own: Which tokens of the rows are the model's own, bool (rows, columns).
        targets: The own tokens, row by row, shape (own,).
        places: Of which of the model's tokens the hidden state predicts, bool in the shape of its ``input_ids``.
        which: Number of the place that predicts each own token; a slice if there is one for each, in order.
    """

    inputs: Mapping[str, torch.Tensor]
    own: torch.Tensor
    targets: torch.Tensor
    places: torch.Tensor
    which: torch.Tensor | slice

    @property
    def shared(self) -> bool:
        """Whether one place may predict tokens of several rows."""
        return not isinstance(self.which, slice)


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
    """All rows in one sequence of tokens, each up to its last own token, which nothing has to be predicted from.

    Attention takes the square of the tree's size: of use where rows share much.
    """
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

    inputs = {
        "input_ids": tensor(tree.tokens[None, : tree.inner]),
        "position_ids": tensor(tree.depths[None, : tree.inner]),
        "attention_mask": tensor(tree.ancestors()[None, None]),
    }
    return Predictions(inputs, own, tokens.input_ids[own], tensor(predicting), tensor(which))

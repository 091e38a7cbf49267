"""Keys and values of many growing conversations, kept in place between turns.

Token number p of a row lies in column p, so a query at position p may look at the columns up to p and at nothing
else. Whatever lies behind a row's last token is rubbish that later tokens overwrite: rows of different lengths need
neither padding nor compaction.
"""

from __future__ import annotations

from typing import Any

import torch

Rows = slice | torch.Tensor


class ConversationCache:
    """Stands in for a transformers cache; tensors of shape (rows, heads, columns, width) a layer grow by doubling."""

    is_compileable = False
    """transformers asks: a compiled forward pass wants tensors whose addresses never change, and these grow."""

    def __init__(self) -> None:
        self.keys: list[torch.Tensor] = []
        self.values: list[torch.Tensor] = []
        self._capacity = (0, 0)
        nothing = torch.zeros(0, 1, dtype=torch.long)
        self.aim(slice(0, 0), nothing, nothing, 0)

    def aim(self, rows: Rows, index: torch.Tensor, positions: torch.Tensor, columns: int) -> None:
        """Says where the next forward pass writes, and how many ``columns`` it sees.

        ``rows``: a slice (nothing is copied) or indices (n,); ``index``: the same as (n, 1); ``positions``: (n, q).
        """
        self._rows, self._index, self._positions, self._columns = rows, index, positions, columns

    def reserve(self, rows: int, columns: int) -> None:
        """Makes room for at least so many rows and columns, keeping what is stored."""
        have_rows, have_columns = self._capacity
        if rows <= have_rows and columns <= have_columns:
            return
        # Each growth copies everything, so it grows by more than is asked: rows twofold, columns by half.
        rows = have_rows if rows <= have_rows else max(rows, 2 * have_rows)
        columns = have_columns if columns <= have_columns else max(-(-columns // 64) * 64, have_columns * 3 // 2)
        self._capacity = (rows, columns)
        # One by one, so that no more than a single tensor lies in memory twice.
        for tensors in (self.keys, self.values):
            for layer, tensor in enumerate(tensors):
                tensors[layer] = self._grown(tensor)

    def _grown(self, tensor: torch.Tensor) -> torch.Tensor:
        rows, heads, columns, width = tensor.shape
        # Zeros, not rubbish: what is masked is weighed with 0, and 0 times NaN would be NaN.
        grown = tensor.new_zeros(self._capacity[0], heads, self._capacity[1], width)
        grown[:rows, :, :columns] = tensor
        return grown

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer_idx: int, *_args: Any, **_kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Stores the new keys and values, shape (n, heads, q, width); returns all that attention may see."""
        # The first pass says how many layers there are, and how wide their keys are.
        if layer_idx == len(self.keys):
            self.keys.append(self._grown(keys[:0, :, :0]))
            self.values.append(self._grown(values[:0, :, :0]))
        all_keys, all_values = self.keys[layer_idx], self.values[layer_idx]
        # Each token goes to its own column: two index tensors pick (n, q) cells, so heads come after them.
        all_keys[self._index, :, self._positions] = keys.transpose(1, 2)
        all_values[self._index, :, self._positions] = values.transpose(1, 2)
        # No more columns than the longest row needs: attention costs as much as it is shown.
        # With a slice of rows this is a view; with indices attention reads a copy.
        return all_keys[self._rows, :, : self._columns], all_values[self._rows, :, : self._columns]

    def copy_rows(self, source: torch.Tensor, target: torch.Tensor, columns: int) -> None:
        """Copies the first columns of some rows over those of others, all at once."""
        for tensor in (*self.keys, *self.values):
            # The right side is gathered before anything is written, so rows may also be swapped.
            tensor[target, :, :columns] = tensor[source, :, :columns]

    def get_seq_length(self, _layer_idx: int = 0) -> int:
        """The number of columns in use, as far as transformers asks."""
        return self._columns

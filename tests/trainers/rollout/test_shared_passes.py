from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trainers.base import TokenRow
from trainers.rollout.shared_passes import shared_passes
from trainers.rollout.training_rows import TrainingRow


def row(tokens: list[int], number: int) -> TrainingRow:
    return TrainingRow(TokenRow(tokens[:1], tokens[1:], [1] * len(tokens[1:]), []), np.zeros(1), 1.0, number)


ROWS = st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=9), max_size=20)


@given(ROWS, st.integers(1, 8))
def test_every_row_lands_in_exactly_one_pass_in_the_order_of_its_tokens(tokens: list[list[int]], count: int) -> None:
    passes = shared_passes([row(ids, i) for i, ids in enumerate(tokens)], count)
    assert len(passes) == count
    assert all(passes)
    dealt = [weighted.trajectory for part in passes for weighted in part if weighted.weight]
    assert dealt == sorted(range(len(tokens)), key=lambda i: (tokens[i], i))


def test_passes_end_where_neighbours_share_least() -> None:
    # Three groups of unequal size: equal passes would cut the second one in two.
    rows = [[group, *range(10), *([i] * 6)] for group, size in ((3, 4), (4, 6), (5, 4)) for i in range(size)]
    passes = shared_passes([row(ids, i) for i, ids in enumerate(rows)], 3)
    assert [{weighted.row.prompt_ids[0] for weighted in part} for part in passes] == [{3}, {4}, {5}]


def test_nothing_to_train_on_is_padding_in_every_pass() -> None:
    assert [[weighted.weight for weighted in part] for part in shared_passes([], 3)] == [[0.0]] * 3

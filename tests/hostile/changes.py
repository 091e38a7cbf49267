"""How hostile inputs are made and what they may cost; ``benchmarks.fuzz`` drives the same tests by coverage."""

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SECONDS = 5.0
"""Of processor time for one input, hypothesis's own included."""


def hostile(test: Callable[[Any], None]) -> Callable[[], None]:
    """A test of what a stranger may send; an input that takes long is a finding."""

    @functools.wraps(test)
    def timed(data: Any) -> None:
        began = time.process_time()
        test(data)
        taken = time.process_time() - began
        assert taken < SECONDS, f"an input took {taken:.1f} seconds"

    return settings(max_examples=60, suppress_health_check=list(HealthCheck))(given(st.data())(timed))


def changed(data: Any, text: str, pieces: Sequence[str], changes: int = 3, repeats: int = 5_000) -> str:
    """A text with a few changes: something dropped, repeated, put in or written over."""
    for _ in range(data.draw(st.integers(0, changes))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 200)))
        many = st.integers(1, 3) | st.integers(1, repeats)
        found = (
            st.tuples(st.sampled_from(["", text[start:end]]), st.integers(0, 50))
            | st.tuples(st.sampled_from(pieces), many)
            | st.tuples(st.text(st.characters(), max_size=40), st.just(1))
        )
        piece, times = data.draw(found)
        text = text[:start] + piece * times + text[data.draw(st.sampled_from([start, end])) :]
    return text

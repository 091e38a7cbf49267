"""Retrieval rules: which texts are like a query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trainers.advantages.grouping import FloatArray
from trainers.base import Registry, instance_of

__all__ = ["RETRIEVALS", "RetrievalRule", "Similarity", "nearest", "similarity"]

Similarity = Callable[[str, Sequence[str]], FloatArray]
"""Compares a query with texts: one number in [0, 1] per text, 1 for a text that says just what the query says."""


@dataclass(frozen=True)
class RetrievalRule:
    """A way to compare a query with texts; ``start`` makes it ready, with the encoder that was named or None."""

    name: str
    start: Callable[[str | None], Similarity]


RETRIEVALS = Registry("retrieval rule", __name__, "RULE", "skillc_gym.retrieval", instance_of(RetrievalRule))
"""Built-in rules, entry points, and ``module:RULE``."""


def similarity(embeddings: str | None = None, rule: str = "") -> Similarity:
    """How texts are compared: by a rule's name or ``module:RULE``, else by the encoder if one is named, else BM25."""
    found: RetrievalRule = RETRIEVALS.get(rule or ("bm25" if embeddings is None else "embeddings"))
    return found.start(embeddings)


def nearest(compare: Similarity, query: str, texts: Sequence[str], count: int) -> list[int]:
    """The places of the texts most like a query, the most like first; earlier ones first where they are equal."""
    likeness = compare(query, texts) if texts else ()
    return sorted(range(len(texts)), key=lambda place: -float(likeness[place]))[:count]

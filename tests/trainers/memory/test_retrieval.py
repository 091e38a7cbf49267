"""Similarities of a query with texts."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import MissingDataError
from trainers.memory.retrieval import BM25, similarity, words

TEXTS = st.lists(st.lists(st.sampled_from("abcde"), max_size=6).map(" ".join), max_size=5)


def slow_bm25(query, texts, k1, b):
    bags = [words(text) for text in [*texts, query]]
    average = sum(map(len, bags)) / len(bags) or 1.0

    def score(bag):
        total = 0.0
        for word in words(query):
            holding = sum(word in other for other in bags)
            idf = math.log(1 + (len(bags) - holding + 0.5) / (holding + 0.5))
            tf = Counter(bag)[word]
            total += idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * len(bag) / average)) if tf else 0.0
        return total

    own = score(bags[-1])
    return [min(score(bag) / own, 1.0) if own else 0.0 for bag in bags[:-1]]


@given(st.lists(st.sampled_from("abcde"), max_size=5).map(" ".join), TEXTS)
def test_bm25_follows_its_definition(query, texts):
    assert BM25()(query, texts).tolist() == pytest.approx(slow_bm25(query, texts, 0.9, 0.4), abs=1e-9)


def test_a_text_that_says_the_same_is_most_similar():
    got = BM25()("put a hot mug in shelf", ["put a hot mug in shelf", "put a clean mug in shelf", "buy a rug"])
    assert got[0] == 1.0
    assert got[0] > got[1] > got[2]


def test_the_order_of_a_querys_words_does_not_matter():
    assert BM25()("a hot mug", ["mug hot"]).tolist() == BM25()("mug a hot", ["mug hot"]).tolist()


def test_an_empty_query_is_like_nothing():
    assert BM25()("", ["a"]).tolist() == [0.0]
    assert BM25()("a", []).tolist() == []


def test_an_encoder_that_is_not_there_is_said_in_words(tmp_path):
    pytest.importorskip("transformers")
    with pytest.raises(MissingDataError, match="No sentence encoder at embeddings="):
        similarity(str(tmp_path))

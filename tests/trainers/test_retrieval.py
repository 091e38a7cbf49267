"""Similarities of a query with texts."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError, MissingDataError, UnknownNameError
from trainers.retrieval import RetrievalRule, nearest, similarity
from trainers.retrieval.rules import BM25, words

TEXTS = st.lists(st.lists(st.sampled_from("abcde"), max_size=6).map(" ".join), max_size=5)


LENGTH = RetrievalRule(
    "length", lambda encoder: lambda query, texts: [float(len(text) == len(query)) for text in texts]
)


def test_a_rule_of_ones_own_is_named_by_its_module():
    compare = similarity(rule="test_retrieval:LENGTH")
    assert nearest(compare, "abc", ["a", "xyz", "ab"], 1) == [1]
    with pytest.raises(UnknownNameError, match="bm25"):
        similarity(rule="bm52")
    with pytest.raises(ConfigError, match=r"must be a trainers\.retrieval\.RetrievalRule"):
        similarity(rule="test_retrieval:slow_bm25")


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


def test_an_encoder_that_is_not_there_is_said_in_words(tmp_path, monkeypatch):
    pytest.importorskip("transformers")

    asked = []
    monkeypatch.setattr("socket.getaddrinfo", lambda *args, **more: asked.append(args) or [])
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    for folder in (tmp_path, "enc"):
        with pytest.raises(MissingDataError, match="No sentence encoder at embeddings="):
            similarity(str(folder))
    assert asked == []


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A tiny encoder with random weights, whose words are those of two goals."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("encoder")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "put", "a", "hot", "cold", "egg", "mug"]
    (folder / "vocab.txt").write_text("\n".join(words))
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    transformers.BertModel(transformers.BertConfig(vocab_size=11, **size)).save_pretrained(folder)
    return str(folder)


def test_embeddings_compare_each_text_for_itself(encoder):
    compare = similarity(encoder)
    texts = ["put a hot egg", "put a cold mug", "put a hot egg"]
    got = compare("put a hot egg", texts)
    assert got[0] == got[2] == pytest.approx(1.0, abs=1e-6)
    assert got[1] < got[0]
    assert compare("put a hot egg", []).tolist() == []
    assert [float(compare("a mug", [text])[0]) for text in texts] == compare("a mug", texts).tolist()

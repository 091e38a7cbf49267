"""Terms of texts and their ranking: properties and the plain formula; test_shop_parity has Lucene's recordings."""

import math
import string
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skillc_gym.envs.webshop.search import analyzer, bm25, index_build
from skillc_gym.envs.webshop.search import searcher as search
from skillc_gym.envs.webshop.search.analyzer import analyze, stem, tokenize
from skillc_gym.envs.webshop.search.searcher import SearchIndex

STEMS = """
ties ti news new caresses caress agreed agre hopping hop filing file falling fall happy happi sky sky relational relat
technologies technolog adoption adopt controlling control is is ls ls possibly possibl gaming game dresses dress
"""


def test_terms():
    words = STEMS.split()
    assert list(map(stem, words[::2])) == words[1::2]
    assert analyze("This is not the one that's on it's way") == ["on", "wai"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Women's 7.5 Wide, 1,000 pcs", ["women", "7.5", "wide", "1,000", "pcs"]),
        ("usb3.0 / x-large", ["usb3.0", "x", "large"]),
        ("material:metal u.s.a. _a__b_", ["material:metal", "u.s.a", "_a__b_"]),
        ("it's THE Men\u2019S", ["it", "the", "men"]),
        ("★ best ☆ © ❤️ 👍🏽 🇩🇪", ["★", "best", "©", "❤️", "👍🏽", "🇩🇪"]),
        ("é中文 カタカナ ½ m²", ["é", "中", "文", "カタカナ", "m"]),
        ("İstanbul Я\u03a3", ["istanbul", "я\u03c3"]),
        ("", []),
        ("--- ... '", []),
    ],
)
def test_tokens(text, tokens):
    assert tokenize(text) == tokens


ANY = st.text() | st.text(string.printable) | st.text("ab1_.,:'\u2019\" \u0301\u200d\ufe0f❤👍🏻א中ア한ก🇩")


@given(ANY, ANY)
def test_a_space_always_separates(left, right):
    assert tokenize(f"{left} {right}") == tokenize(left) + tokenize(right)


@given(st.text(string.ascii_letters + string.digits + "_.,:;'\"-#* \n", max_size=60))
def test_both_patterns_agree_on_ascii(text):
    patterns = analyzer._ASCII_WORD, analyzer._word()
    ascii_tokens, tokens = ([token for token in pattern.findall(text) if token] for pattern in patterns)
    assert ascii_tokens == tokens


def test_long_tokens_are_cut():
    assert [len(token) for token in tokenize("b" * 600 + " c")] == [analyzer.MAX_TOKEN, analyzer.MAX_TOKEN, 90, 1]
    assert [len(token) for token in tokenize("𐐀" * 200)] == [127, 73]


@pytest.mark.parametrize("text", ["_", "a.", "a_", "_́", "✨\u200d", "'", "é", "🇺", "א\"'", "a" * 254 + "."])
def test_long_texts_take_no_longer_than_their_length(text):
    began = time.process_time()
    analyze(text * (100_000 // len(text)))
    assert time.process_time() - began < 10


def build(folder, texts):
    """An index in which the last of equals comes first."""
    builder = index_build.IndexBuilder(folder)
    for text in texts:
        builder.add(text)
    about = builder.finish(np.arange(len(texts), dtype=np.int32)[::-1])
    return SearchIndex(folder, about["documents"], len(texts))


def plain_scores(texts, query):
    """BM25 with exact lengths of up to 39 terms, in double precision."""
    documents = [Counter(analyze(text)) for text in texts]
    filled = [document for document in documents if document]
    average = sum(document.total() for document in filled) / max(len(filled), 1)
    scores = {}
    for term, count in Counter(analyze(query)).items():
        holding = sum(term in document for document in documents)
        weight = count * math.log(1 + (len(filled) - holding + 0.5) / (holding + 0.5))
        for place, document in enumerate(documents):
            if term in document:
                norm = 0.9 * (0.6 + 0.4 * document.total() / average)
                gained = weight * (1 - 1 / (1 + document[term] / norm))
                scores[place] = scores.get(place, 0.0) + gained
    return scores


WORDS = ("red", "blue", "shoe", "shoes", "lamp", "rug", "7.5", "the", "x")
words = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


@pytest.fixture
def narrow_windows(monkeypatch):
    """Short runs; windows of eight documents in groups of three, read by fives; tables and columns of most terms."""
    for name, value in {"_SMALL": -1, "_GROUP": 3, "_PIECE": 5}.items():
        monkeypatch.setattr(search, name, value)
    for name, value in {"_RUN_TERMS": 20, "WINDOW_BITS": 3, "_TABLED": 2, "DENSE_FROM": 9, "DENSE_SHARE": 3}.items():
        monkeypatch.setattr(index_build, name, value)


@pytest.mark.usefixtures("narrow_windows")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(words, min_size=1, max_size=80), query=words, k=st.integers(1, 12))
def test_scores_are_those_of_the_formula_and_windows_and_runs_change_nothing(tmp_path_factory, texts, query, k):
    index = build(tmp_path_factory.mktemp("index"), texts)
    terms = index._terms(query)
    ranked = index._ranked(*index._score_small(terms), len(texts)) if terms else []
    assert dict(ranked) == pytest.approx(plain_scores(texts, query), rel=1e-5)
    assert ranked == sorted(ranked, key=lambda found: (-found[1], -found[0]))
    assert index.top(query, k) == ranked[:k]
    assert not index._sums.any()


@pytest.mark.usefixtures("narrow_windows")
def test_threads_share_an_index_and_an_interrupted_search_leaves_no_trace(tmp_path, monkeypatch):
    index = build(tmp_path, [f"red w{place % 7} w{place % 5} shoe" for place in range(500)])
    queries = [f"w{number % 7} w{number % 5} shoe" for number in range(35)]
    found = [index.top(query) for query in queries]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(index.top, queries * 9)) == found * 9
    wanted = index.top("red shoe w3", 5)
    with monkeypatch.context() as patch:
        patch.setattr(index, "_complete", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            index.top("red shoe w3", 5)
    assert index.top("red shoe w3", 5) == wanted


def test_lengths_are_kept_in_a_byte():
    lengths = np.arange(2_000)
    kept = bm25.LENGTHS[bm25.norms(lengths)]
    assert (kept[:40] == lengths[:40]).all()
    assert (kept <= lengths).all()
    assert (kept[40:] > lengths[40:] * 0.88).all()
    assert bm25.norms(np.array([40, 41, 42, 2**31 - 1])).tolist() == [40, 40, 41, 255]


@pytest.mark.parametrize("query", ["", "the of", "nothingofthesort", "\0\ud800", "x" * 100_000])
def test_queries_that_find_nothing(tmp_path, query):
    assert build(tmp_path, ["red shoe", "", "blue shoe"]).top(query) == []


def test_only_so_many_distinct_terms_count(tmp_path):
    index = build(tmp_path, ["red shoe", "lamp"])
    many_terms = " ".join(f"t{number}" for number in range(search.MAX_TERMS))
    assert index.top(f"{many_terms} red") == []
    assert len(index.top(f"red {many_terms} lamp")) == 1

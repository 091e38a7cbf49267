"""Terms of texts: Lucene's recordings, facts about the algorithm, and properties of any text."""

from __future__ import annotations

import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.envs.webshop.search import analyzer
from skillc_gym.envs.webshop.search.analyzer import MAX_TOKEN, STOP_WORDS, analyze, stem, tokenize

any_text = st.text() | st.text(string.printable) | st.text("ab1_.,:'\u2019\" \u0301\u200d\ufe0f❤👍🏻א中ア한ก🇩")


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


STEMS = """
ties ti news new caresses caress agreed agre hopping hop filing file falling fall happy happi sky sky relational relat
technologies technolog adoption adopt controlling control is is ls ls possibly possibl gaming game dresses dress
"""


def test_stems():
    words = STEMS.split()
    assert list(map(stem, words[::2])) == words[1::2]


def test_stop_words_vanish_but_count_with_possessives():
    assert analyze("This is not the one that's on it's way") == ["on", "wai"]


@given(any_text)
def test_terms_are_plain(text):
    terms = analyze(text)
    assert not STOP_WORDS.intersection(token for token in tokenize(text) if token in terms and stem(token) == token)
    assert all(terms)
    assert len(terms) <= len(tokenize(text))


@given(any_text, any_text)
def test_a_space_always_separates(left, right):
    assert tokenize(f"{left} {right}") == tokenize(left) + tokenize(right)


@given(st.text(string.ascii_letters + string.digits + "_.,:;'\"-#* \n", max_size=60))
def test_both_patterns_agree_on_ascii(text):
    patterns = analyzer._ASCII_WORD, analyzer._word()
    ascii_tokens, tokens = ([token for token in pattern.findall(text) if token] for pattern in patterns)
    assert ascii_tokens == tokens


def test_long_tokens_are_cut():
    assert [len(token) for token in tokenize("b" * 600 + " c")] == [MAX_TOKEN, MAX_TOKEN, 90, 1]
    assert [len(token) for token in tokenize("𐐀" * 200)] == [127, 73]


@pytest.mark.parametrize(
    "text", [*["_", "a", "a.", "1,", "a_", "_́", "_ံ", "✨\u200d", "'", "é", "🇺", "א\"'", "́"], "a" * 254 + "."]
)
def test_long_texts_take_no_longer_than_their_length(text):
    began = time.process_time()
    analyze(text * (100_000 // len(text)))
    assert time.process_time() - began < 10

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.envs.webshop.goals.fuzzy import COLOR_WORDS, matches, normalize_color, token_set_ratio

texts = st.text(st.characters(codec="utf-8"), max_size=40)


def test_the_first_contained_color_stands_for_the_text():
    texts = ("light pink", "titanium", "stainless steel", "x-dark-1", "size 9")
    assert [normalize_color(text) for text in texts] == ["light", "tan", "steel", "dark", "size 9"]
    assert normalize_color(("color", "titanium")) == ("color", "titanium")  # only a whole part of a named option counts
    assert normalize_color(("color", "black")) == "black"
    assert len(COLOR_WORDS) == 102
    assert list(COLOR_WORDS) == sorted(COLOR_WORDS)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("machine wash", "wash machine", 100),
        ("wash", "machine wash", 100),
        ("", "", 0),
        ("!!", "wash", 0),
        ("plain", "5 ft x 7 ft", 0),
        ("nut free", ("flavor name", "unflavored"), 20),
        ("café", "cafe", 86),
        ("xa0green army", ("color", "army\xa0green"), 100),
        ("armygreen", ("color", "army\xa0green"), 64),
        ("tred", ("color", "\tred"), 100),
        ("u200bred", ("color", "\u200bred"), 100),
    ],
)
def test_scores(one, other, expected):
    assert token_set_ratio(one, other) == expected


@given(texts, texts)
def test_scores_lie_between_0_and_100_and_do_not_care_for_order_of_words(one, other):
    found = token_set_ratio(one, other)
    assert 0 <= found <= 100
    assert token_set_ratio(" ".join(reversed(one.split(" "))), other) == found


@given(st.lists(st.sampled_from(("red", "rug", "soft", "wool")), min_size=1), texts)
def test_a_text_whose_words_are_contained_matches(wanted, more):
    assert matches(" ".join([*wanted, more]), " ".join(wanted))


@given(st.text("ab ", max_size=12) | texts, st.text("ab ", max_size=12) | texts)
def test_matching_is_a_score_above_85(one, other):
    assert matches(one, other) == (token_set_ratio(one, other) > 85)


@given(
    st.lists(st.sampled_from(("machine", "machines", "wash", "washable", "rug", "rugs")), min_size=1, max_size=4),
    st.data(),
)
def test_matching_of_near_texts_is_a_score_above_85(wanted, data):
    near = data.draw(st.permutations([data.draw(st.sampled_from((word, f"{word}s", word[:-1]))) for word in wanted]))
    assert matches(" ".join(wanted), " ".join(near)) == (token_set_ratio(" ".join(wanted), " ".join(near)) > 85)

"""What a purchase is worth, which texts count as the same attribute or option, and the nouns of names."""

from __future__ import annotations

import importlib.util
import pickle
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_shop import make

from skillc_gym.envs.webshop.catalog import open_catalog
from skillc_gym.envs.webshop.goals.nouns import keep_nouns, noun_tagger, nouns_of
from skillc_gym.envs.webshop.goals.reward import (
    COLOR_WORDS,
    category_match,
    matches,
    normalize_color,
    score,
    title_score,
    token_set_ratio,
    type_score,
)
from skillc_gym.errors import ConfigError, MissingExtraError

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
        ("", "", 0),
        ("plain", "5 ft x 7 ft", 0),
        ("nut free", ("flavor name", "unflavored"), 20),
        ("café", "cafe", 86),
        ("xa0green army", ("color", "army\xa0green"), 100),
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


@given(
    st.lists(st.sampled_from(("machine", "machines", "wash", "washable", "rug", "rugs")), min_size=1, max_size=4),
    st.data(),
)
def test_matching_is_a_score_above_85(wanted, data):
    near = data.draw(st.permutations([data.draw(st.sampled_from((word, f"{word}s", word[:-1]))) for word in wanted]))
    assert matches(" ".join(wanted), " ".join(near)) == (token_set_ratio(" ".join(wanted), " ".join(near)) > 85)


GOAL = SimpleNamespace(
    query="area rugs",
    product_category="Home › Rugs › Wool",
    attributes=("machine wash", "easy clean"),
    options=(("color", "red"), ("size", "small")),
    price_upper=40.0,
)
NOUNS = ("alderon", "rug")
RUG = make(0, title="Alderon Rug", query="area rugs", product_category="Home › Rugs › Wool")


def rate(product=RUG, chosen=("red", "small"), price=12.0, goal=GOAL, nouns=NOUNS):
    return score(goal, product, chosen, price, goal_nouns=NOUNS, product_nouns=nouns)


def test_the_right_purchase_scores_one():
    reward = rate()
    assert reward.total == 1.0
    options = {"r_option": 1.0, "w_option": 0.4}
    matches = {"query_match": True, "category_match": True, "title_score": 1.0}
    rest = {"r_type": 1.0, "r_att": 1.0, "w_att": 0.4, "r_price": True, "w_price": 0.2}
    assert reward.parts() == {**options, **matches, **rest}


@pytest.mark.parametrize(
    ("changes", "total"),
    [
        ({"price": 40.01}, 0.8),
        ({"chosen": ()}, 0.6),
        ({"chosen": ("light red", "red", "small", "blue")}, 1.0),
        ({"product": replace(RUG, attributes=("machine wash",))}, 0.8),
        ({"product": replace(RUG, attributes=(), description="EASY CLEAN")}, 1.0),
        ({"nouns": ("lamp",)}, 0.0),
    ],
)
def test_what_a_purchase_loses(changes, total):
    assert rate(**changes).total == pytest.approx(total)


def test_what_the_goals_options_are_changes_their_part():
    plain, human, named = (
        SimpleNamespace(**{**vars(GOAL), "options": options})
        for options in ((), ("rectangular",), (("shape", "rectangular"),))
    )
    parts = rate(goal=plain).parts()
    assert "r_option" not in parts
    assert parts["w_att"] == pytest.approx(2 / 3)
    # Values are reduced to colours ("tan"), a named option only where a whole part is one.
    assert rate(goal=human, chosen=("rectangular",)).r_option == 1.0
    assert rate(goal=named, chosen=("rectangular",)).r_option == 0.0


def test_how_well_kinds_of_products_fit():
    assert category_match("A › B › C", " B ›A")
    assert not category_match("A › B", "A › C")
    assert title_score((), ("rug",)) == 0.2
    assert title_score(("rug", "rug"), ("rug",)) == 0.5
    # Too few shared nouns overrule the same query.
    for title, query, fits in ((0.0, 1, 0.0), (0.09, 1, 0.1), (0.15, 1, 1.0), (0.15, 0, 0.5), (0.21, 0, 1.0)):
        assert type_score(query_match=bool(query), category_match=False, title=title) == fits


@given(
    st.lists(st.sampled_from(("red", "small", "titanium", "x")), max_size=4),
    st.floats(0, 100),
    st.lists(st.sampled_from(("alderon", "rug", "lamp")), max_size=3),
)
def test_scores_lie_in_the_unit_interval_and_more_choices_never_hurt(chosen, price, nouns):
    reward = rate(chosen=tuple(chosen), price=price, nouns=tuple(nouns))
    assert 0.0 <= reward.total <= 1.0
    assert rate(chosen=(*chosen, "red"), price=price, nouns=tuple(nouns)).total >= reward.total


def test_function_words_descriptions_and_numbers_are_no_nouns():
    found = noun_tagger().nouns("Velloset Compact Stereo Subwoofer, Gift for Women - 2 Pack, Off-White (2022)")
    assert found == ("velloset", "stereo", "subwoofer", "gift", "women", "pack", "off")
    assert noun_tagger().nouns("Alpha alpha rug") == ("alpha", "alpha", "rug")


@given(st.text())
def test_any_name_has_nouns_in_lower_case(name):
    tagger = noun_tagger()
    assert tagger.nouns(name) == tuple(tagger.find(name))
    assert all(noun and noun == noun.lower() for noun in tagger.nouns(name.lower()))


def test_the_default_does_not_depend_on_what_is_installed():
    assert noun_tagger().id == noun_tagger("builtin").id == "builtin-1"
    assert noun_tagger() is noun_tagger("builtin")
    assert pickle.loads(pickle.dumps(noun_tagger())).nouns("Rug") == ("rug",)


def test_a_function_becomes_a_tagger_with_an_id():
    def last_word(name):
        return name.lower().split()[-1:]

    tagger = noun_tagger(last_word)
    assert tagger.nouns("Red Rug") == ("rug",)
    assert "last_word" in tagger.id
    last_word.id = "last-1"
    assert noun_tagger(last_word).id == "last-1"
    assert noun_tagger(tagger) is tagger


def test_what_is_no_tagger_is_refused_and_a_missing_model_names_the_extra():
    with pytest.raises(ConfigError, match="noun_tagger"):
        noun_tagger(3)
    with pytest.raises(MissingExtraError, match=r"skillc-gym\[spacy\]"):
        noun_tagger("en_no_such_model")


@pytest.mark.skipif(importlib.util.find_spec("en_core_web_sm") is None, reason="spaCy's model is not installed")
def test_spacy_finds_nouns():
    tagger = noun_tagger("spacy")
    assert "rug" in tagger.nouns("a soft rug")
    assert tagger.id.startswith("spacy-en_core_web_sm-")


def test_kept_nouns_are_those_of_the_tagger():
    catalog, tagged = open_catalog("generated", size=30, seed=5), []

    def slow(name):
        tagged.append(name)
        return name.lower().split()

    slow.id = "slow/1"
    folder = keep_nouns(catalog, noun_tagger(slow))
    assert folder.name == "nouns-slow_1-1"
    assert len(tagged) == 30
    kept = nouns_of(catalog, noun_tagger(slow))
    assert [kept(index) for index in range(30)] == [tuple(name.lower().split()) for name in tagged]
    assert keep_nouns(catalog, noun_tagger(slow)) == folder
    assert len(tagged) == 30
    nobodys = noun_tagger(lambda name: [])
    with pytest.raises(ConfigError, match="'id'"):
        keep_nouns(catalog, nobodys)
    assert nouns_of(catalog, nobodys)(0) == ()

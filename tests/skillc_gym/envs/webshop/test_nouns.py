from __future__ import annotations

import importlib.util
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.envs.webshop.catalog import open_catalog
from skillc_gym.envs.webshop.goals.nouns import (
    keep_nouns,
    noun_tagger,
    nouns_of,
)
from skillc_gym.errors import ConfigError, MissingExtraError


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


@pytest.fixture
def catalog():
    return open_catalog("generated", size=30, seed=5)


def test_kept_nouns_are_those_of_the_tagger(catalog):
    tagged = []

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


def test_nobodys_nouns_are_not_kept(catalog):
    tagger = noun_tagger(lambda name: [])
    with pytest.raises(ConfigError, match="'id'"):
        keep_nouns(catalog, tagger)
    assert nouns_of(catalog, tagger)(0) == ()

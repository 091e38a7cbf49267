from __future__ import annotations

import pytest

from skillc_gym.envs.webshop.catalog import open_catalog
from skillc_gym.envs.webshop.goals.nouns import keep_nouns, noun_tagger, nouns_of
from skillc_gym.errors import ConfigError


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


def test_without_kept_nouns_names_are_tagged(catalog):
    tagger = noun_tagger()
    assert nouns_of(catalog, tagger)(3) == tagger.nouns(catalog.product(3).title) != ()

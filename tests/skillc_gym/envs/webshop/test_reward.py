from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_shop import make

from skillc_gym.envs.webshop.goals.reward import category_match, score, title_score, type_score

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
        ({"price": 40.0}, 1.0),
        ({"price": 40.01}, 0.8),
        ({"chosen": ("red",)}, 0.8),
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


@pytest.mark.parametrize(
    ("title", "query", "expected"),
    [(0.0, True, 0.0), (0.09, True, 0.1), (0.15, True, 1.0), (0.15, False, 0.5), (0.21, False, 1.0)],
)
def test_few_shared_nouns_overrule_the_query(title, query, expected):
    assert type_score(query_match=query, category_match=False, title=title) == expected


def test_categories_match_by_two_parts_and_a_name_without_nouns_counts_a_fifth():
    assert category_match("A › B › C", " B ›A")
    assert not category_match("A › B", "A › C")
    assert title_score((), ("rug",)) == 0.2
    assert title_score(("rug", "rug"), ("rug",)) == 0.5


@given(
    st.lists(st.sampled_from(("red", "small", "titanium", "x")), max_size=4),
    st.floats(0, 100),
    st.lists(st.sampled_from(("alderon", "rug", "lamp")), max_size=3),
)
def test_scores_lie_in_the_unit_interval_and_more_choices_never_hurt(chosen, price, nouns):
    reward = rate(chosen=tuple(chosen), price=price, nouns=tuple(nouns))
    assert 0.0 <= reward.total <= 1.0
    assert rate(chosen=(*chosen, "red"), price=price, nouns=tuple(nouns)).total >= reward.total

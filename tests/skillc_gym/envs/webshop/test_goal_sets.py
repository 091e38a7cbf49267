"""Goals: order, splits and prices; what a purchase is worth, which texts count as the same, the nouns of names."""

import importlib.util
import itertools
import pickle
import random
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_shop import SmallShop, make

from skillc_gym.envs.webshop.catalog import Catalog, build_catalog, open_catalog
from skillc_gym.envs.webshop.catalog.generate import GeneratedSource
from skillc_gym.envs.webshop.goals.goals import NO_LIMIT, combination
from skillc_gym.envs.webshop.goals.nouns import keep_nouns, noun_tagger, nouns_of
from skillc_gym.envs.webshop.goals.reward import (
    category_match,
    matches,
    normalize_color,
    score,
    title_score,
    token_set_ratio,
    type_score,
)
from skillc_gym.envs.webshop.goals.tables import Facts, draw_limit, open_goals, synthetic_table
from skillc_gym.errors import CatalogError, ConfigError, MissingDataError, MissingExtraError, UnknownNameError

MANY = SmallShop(makers=[f"Maker{number}" for number in range(100)])


def test_every_combination_of_options_is_a_goal_and_human_goals_keep_their_words(shop):
    goals = open_goals(shop)
    assert len(goals) == sum(product.combinations for product in shop.products)
    texts = "".join(goals.goal(index).instruction for index in goals.range)
    for said in (" with color: red, and size: small, and price lower than", ", and price"):
        assert f"Find me machine wash area rugs{said}" in texts
    goal = open_goals(shop, kind="human").goal(0)
    assert goal.instruction.startswith("i want a machine wash thing for my home, and price lower than ")
    assert (goal.options, goal.weight) == (("red",), 1.0)


def test_a_product_without_instruction_or_with_an_empty_group_has_no_goal():
    odd = [{"instruction": None}, {"options": {"color": ()}}, {}]
    goals = open_goals(SmallShop(makers=(), extra=odd))
    assert [goals.goal(index).asin for index in goals.range] == ["B000000002"]
    with pytest.raises(MissingDataError, match="no synthetic instruction"):
        open_goals(SmallShop(makers=(), extra=odd[:2]))


def test_splits_are_disjoint_and_complete():
    parts = [set(open_goals(MANY, split=split).task_ids) for split in ("test", "valid", "train")]
    assert [len(part) for part in parts[:2]] == [500, 1000]
    assert sum(map(len, parts)) == len(set.union(*parts)) == len(open_goals(MANY))
    parts = [open_goals(MANY, split=split, order="verl-agent").range for split in ("test", "valid", "train")]
    assert parts == [range(500), range(500), range(500, len(open_goals(MANY)))]


@pytest.mark.parametrize(
    "task_id", ["synthetic/-1", "synthetic/99999", "human/0", "synthetic/01", "synthetic/x", "", "synthetic/²"]
)
def test_unknown_task_ids_are_refused(shop, task_id):
    with pytest.raises(UnknownNameError, match="task id"):
        open_goals(shop).index(task_id)


@given(st.floats(0, 2000), st.integers(0, 2**32))
def test_limits_are_two_to_four_tens_above_the_price(price, seed):
    limit = draw_limit(price, random.Random(seed))
    if price < 980:
        assert limit % 10 == 0
        assert price + 1e-9 < limit <= min(990, price + 40 + 1e-9)
    else:
        assert limit == NO_LIMIT


def test_prices_are_drawn_between_both_ends_and_the_seed_moves_them_but_not_the_order():
    pricing = [(), (5.0,), *[(9.0, 5.0)] * 100]
    shop = SmallShop(makers=(), extra=[{"pricing": one} for one in pricing])
    prices = Facts(shop).prices(random.Random(0)).tolist()
    assert (prices[:2], len(set(prices[2:]))) == ([100.0, 5.0], 100)
    assert all(5.0 <= price <= 9.0 for price in prices[2:])
    one, other = synthetic_table(Facts(MANY), seed=0), synthetic_table(Facts(MANY), seed=1)
    moved = {name: (column != getattr(other, name)).any() for name, column in one._asdict().items()}
    assert moved == {**dict.fromkeys(one._fields, False), "prices": True, "price_upper": True}
    assert open_goals(MANY, seed=np.int64(3)) is open_goals(MANY, seed=3)


@given(st.dictionaries(st.sampled_from("abc"), st.lists(st.sampled_from("xyz"), min_size=1, max_size=3)), st.data())
def test_combinations_run_like_nested_loops(options, data):
    names = sorted(options)
    expected = list(itertools.product(*(options[name] for name in names)))
    assert make(0, options=options).combinations == len(expected)
    number = data.draw(st.integers(0, len(expected) - 1))
    assert combination(options, number) == tuple(zip(names, expected[number], strict=True))


def test_draws_follow_the_weights_and_upstreams_are_one_place_late(shop):
    goals = open_goals(shop)
    drawn, late = (
        np.array([goals.draw(np.random.default_rng(seed), skewed=skewed) for seed in range(3000)])
        for skewed in (False, True)
    )
    weights = goals.table.weight / goals.table.weight.sum()
    assert abs(np.bincount(drawn, minlength=len(goals)) / 3000 - weights).max() < 0.02
    assert (late == np.minimum(drawn + 1, len(goals) - 1)).all()


# What a purchase is worth ------------------------------------------------------------------------------------------

texts = st.text(st.characters(codec="utf-8"), max_size=40)


def test_the_first_contained_color_stands_for_the_text():
    texts = ("light pink", "titanium", "stainless steel", "x-dark-1", "size 9")
    assert [normalize_color(text) for text in texts] == ["light", "tan", "steel", "dark", "size 9"]
    assert normalize_color(("color", "titanium")) == ("color", "titanium")  # only a whole part of a named option counts
    assert normalize_color(("color", "black")) == "black"


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


@given(st.lists(st.sampled_from(("machine", "machines", "wash", "rugs")), min_size=1, max_size=4), texts, st.data())
def test_matching_is_a_score_above_85(wanted, more, data):
    near = data.draw(st.permutations([data.draw(st.sampled_from((word, f"{word}s", word[:-1]))) for word in wanted]))
    text, other = " ".join(wanted), " ".join(near)
    assert matches(text, other) == (token_set_ratio(text, other) > 85)
    assert matches(f"{text} {more}", text), "whose words are contained"


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


@pytest.mark.parametrize(
    ("changes", "total"),
    [
        ({}, 1.0),
        ({"price": 40.0}, 1.0),
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
    assert " ".join(found) == "velloset stereo subwoofer gift women pack off"
    assert noun_tagger().nouns("Alpha alpha rug") == ("alpha", "alpha", "rug")


@given(st.text())
def test_any_name_has_nouns_in_lower_case(name):
    tagger = noun_tagger()
    assert tagger.nouns(name) == tuple(tagger.find(name))
    assert all(noun and noun == noun.lower() for noun in tagger.nouns(name.lower()))


def test_the_default_does_not_depend_on_what_is_installed_and_a_function_becomes_a_tagger_with_an_id():
    assert noun_tagger().id == "builtin-1"
    assert noun_tagger() is noun_tagger("builtin")
    assert pickle.loads(pickle.dumps(noun_tagger())).nouns("Rug") == ("rug",)
    tagger = noun_tagger(str.split)
    assert (tagger.nouns("Red Rug"), tagger.id) == (("Red", "Rug"), "function-str.split")
    assert noun_tagger(tagger) is tagger
    for wrong in (3, "../model", "a..b", ""):
        with pytest.raises(ConfigError, match="noun_tagger"):
            noun_tagger(wrong)
    for wrong in (str.lower, str.encode, lambda name: None):
        with pytest.raises(ConfigError, match="gives the nouns of a name"):
            noun_tagger(wrong).nouns("rug")
    with pytest.raises(MissingExtraError, match=r"skillc-gym\[spacy\]"):
        noun_tagger("en_no_such_model")


@pytest.mark.skipif(importlib.util.find_spec("en_core_web_sm") is None, reason="spaCy's model is not installed")
def test_spacy_finds_nouns():
    tagger = noun_tagger("spacy")
    assert "rug" in tagger.nouns("a soft rug")
    assert tagger.id.startswith("spacy-en_core_web_sm-")


def halved(folder):
    (folder / "nouns.bin").write_bytes((folder / "nouns.bin").read_bytes()[:40])


def emptied(folder):
    (folder / "nouns.bin").write_bytes(b"")


def test_kept_nouns_are_those_of_the_tagger():
    catalog, tagged = open_catalog("generated", size=30, seed=5), []

    def slow(name):
        tagged.append(name)
        return name.lower().split()

    slow.id = "slow/1"
    folder = keep_nouns(catalog, noun_tagger(slow))
    assert folder.name.startswith("nouns-slow_1-")
    kept = nouns_of(catalog, noun_tagger(slow))
    assert [kept(index) for index in range(30)] == [tuple(name.lower().split()) for name in tagged]
    assert keep_nouns(catalog, noun_tagger(slow)) == folder
    assert len(tagged) == 30
    alike = noun_tagger(lambda name: ["x"])
    alike.id = "slow 1"  # the same but for what no folder's name may hold
    assert nouns_of(catalog, alike)(0) == ("x",)
    nobodys = noun_tagger(lambda name: [])
    with pytest.raises(ConfigError, match="'id'"):
        keep_nouns(catalog, nobodys)
    assert nouns_of(catalog, nobodys)(0) == ()


@pytest.mark.parametrize("damage", [lambda folder: (folder / "ends.npy").unlink(), halved, emptied])
def test_damaged_nouns_are_named(damage, tmp_path):
    build_catalog(GeneratedSource(size=30, seed=6), tmp_path / "shop")
    catalog = Catalog(tmp_path / "shop")
    damage(keep_nouns(catalog, noun_tagger()))
    with pytest.raises(CatalogError, match=r"nouns in .* are damaged .*delete that folder"):
        nouns_of(catalog, noun_tagger())

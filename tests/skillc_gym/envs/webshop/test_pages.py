from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_shop import SmallShop

from skillc_gym.envs.webshop.shop import nodes
from skillc_gym.envs.webshop.shop.compat import FIXED, UPSTREAM, fixes
from skillc_gym.envs.webshop.shop.html import View, page_document, page_fragment
from skillc_gym.envs.webshop.shop.nodes import Node
from skillc_gym.envs.webshop.shop.pages import HOME, Page, parse_action, read_action, url_of
from skillc_gym.envs.webshop.shop.store import Store

GREEDY = re.compile(r"(.+)\[(.+)\]")
brackets = st.text(st.sampled_from("[]ab \n"), max_size=24)
ODD = [
    {"title": "Boxes", "options": {"form": ('12" [round]', "[b]", "plain"), "color": ("red", "röd")}},
    {"title": "Twins", "options": {"left": ("small", "wide"), "right": ("small", "tall")}},
    {"title": "Labels", "options": {"go": ("< prev", "buy now", "features", "next >", "search", "attributes")}},
    {"title": "Lower", "asin": "b0lowcase"},
    {
        "title": " Blank \n ",
        "description": " \n ",
        "bullets": ("", "x"),
        "options": {"": ("one", "one"), "color": ("color",)},
    },
]


@given(brackets | st.text())
def test_parsing_equals_the_greedy_pattern(action):
    found = GREEDY.match(action)
    assert parse_action(action) == (found and (found[1], found[2].lower()))


def test_parsing_a_hundred_thousand_brackets_takes_no_time():
    assert parse_action("[" * 100_000) is None
    assert parse_action("search[" + "]" * 100_000) == ("search", "]" * 99_999)


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ('click[12" [round]]', ("click", '12" [round]')),
        ("click[]", None),
        ("search[A]", ("search", "a")),
        ("click[A]b", ("click", "a")),
        ("Click[a]", None),
    ],
)
def test_a_click_on_brackets(action, expected):
    assert read_action(action, brackets=True) == expected


@pytest.mark.parametrize(
    ("written", "shown"),
    [("", []), ("\n ", []), ("\t ", [" "]), (" x ", [" x "]), ("\u00a0", ["\u00a0"]), ("\v", ["\v"])],
)
def test_blank_texts_vanish_or_shrink(written, shown):
    assert [node.text for node in nodes.shown([Node("text", written)])] == shown


def test_texts_are_stripped_of_unicode_space():
    assert nodes.page_text([Node("text", "\u00a0a\u2003"), Node("button", "b")]) == "a [SEP] b"


def test_rich_text_says_later_choices_first():
    found = [Node("button", "Go"), Node("option", "red", "color"), Node("option", "big", "size"), Node("link", "B0")]
    assert nodes.rich_text(found, lambda node: node.kind == "option") == (
        "You have clicked big.\nYou have clicked red.\n[button] Go [button_]\n"
        "  [clicked button] red [clicked button_]\n  [clicked button] big [clicked button_]\n\n[button] B0 [button_]\n"
    )


def test_the_options_of_a_purchase_are_safe_for_html():
    page = Page("done", product=0, options=(("b", "<it's & so>"), ("a", "é")))
    texts = [node.text for node in nodes.done_nodes(page, "B0")]
    assert '{"a": "\\u00e9", "b": "\\u003cit\\u0027s \\u0026 so\\u003e"}' in texts


@pytest.mark.parametrize(
    ("page", "path"),
    [
        (HOME, "7"),
        (Page("results", "red  rug", 2), "search_results/7/red++rug/2"),
        (Page("item", "rug", 1, (), 0, "", (("color", "röd"),)), 'item_page/7/B0/rug/1/{"color": "r\\u00f6d"}'),
        (Page("sub", "rug", 1, (), 0, "Features", (("a", "b"),)), "item_sub_page/7/B0/rug/1/Features/{'a': 'b'}"),
        (Page("done", "rug", 1, (), 0), "done/7/B0/{}"),
    ],
)
def test_addresses(page, path):
    assert url_of(page, "7", "B0") == f"http://127.0.0.1:3000/{path}"


def test_an_empty_value_is_listed_and_cannot_be_clicked():
    shop = SmallShop(makers=(), extra=[{"options": {"color": ("", "red"), "size": ("", "red")}}])
    for compat in ("upstream", "fixed"):
        store = Store(shop, fixes(compat))
        body = store.body(Page("item", product=0))
        assert body.clickables[-2:] == ("", "red")
        assert "click[]" not in body.actions
        assert store.act(Page("item", product=0), "click[]", np.random.default_rng(0)) is None


def test_ids_that_differ_in_case_only():
    shop = SmallShop(makers=(), extra=[{"asin": "B0TWIN"}, {"asin": "b0twin"}])
    page = Page("results", hits=(0, 1), number=1)
    opened = {
        compat: Store(shop, fixes(compat)).act(page, "click[b0twin]", np.random.default_rng(0)).product
        for compat in ("upstream", "fixed")
    }
    assert opened == {"upstream": 0, "fixed": 1}


@pytest.mark.parametrize(("terms", "cut"), [(1024, False), (1025, True)])
def test_too_many_terms_are_told_however_short_they_are(terms, cut):
    words = "".join(chr(0x4E00 + number) for number in range(terms))
    page = Store(SmallShop(), FIXED).act(HOME, f"search[{words}]", np.random.default_rng(0))
    assert page.cut is cut
    assert (Store(SmallShop(), UPSTREAM).act(HOME, f"search[{words}]", np.random.default_rng(0)) is None) is cut


class Walk:
    """A customer in the odd shop."""

    def __init__(self, compat, title=None):
        shop = SmallShop(makers=("Alderon",), extra=ODD)
        self.store = Store(shop, fixes(compat), attributes=False)
        self.page = HOME
        if title is not None:
            self.do(f"search[{title}]")
            index = next(product.index for product in shop.products if product.title.strip() == title)
            self.page = self.page.item(index)

    def do(self, *actions):
        for action in actions:
            page = self.store.act(self.page, action, np.random.default_rng(0))
            self.page, self.moved = (self.page, False) if page is None else (page, True)
        return self.page


@pytest.mark.parametrize("compat", ["upstream", "fixed"])
def test_options_are_chosen_and_kept_on_sub_pages(compat):
    walk = Walk(compat, "Boxes")
    assert walk.do("click[red]", "click[plain]", "click[röd]").options == (("color", "röd"), ("form", "plain"))
    assert walk.do("click[features]").sub == "Features"
    assert walk.do("click[< prev]").options == (("color", "röd"), ("form", "plain"))
    assert walk.do("click[< prev]").options == ()
    assert walk.page.kind == "results"
    assert walk.do("click[back to search]") == HOME


@pytest.mark.parametrize("compat", ["upstream", "fixed"])
def test_pages_of_results_never_end(compat):
    walk = Walk(compat)
    walk.do("search[home]", *["click[next >]"] * 7)
    assert (walk.page.number, walk.store.body(walk.page).clickables) == (8, ("back to search", "< prev", "next >"))
    assert walk.do(*["click[< prev]"] * 9).number == 1


@pytest.mark.parametrize("compat", ["upstream", "fixed"])
@pytest.mark.parametrize(
    "action", ["click[search]", "click[ buy now ]", "Click[features]", "buy now", "search[]", "x search[a]"]
)
def test_actions_that_change_nothing(compat, action):
    walk = Walk(compat, "Boxes")
    before = walk.page
    assert walk.do(action) is before


@pytest.mark.parametrize(("compat", "reached"), [("upstream", False), ("fixed", True)])
def test_bracketed_values(compat, reached):
    walk = Walk(compat, "Boxes")
    walk.do('click[12" [round]]')
    assert walk.moved is reached


@pytest.mark.parametrize(
    ("compat", "first", "second"),
    [
        ("upstream", {"right": "small"}, {"right": "small"}),
        ("fixed", {"left": "small"}, {"left": "small", "right": "small"}),
    ],
)
def test_values_of_two_groups(compat, first, second):
    walk = Walk(compat, "Twins")
    assert dict(walk.do("click[small]").options) == first
    assert dict(walk.do("click[small]").options) == second


@pytest.mark.parametrize("compat", ["upstream", "fixed"])
def test_values_that_are_labels_navigate(compat):
    walk = Walk(compat, "Labels")
    item = walk.page
    assert walk.do("click[next >]").options == (("go", "next >"),)
    assert walk.do("click[attributes]").sub == "Attributes"
    walk.page = item
    assert walk.do("click[search]") is item
    assert walk.do("click[< prev]").kind == "results"


@pytest.mark.parametrize(("compat", "reached"), [("upstream", False), ("fixed", True)])
def test_asins_in_lower_case(compat, reached):
    walk = Walk(compat)
    walk.do("search[lower]", "click[b0lowcase]")
    assert walk.moved is reached


@pytest.mark.parametrize(("compat", "number"), [("upstream", 0), ("fixed", 1)])
def test_a_query_that_looks_like_an_address(compat, number):
    walk = Walk(compat)
    walk.do("search[search_results boxes]", "click[b000000004]", "click[< prev]")
    assert walk.page.number == number


@pytest.mark.parametrize(
    ("query", "found"), [("<r>", None), ("<c> beauty", 1), ("<c> beauty x", 1), ("<q> area rugs", 1), ("<q>", 0)]
)
def test_hidden_commands_of_the_search(query, found):
    assert Walk("fixed").do(f"search[{query}]").hits == tuple(SmallShop(("Alderon",), ODD).search(query))
    walk = Walk("upstream")
    page = walk.do(f"search[{query}]")
    assert (len(page.hits) if walk.moved else None) == found


@pytest.mark.parametrize("query", ["<a> x", "<c>", "<a>"])
def test_where_upstream_raises_nothing_changes(query):
    walk = Walk("upstream")
    assert walk.do(f"search[{query}]") is HOME


@pytest.mark.parametrize(("compat", "moved"), [("upstream", False), ("fixed", True)])
def test_queries_of_too_many_terms_are_cut(compat, moved):
    walk = Walk(compat)
    walk.do(f"search[{' '.join(f'w{number}' for number in range(1024))}]")
    assert (walk.moved, walk.page.cut) == (True, False)
    walk.do(f"search[{' '.join(f'w{number}' for number in range(1025))}]")
    assert (walk.moved, walk.page.cut) == (moved, moved)
    assert walk.do(f"search[{'rug ' * 5000}]").cut is False


def test_random_results_are_drawn_again_at_every_turn():
    store = Store(SmallShop(makers=[f"M{number}" for number in range(20)]), UPSTREAM)
    rng = np.random.default_rng(0)
    first = store.act(HOME, "search[<r>]", rng)
    second = store.act(first, "click[next >]", rng)
    assert len(set(first.hits)) == len(second.hits) == 50
    assert first.hits != second.hits


def test_marks_follow_the_address_or_the_choice():
    page = Page("item", 'a "red" rug', 1, (0,), 4, "", (("color", "röd"),), frozenset({4}))
    shown = {}
    for name, chosen in (("fixed", FIXED), ("upstream", UPSTREAM)):
        store = Store(SmallShop(makers=("Alderon",), extra=ODD), chosen)
        clicked = store.clicked(page, store.url(page, "0"))
        shown[name] = [node.text for node in store.nodes(page) if node.kind == "option" and clicked(node)]
    assert shown == {"fixed": ["röd"], "upstream": ["red"]}


def test_followed_links_are_marked_until_the_index_page():
    walk = Walk("fixed")
    walk.do("search[boxes]", "click[b000000004]", "search[boxes]")
    clicked = walk.store.clicked(walk.page, "")
    assert [node.text for node in walk.store.nodes(walk.page) if node.kind == "link" and clicked(node)] == [
        "B000000004"
    ]
    walk.do("click[back to search]", "search[boxes]")
    assert not walk.page.visited


class Seen(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)


@pytest.mark.parametrize("title", ["Boxes", "Twins", "Labels", "Blank"])
def test_pages_as_html_hold_the_names_that_agents_look_for(title):
    walk = Walk("fixed", title)
    walk.do("click[red]", "click[small]")
    product = walk.store.product(walk.page)
    seen = Seen(page_document(page_fragment(walk.page, walk.store.nodes(walk.page), "a <b>", View(product))))
    radios = [found for tag, found in seen.tags if tag == "input"]
    assert [radio["value"] for radio in radios] == [value for values in product.options.values() for value in values]
    assert {(radio["name"], radio["value"]) for radio in radios if "checked" in radio} == set(walk.page.options)
    assert "a <b>" in seen.texts
    assert [found["class"] for tag, found in seen.tags if tag == "button"] == ["btn"] * 6


def test_the_reward_stands_where_scripts_look():
    page = Page("done", product=0, reward=0.5)
    text = page_fragment(page, nodes.done_nodes(page, "B0"), "", View())
    seen = Seen(text)
    assert ("h3", "reward") in [(tag, found.get("id")) for tag, found in seen.tags]
    assert "<pre>0.5</pre>" in text

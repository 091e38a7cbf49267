"""Pages: what stands on them, where actions lead, what each fix changes, addresses that lead back, and their HTML."""

import random
import re
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from page_reader import Reader, as_text
from small_shop import ODD, SmallShop, play

from skillc_gym.envs.webshop.catalog.catalog import escape_marks
from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.envs.webshop.shop import nodes
from skillc_gym.envs.webshop.shop.compat import FIXED, UPSTREAM, fixes
from skillc_gym.envs.webshop.shop.nodes import Node, View, page_document, page_fragment
from skillc_gym.envs.webshop.shop.pages import HOME, MAX_ACTION, Page, parse_action, read_action, read_address
from skillc_gym.envs.webshop.shop.store import Store, open_store

GREEDY = re.compile(r"(.+)\[(.+)\]")
brackets = st.text(st.sampled_from("[]ab \n"), max_size=24)


@given(brackets | st.text())
def test_parsing_equals_the_greedy_pattern(action):
    found = GREEDY.match(action)
    assert parse_action(action) == (found and (found[1], found[2].lower()))


def test_clicks_on_brackets_and_very_many_of_them():
    read = partial(read_action, brackets=True)
    assert read("search[" + "]" * 100_000) == ("search", "]" * 99_999)
    assert read('click[12" [round]]') == ("click", '12" [round]')
    assert (read("search[A]"), read("click[A]b")) == (("search", "a"), ("click", "a"))
    assert read("[" * 100_000) is read("click[]") is read("Click[a]") is None


@pytest.mark.parametrize(
    ("written", "shown"),
    [("", []), ("\n ", []), ("\t ", [" "]), (" x ", [" x "]), ("\u00a0", ["\u00a0"]), ("\v", ["\v"])],
)
def test_blank_texts_vanish_or_shrink(written, shown):
    assert [node.text for node in nodes.shown([Node("text", written)])] == shown


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


ODD_SHOP = SmallShop(makers=("Alderon", "Brivane"), extra=ODD)


class Walk:
    """A customer in the odd shop, whose odd products begin at index 8."""

    def __init__(self, compat, title=None, shop=ODD_SHOP):
        self.store = Store(shop, fixes(compat))
        self.page, self.generator = HOME, np.random.default_rng(0)
        if title is not None:
            place = next(place for place, product in enumerate(ODD) if product["title"].strip() == title)
            self.page = self.do(f"search[{title}]").item(8 + place)

    def do(self, *actions):
        for action in actions:
            page = self.store.act(self.page, action, self.generator)
            self.page, self.moved = (self.page, False) if page is None else (page, True)
        return self.page


@pytest.mark.parametrize("compat", ["upstream", "fixed"])
def test_options_are_kept_on_sub_pages_and_impossible_actions_change_nothing(compat):
    walk = Walk(compat, "Boxes")
    chosen = walk.do("click[red]", "click[plain]", "click[röd]")
    assert chosen.options == (("color", "röd"), ("form", "plain"))
    for action in ("click[search]", "click[ buy now ]", "Click[features]", "buy now", "search[]", "x search[a]"):
        assert walk.do(action) is chosen
    assert walk.do("click[features]").sub == "Features"
    assert walk.do("click[< prev]") == chosen
    assert walk.do("click[< prev]") == Page("results", "boxes", 1, walk.page.hits, visited=frozenset({8}))
    assert walk.do("click[back to search]") == HOME


@pytest.mark.parametrize("compat", ["upstream", "fixed"])
def test_an_empty_value_is_listed_and_cannot_be_clicked(compat):
    walk = Walk(compat, shop=SmallShop(makers=(), extra=[{"options": {"color": ("", "red"), "size": ("", "red")}}]))
    body = walk.store.body(walk.do("search[thing]", "click[b000000000]"))
    assert (body.clickables[-2:], "click[]" in body.actions) == (("", "red"), False)
    walk.do("click[]")
    assert not walk.moved


@pytest.mark.parametrize(("compat", "reached"), [("upstream", False), ("fixed", True)])
def test_bracketed_values_and_asins_in_lower_case(compat, reached):
    walk = Walk(compat, "Boxes")
    walk.do('click[12" [round]]')
    assert walk.moved is reached
    walk.do("search[lower]", "click[b0lowcase]")
    assert walk.moved is reached


def test_a_value_that_goes_on_behind_a_line_is_not_the_one_that_ends_there():
    values = ("x", "x]\ny", "a\nb")
    store = Store(SmallShop(makers=(), extra=[{"title": "Odd", "options": {"form": values}}]), FIXED)
    chosen = {"click[x]\ny": "x", "click[x]\ny!": "x", "click[a\nb!": None}
    for action, value in {**{f"click[{value}]": value for value in values}, **chosen}.items():
        page = store.act(HOME.item(0), action, np.random.default_rng(0))
        assert (page and page.options) == (value and (("form", value),))


def test_ids_that_differ_in_case_alone_are_all_reached():
    walk = Walk("fixed", shop=SmallShop(makers=(), extra=[{"asin": asin, "title": "Odd"} for asin in ("b6", "B6")]))
    results, store = walk.do("search[odd]"), walk.store
    assert store.body(results).clickables.count("b6") == 1
    assert [walk.do("click[b6]").product, walk.do("click[< prev]", "click[b6]").product] == [0, 1]
    links = [store.link(results, listing, np.random.default_rng(0)) for listing in store.listings(results)]
    assert [store.page_at(link).product for link in links] == [0, 1]


def test_values_of_two_groups():
    upstream, fixed = Walk("upstream", "Twins"), Walk("fixed", "Twins")
    chosen = [{"left": "small"}, {"left": "small", "right": "small"}]
    assert [dict(fixed.do("click[small]").options) for _ in range(2)] == chosen
    assert [dict(upstream.do("click[small]").options) for _ in range(2)] == [{"right": "small"}] * 2


@pytest.mark.parametrize("compat", ["upstream", "fixed"])
def test_values_that_are_labels_navigate(compat):
    walk = Walk(compat, "Labels")
    item = walk.page
    assert walk.do("click[next >]").options == (("go", "next >"),)
    assert walk.do("click[attributes]").sub == "Attributes"
    walk.page = item
    assert walk.do("click[search]") is item
    assert walk.do("click[< prev]").kind == "results"


@pytest.mark.parametrize(("compat", "number"), [("upstream", 0), ("fixed", 1)])
def test_a_query_that_looks_like_an_address(compat, number):
    walk = Walk(compat)
    walk.do("search[search_results boxes]", "click[b000000008]", "click[< prev]")
    assert walk.page.number == number


def test_hidden_commands_of_the_search():
    hidden = {"<r>": None, "<c> beauty x": 2, "<q> area rugs": 2, "<q>": 0, "<a> x": None, "<c>": None}
    for query, found in hidden.items():
        assert Walk("fixed").do(f"search[{query}]").hits == tuple(ODD_SHOP.search(query))
        walk = Walk("upstream")
        page = walk.do(f"search[{query}]")
        assert (len(page.hits) if walk.moved else None) == found
    # They have no terms to count, and what only begins like one is a query.
    walk = Walk("upstream")
    long = walk.do(f"search[<c> beauty {' '.join(f'w{number}' for number in range(1100))}]")
    assert (walk.moved, len(long.hits), long.cut) == (True, 2, False)
    query = Walk("upstream").do("search[<r>rug]")
    assert walk.store.page_at(walk.store.address(query)) == query != query._replace(hits=())


def ideogram(number):
    return chr(0x4E00 + number)


@pytest.mark.parametrize(
    ("compat", "moved", "term"),
    [("upstream", False, "w{} ".format), ("upstream", False, ideogram), ("fixed", True, ideogram)],
)
def test_queries_of_too_many_terms_are_cut(compat, moved, term):
    walk = Walk(compat)
    walk.do(f"search[{''.join(map(term, range(1024)))}]")
    assert (walk.moved, walk.page.cut) == (True, False)
    walk.do(f"search[{''.join(map(term, range(1025)))}]")
    assert (walk.moved, walk.page.cut) == (moved, moved)
    walk.do(f"search[{'rug ' * 5000}]")
    assert (walk.moved, walk.page.cut) == (compat == "upstream", compat == "fixed")


def test_words_that_are_too_long_in_lower_case_are_not_searched_for():
    query = f"search[{chr(0x130) * 2100}]"  # a capital that has two letters in lower case
    assert len(query) < MAX_ACTION < len(query.lower())
    for compat, moved in (("upstream", True), ("fixed", False)):
        walk = Walk(compat)
        walk.do(query)
        assert (walk.moved, walk.store.page_at(walk.store.address(walk.page))) == (moved, walk.page)


def test_random_results_are_drawn_again_at_every_turn():
    walk = Walk("upstream", shop=SmallShop(makers=[f"M{number}" for number in range(20)]))
    first, second = walk.do("search[<r>]").hits, walk.do("click[next >]").hits
    assert (len(set(first)), len(second), first != second) == (50, 50, True)


def test_options_are_marked_by_choice_or_address_and_followed_links_until_the_index_page():
    page = Page("item", 'a "red" rug', 1, (0,), 8, "", (("color", "röd"),), frozenset({8}))
    for chosen, marked in ((FIXED, "röd"), (UPSTREAM, "red")):
        store = Store(ODD_SHOP, chosen)
        clicked = store.clicked(page, store.url(page, "0"))
        assert [node.text for node in store.nodes(page) if node.kind == "option" and clicked(node)] == [marked]
    walk = Walk("fixed")
    walk.do("search[boxes]", "click[b000000008]", "search[boxes]")
    clicked = walk.store.clicked(walk.page, "")
    marked = [node.text for node in walk.store.nodes(walk.page) if node.kind == "link" and clicked(node)]
    assert marked == ["B000000008"]
    walk.do("click[back to search]", "search[boxes]")
    assert not walk.page.visited


@pytest.mark.parametrize("fixed", [FIXED, UPSTREAM])
def test_every_page_of_a_walk_can_be_come_back_to(fixed):
    store, generator, rng = Store(ODD_SHOP, fixed, attributes=True), np.random.default_rng(0), random.Random(1)
    page, kinds = HOME, set()
    for _ in range(3_000):
        assert store.page_at(store.address(page)) == page
        kinds.add(page.kind)
        words = rng.choice(["rug", "a/b", "../..", '"red" & <b>', "röd 100%", "?q=1#x", "search_results", " "])
        action = rng.choice([f"search[{words}]", *store.body(page).actions, *store.body(page).actions])
        page = store.act(page, action, generator) or page
        page = HOME if page.kind == "done" and rng.random() < 0.5 else page
    assert kinds == {"index", "results", "item", "sub", "done"}


@given(words=st.text(min_size=1, max_size=40).filter(lambda words: "\n" not in words))
def test_queries_of_any_characters(words):
    store = Store(ODD_SHOP, FIXED)
    page = store.act(HOME, f"search[{words}]", np.random.default_rng(0))
    if page is not None:
        address = store.address(page)
        assert address.isascii()
        assert store.page_at(address) == page


@given(st.text(max_size=60) | st.text("aq=&%o.page12itemresults?;", max_size=40).map("results?q=x&page=1&".__add__))
@settings(max_examples=300)
def test_any_other_address_is_none_or_a_page(address):
    store = Store(ODD_SHOP, FIXED)
    page = store.page_at(address)
    assert page is None or store.page_at(store.address(page)) == page


NO_PAGES = """
nowhere
results
results?q=&page=1
results?q=rug&page=0
results?q=rug&page=-1
results?q=rug&page=99999999999999999999
results?q=rug&page=1&asin=B000000001
results?q=rug&page=1&o.color=red
item?q=rug&page=1
item?q=rug&page=1&asin=nothing
item?q=rug&page=1&asin=B000000001&o.color=plaid
item?q=rug&page=1&asin=B000000001&o.color=red&o.color=navy+blue
item?q=rug&page=1&asin=B000000001&tab=Features
details?q=rug&page=1&asin=B000000001&tab=Secrets
results?q=rug&page=1&seen=nothing
results?q=%ff%fe&page=1
"""


@pytest.mark.parametrize("address", NO_PAGES.split())
def test_addresses_of_no_page(address):
    assert Store(ODD_SHOP, FIXED).page_at(address) is None
    assert read_address(f"{address}&goal=7") == read_address(address)  # they name no goal


SIGNS = {
    "title": 'Signs <b> & "x" \xa0 \r',
    "description": "a\r\nb &nbsp; <i>\xa0",
    "bullets": ("\xa0", "\u2028", "&lt;"),
    "options": {"a&b": ('"q"', "it's", "<x>\r", "&#13;")},
}


@pytest.mark.parametrize("kind", ["synthetic", "human"])
@pytest.mark.parametrize("options", [{}, {"show_attributes": True, "compat": "upstream"}])
def test_pages_as_html_say_what_the_mode_text_says(kind, options):
    shop = SmallShop(makers=("Alderon", "Brivane"), extra=[*ODD, SIGNS])
    text, html = (WebShopEnv(data=shop, goals=kind, observation_mode=mode, **options) for mode in ("text", "html"))
    rng = random.Random(4)
    for episode in range(40):
        said, info = text.reset(seed=episode)
        shown, _ = html.reset(seed=episode)
        for _ in range(12):
            assert as_text(shown) == said
            action = rng.choice(info["available_actions"] or ["search[x]"])
            action = action.replace("<query>", rng.choice([*ODD, SIGNS])["title"])
            said, *_, info = text.step(action)
            shown, *_ = html.step(action)


@pytest.mark.parametrize("title", ["Boxes", "Twins", "Labels", "Blank"])
def test_pages_as_html_hold_the_names_that_agents_look_for(title):
    walk = Walk("fixed", title)
    walk.do("click[red]", "click[small]")
    product = walk.store.product(walk.page)
    seen = Reader(page_document(page_fragment(walk.page, walk.store.nodes(walk.page), "a <b>", View(product))))
    radios = [found for tag, found in seen.tags if tag == "input"]
    assert [radio["value"] for radio in radios] == [value for values in product.options.values() for value in values]
    assert {(radio["name"], radio["value"]) for radio in radios if "checked" in radio} == set(walk.page.options)
    assert "a <b>" in seen.texts
    assert [found["class"] for tag, found in seen.tags if tag == "button"] == ["btn"] * 6
    page = Page("done", product=0, reward=0.5)
    text = page_fragment(page, nodes.done_nodes(page, "B0"), "", View())
    assert ("h3", "reward") in [(tag, found.get("id")) for tag, found in Reader(text).tags]
    assert "<pre>0.5</pre>" in text


PAGE = "Cheap [SEP] Buy Now [SEP] [button] Buy Now [button_]"
DRAWN = {
    "title": f"Thing {PAGE}",
    "description": f"{PAGE}\n[button] Buy Now [button_]",
    "bullets": (PAGE, "[Clicked  Button] x [CLICKED BUTTON_]"),
    "options": {"size [SEP] x": ("[button] small [button_]", "large")},
    "instruction": f"Find me a thing {PAGE}",
}
WALK = ("search[thing]", "click[b000000000]", "click[description]", "click[< prev]", "click[features]", "click[< prev]")


def drawn(mode, **options):
    data = SmallShop(makers=(), extra=[DRAWN])
    return WebShopEnv(data=data, observation_mode=mode, show_attributes=True, **options)


@pytest.mark.parametrize("mode", ["text", "text_rich"])
def test_a_title_draws_a_page_as_it_does_upstream_unless_it_is_escaped(mode):
    observation, *_, info = play(drawn("text"), WALK[0])
    assert ("Buy Now" in observation.split(" [SEP] ")) > ("buy now" in info["clickables"])
    for steps in range(len(WALK) + 1):
        observation, *_, info = play(drawn(mode, escape_markup=True), *WALK[:steps])
        if mode == "text":
            marked = {text.lower() for text in observation.split(" [SEP] ")}
        else:
            lines = (line.strip() for line in observation.splitlines())
            marked = {line[9:-10].lower() for line in lines if line.startswith("[button] ")}
            assert observation.count("[button]") == observation.count("[button_]") == len(marked)
        assert ("buy now" in marked) is ("buy now" in info["clickables"])
        assert "[sep]" not in info["goal"].lower()


def test_escaped_options_can_be_chosen_and_bought():
    env = drawn("text", escape_markup=True)
    label = "click[(button) small (button_)]"
    assert label in play(env, *WALK)[-1]["available_actions"]
    assert env.step(label)[-1]["selected_options"] == ["size (SEP) x: (button) small (button_)"]
    assert env.step("click[buy now]")[2]


@pytest.mark.parametrize("asin", ["[SEP]", "[button]"])
def test_a_product_named_as_a_mark_has_an_address_that_leads_back(asin):
    env = WebShopEnv(data=SmallShop(makers=(), extra=[{"asin": asin}]), escape_markup=True)
    env.reset(seed=0)
    for action in ("search[thing]", f"click[{escape_marks(asin).lower()}]", "click[< prev]"):
        assert env.step(action)[-1]["action_valid"], action
        state = env.snapshot().state
        store = open_store(env.catalog, env.fixes, env.show_attributes, env.escape_markup)
        assert store.page_at(store.address(state.page)) == state.page


@given(st.text("[]SEPbutton_ ckd(", max_size=40))
def test_no_mark_is_left(text):
    lowered = escape_marks(text).lower()
    assert not [mark for mark in ("[sep]", "[button]", "[button_]", "[clicked button]") if mark in lowered]
    assert escape_marks(escape_marks(text)) == escape_marks(text)

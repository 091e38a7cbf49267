"""What stands on a page, as a list of its texts, and how it is written: "text", "text_rich" and HTML.

HTML has the ids, classes and names that agents and browsers look for, and is written the way browsers write it back, so
what a browser holds can be compared with it letter by letter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote_plus

from skillc_gym.envs.webshop.shop.pages import SUB_PAGES, Page

if TYPE_CHECKING:
    from skillc_gym.envs.webshop.catalog.product import Listing, Product

SEPARATOR = " [SEP] "
PAGE_SIZE = 10
_NAMELESS = "\u200b"
_SPACE = " \t\n\r\f"


class Node(NamedTuple):
    """A text of a page, what carries it ("text", "button", "option" or "link"), and an option's group."""

    kind: str
    text: str
    group: str = ""

    @property
    def label(self) -> str:
        """The name by which ``click[...]`` calls a button."""
        return self.text.lower()


BACK, PREV, NEXT, BUY, SEARCH = (
    Node("button", label) for label in ("Back to Search", "< Prev", "Next >", "Buy Now", "Search")
)
*_TABS, _ATTRIBUTES = (Node("button", label) for label in SUB_PAGES)
NAVIGATION = dict.fromkeys(node.label for node in (BACK, PREV, NEXT, BUY, SEARCH, *_TABS, _ATTRIBUTES))
"""The labels of all buttons, in order; every click asks whether it is one."""


def results_nodes(number: int, total: int, listings: Iterable[Listing]) -> list[Node]:
    """Returns the texts of a page of results, after the instruction: the page's number, products found, those shown."""
    nodes = [BACK, Node("text", f"Page {number} (Total results: {total})")]
    nodes += [PREV, NEXT] if number > 1 else [NEXT]
    for listing in listings:
        nodes += [Node("link", listing.asin), Node("text", listing.title), Node("text", listing.price_tag)]
    return shown(nodes)


def item_nodes(product: Product, *, attributes: bool = False) -> list[Node]:
    """Returns the texts of a product's page, after the instruction; ``attributes``: with a tab of these."""
    nodes = [BACK, PREV]
    for group, values in product.options.items():
        nodes += [Node("text", group), *(Node("option", value, group) for value in values)]
    facts = (product.title, f"Price: {product.price_tag}", "Rating: N.A.")
    nodes += [*(Node("text", fact) for fact in facts), *_TABS]
    return shown([*nodes, _ATTRIBUTES, BUY] if attributes else [*nodes, BUY])


def sub_nodes(product: Product, sub: str) -> list[Node]:
    """Returns the texts of a sub page, one of `skillc_gym.envs.webshop.shop.pages.SUB_PAGES`."""
    texts: Sequence[str] = ()
    if sub == "Description":
        texts = (product.description,)
    elif sub == "Features":
        texts = [f" {bullet}" for bullet in product.bullets]
    elif sub == "Attributes":
        listed = [f" {attribute}" for attribute in product.attributes]
        texts = (*listed, product.category, product.query, product.product_category)
    return shown([BACK, PREV, *(Node("text", text) for text in texts)])


def done_nodes(page: Page, asin: str) -> list[Node]:
    """Returns the texts of the page after a purchase."""
    options = json.dumps(dict(page.options), sort_keys=True)
    for sign in "<>&'":
        options = options.replace(sign, f"\\u{ord(sign):04x}")
    texts = ["Thank you for shopping with us!", "Your code: ", "None", " (Paste it in your MTurk interface.)"]
    texts += ["Purchased", "asin", asin, "options", options, "attrs", "None", "category", "None"]
    texts += ["query", "None", "product category", "None", "Target", "asin", "options", "attrs", "price upper"]
    texts += ["instuction text", "category", "product category", "query", "Goal ", "None", "Reward"]
    texts += ["Your score (min 0.0, max 1.0)", str(page.reward), "Reward Details ", "None"]
    return shown([Node("text", text) for text in texts])


def index_nodes(instruction: str) -> list[Node]:
    """Returns the texts of the first page."""
    return [Node("text", "WebShop"), *instruction_nodes("Instruction: ", instruction), SEARCH]


def instruction_nodes(label: str, instruction: str) -> list[Node]:
    """Returns the texts of the instruction."""
    return shown([Node("text", label), Node("text", instruction)])


def shown(nodes: list[Node]) -> list[Node]:
    """Returns what is left of texts after parsing a page: blank ones go, or shrink to one space."""
    kept = []
    for node in nodes:
        if node.text.strip(_SPACE):
            kept.append(node)
        elif node.text and "\n" not in node.text:
            kept.append(node._replace(text=" "))
    return kept


def page_text(nodes: Iterable[Node]) -> str:
    """Writes a page in the mode "text"."""
    return SEPARATOR.join([node.text.strip() for node in nodes])


def rich_text(nodes: Iterable[Node], clicked: Callable[[Node], bool]) -> str:
    """Writes a page in the mode "text_rich"; ``clicked``: whether an option is chosen, or a link was followed."""
    said: list[str] = []
    lines: list[str] = []
    for node in nodes:
        if node.kind == "text":
            lines.append(node.text)
            continue
        button = "button" if node.kind == "button" or not clicked(node) else "clicked button"
        front = {"button": "", "option": "  ", "link": "\n"}[node.kind]
        lines.append(f"{front}[{button}] {node.text} [{button}_]")
        if node.kind == "option" and button != "button":
            said.insert(0, f"You have clicked {node.text}.")
    return "".join(f"{line}\n" for line in said + lines)


_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
.btn{font:inherit;padding:.3rem .8rem;border:1px solid #888;border-radius:.4rem;background:#f4f4f4;cursor:pointer}
.product{border-top:1px solid #ddd;padding:.8rem 0}.product-price{color:#066}
fieldset{border:0;padding:0;margin:.6rem 0}img{max-width:12rem}"""
_FORM = '<form method="post">'
_AMOUNT = re.compile(r"\$([0-9]+(?:\.[0-9]+)?)")


@dataclass(frozen=True)
class View:
    """What a page shows besides its texts: the product looked at, or the products found, best first.

    ``link`` is the address that a product's link leads to (None if it cannot be followed), ``clicked`` whether an
    option or a link is marked so. For a ``person``, prices and scores are rounded and no button leads to an empty page.
    """

    product: Product | None = None
    listings: Sequence[Listing] = ()
    link: Callable[[Listing], str | None] = lambda _: None
    clicked: Callable[[Node], bool] = lambda _: False
    person: bool = False

    def price(self, tag: str) -> str:
        """Writes a price."""
        return price_for_people(tag) if self.person else tag


def price_for_people(tag: str) -> str:
    """Writes a product's price, or the two that it lies between, with cents and commas: ``$1,299.00``."""
    return _AMOUNT.sub(lambda found: f"${float(found[1]):,.2f}", tag)


def page_document(fragment: str) -> str:
    """Wraps a page's fragment into a document that stands alone."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>WebShop</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n{fragment}\n</body></html>"
    )


def page_fragment(page: Page, found: Iterable[Node], instruction: str, view: View) -> str:
    """Writes a page from its texts after the instruction; in order, they are those of the mode "text"."""
    parts = ["<h1>WebShop</h1>"] if page.kind == "index" else []
    if page.kind != "done":
        label = "Instruction: " if page.kind == "index" else "Instruction:"
        parts.append(f'<div id="instruction-text"><h4 aria-level="2">{label}<br>{_text(instruction)}</h4></div>')
    return "\n".join(parts + _SHAPES[page.kind](page, list(found), view))


def _index(page: Page, found: list[Node], view: View) -> list[str]:
    box = '<input type="text" id="search_input" name="search_query" placeholder="Search..." aria-label="Search words">'
    return [f'<form method="post" role="search">{box}<button type="submit" class="btn">Search</button></form>']


def _results(page: Page, found: list[Node], view: View) -> list[str]:
    last = view.person and page.number * PAGE_SIZE >= len(page.hits)
    back, *turns = _buttons([node for node in found if not (last and node == NEXT)])
    total = _text(next(node for node in found if node.kind == "text").text)
    heading = f'<h3 aria-level="2">{total}</h3>'
    cards = [_card(place, listing, view) for place, listing in enumerate(view.listings)]
    turning = [f"{_FORM}{''.join(turns)}</form>"] if turns else []
    return [f"{_FORM}{back}</form>", heading, *turning, *cards]


def _card(place: int, listing: Listing, view: View) -> str:
    address = view.link(listing)
    way = "" if address is None else f' href="{_attribute(address)}"'
    name = "product-link clicked" if view.clicked(Node("link", listing.asin)) else "product-link"
    picture = f'<img class="product-picture" src="{_picture(listing.asin)}" alt="">'
    link = f'<a class="{name}"{way} aria-describedby="title-{place}">{_text(listing.asin)}</a>'
    title = f'<h4 class="product-title" id="title-{place}" aria-level="3">{_text(listing.title)}</h4>'
    price = f'<h5 class="product-price" role="presentation">{_text(view.price(listing.price_tag))}</h5>'
    return f'<div class="product">{picture}{link}{title}{price}</div>'


def _item(page: Page, found: list[Node], view: View) -> list[str]:
    product, buttons = view.product, _buttons(found)
    assert product is not None
    image = f' data-image="{_attribute(product.main_image)}"' if product.main_image else ""
    parts = [f"{_FORM}{''.join(buttons[:2])}</form>"]
    parts.append(f'<img id="product-image" src="{_picture(product.asin)}"{image} alt="">')
    parts += [_group(page, number, name, values, view) for number, (name, values) in enumerate(product.options.items())]
    parts.append(f'<h2 class="product-title">{_text(product.title)}</h2>')
    parts.append(f'<p class="product-price">Price: {_text(view.price(product.price_tag))}</p>')
    return [*parts, '<p class="product-rating">Rating: N.A.</p>', f"{_FORM}{''.join(buttons[2:])}</form>"]


def _group(page: Page, number: int, group: str, values: Sequence[str], view: View) -> str:
    chosen = dict(page.options).get(group)
    choices = "".join(
        _choice(Node("option", value, group), f"option-{number}-{place}", value == chosen, view)
        for place, value in enumerate(values)
    )
    legend = f'<legend><h4 aria-level="3">{_text(group)}</h4></legend>'
    return f'<form method="post" class="options"><fieldset>{legend}{choices}</fieldset></form>'


def sent_as(group: str) -> str:
    """Under which name a form sends a choice of a group: browsers send none of those without one."""
    return group or _NAMELESS


def named(sent: str) -> str:
    """The group that is sent under a name."""
    return "" if sent == _NAMELESS else sent


def _choice(node: Node, name: str, checked: bool, view: View) -> str:
    mark = ' checked=""' if checked else ""
    look = ' class="clicked"' if view.clicked(node) else ""
    sent = f'name="{_attribute(sent_as(node.group))}" value="{_attribute(node.text)}"'
    return f'<input type="radio" id="{name}" {sent}{mark}><label for="{name}"{look}>{_text(node.text)}</label>'


def _sub(page: Page, found: list[Node], view: View) -> list[str]:
    texts = [f'<p class="product-info">{_text(node.text)}</p>' for node in found if node.kind == "text"]
    return [f"{_FORM}{''.join(_buttons(found))}</form>", *texts]


def _done(page: Page, found: list[Node], view: View) -> list[str]:
    place = next(number for number, node in enumerate(found) if node.text.startswith("Your score"))
    spans = [f"<span>{_text(node.text)}</span>" for node in found]
    code, hidden, details = ("".join(spans[start:end]) for start, end in ((1, 4), (4, place), (place + 2, None)))
    gained = f"{page.reward:.2f}" if view.person else found[place + 1].text
    score = f"{_text(found[place].text)}<pre>{_text(gained)}</pre>"
    return [
        f'<h1 id="thankyou">{_text(found[0].text)}</h1>',
        f'<p class="code">{code}</p>',
        f'<div hidden="">{hidden}</div>',
        f'<h3 id="reward" aria-level="2">{score}</h3>',
        f'<div hidden="">{details}</div>',
    ]


_SHAPES = {"index": _index, "results": _results, "item": _item, "sub": _sub, "done": _done}


def _buttons(found: list[Node]) -> list[str]:
    return [
        f'<button type="submit" class="btn" name="click" value="{_attribute(node.label)}">{_text(node.text)}</button>'
        for node in found
        if node.kind == "button"
    ]


def _picture(asin: str) -> str:
    return f"../../picture?asin={quote_plus(asin, errors='surrogatepass')}"


def _text(text: str) -> str:
    # A carriage return survives the reading of a page as a reference only.
    return escape(text, quote=False).replace("\xa0", "&nbsp;").replace("\r", "&#13;")


def _attribute(text: str) -> str:
    return _text(text).replace('"', "&quot;")

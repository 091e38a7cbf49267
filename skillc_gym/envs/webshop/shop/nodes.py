"""What stands on a page, as a list of its texts, and how the modes "text" and "text_rich" write it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from skillc_gym.envs.webshop.catalog.product import Listing, Product
    from skillc_gym.envs.webshop.shop.pages import Page

SEPARATOR = " [SEP] "
PAGE_SIZE = 10
_SPACE = " \t\n\r\f"


class Node(NamedTuple):
    """A text of a page, what carries it ("text", "button", "option" or "link"), and an option's group."""

    kind: str
    text: str
    group: str = ""


BACK, PREV, NEXT, BUY, SEARCH = (
    Node("button", label) for label in ("Back to Search", "< Prev", "Next >", "Buy Now", "Search")
)
_TABS = tuple(Node("button", label) for label in ("Description", "Features", "Reviews"))
_ATTRIBUTES = Node("button", "Attributes")


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

"""Pages as HTML, with the ids, classes and names that agents and browsers look for; no script, no outside file."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from skillc_gym.webshop.nodes import Node

if TYPE_CHECKING:
    from skillc_gym.webshop.pages import Page
    from skillc_gym.webshop.product import Product

__all__ = ["page_html"]

_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
.btn{font:inherit;padding:.3rem .8rem;border:1px solid #888;border-radius:.4rem;background:#f4f4f4;cursor:pointer}
.product{border-top:1px solid #ddd;padding:.8rem 0}.product-price{color:#066}
fieldset{border:0;padding:0;margin:.6rem 0}img{max-width:12rem}"""


def page_html(
    page: Page, found: Iterable[Node], instruction: str, products: Iterable[Product], checked: Iterable[tuple[str, str]]
) -> str:
    """Writes a page.

    Args:
        page: Where the customer is.
        found: The page's texts after the instruction.
        instruction: The customer's goal.
        products: The products shown, best first: one on a product's page.
        checked: The chosen options as (group, value).
    """
    listed = list(products)
    parts = ["<h1>WebShop</h1>"] if page.kind == "index" else []
    if page.kind != "done":
        parts.append(f'<div id="instruction-text"><h4>Instruction: {escape(instruction, quote=False)}</h4></div>')
    parts += _SHAPES[page.kind](list(found), listed, frozenset(checked))
    body = "\n".join(parts)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>WebShop</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>"
    )


def _index(found: list[Node], products: list[Product], checked: frozenset[tuple[str, str]]) -> list[str]:
    box = '<input type="text" id="search_input" name="search_query" placeholder="Search...">'
    return [f'<form method="post" action="">{box} {_button("Search")}</form>']


def _results(found: list[Node], products: list[Product], checked: frozenset[tuple[str, str]]) -> list[str]:
    parts = _buttons(found)
    parts.insert(1, f"<h3>{_text(next(node for node in found if node.kind == 'text'))}</h3>")
    for product in products:
        link = f'<a class="product-link" href="#">{escape(product.asin)}</a>'
        facts = f'<h4 class="product-title">{escape(product.title)}</h4>'
        price = f'<h5 class="product-price">{escape(product.price_tag)}</h5>'
        parts.append(f'<div class="product">{link}{facts}{price}</div>')
    return parts


def _item(found: list[Node], products: list[Product], checked: frozenset[tuple[str, str]]) -> list[str]:
    product, buttons = products[0], _buttons(found)
    parts = [*buttons[:2], f'<img id="product-image" src="{escape(product.main_image)}" alt="">']
    for number, (group, values) in enumerate(product.options.items()):
        choices = "".join(
            _choice(group, value, f"option-{number}-{place}", (group, value) in checked)
            for place, value in enumerate(values)
        )
        parts.append(f"<fieldset><h4>{escape(group)}</h4>{choices}</fieldset>")
    parts += [f"<h2>{escape(product.title)}</h2>", f"<h4>Price: {escape(product.price_tag)}</h4>"]
    return [*parts, "<h4>Rating: N.A.</h4>", *buttons[2:]]


def _sub(found: list[Node], products: list[Product], checked: frozenset[tuple[str, str]]) -> list[str]:
    return [*_buttons(found), *(f'<p class="product-info">{_text(node)}</p>' for node in found if node.kind == "text")]


def _done(found: list[Node], products: list[Product], checked: frozenset[tuple[str, str]]) -> list[str]:
    texts = [_text(node) for node in found]
    place = next(number for number, node in enumerate(found) if node.text.startswith("Your score"))
    reward = f'<div id="reward"><h3>Reward</h3>{texts[place]} <pre>{texts[place + 1]}</pre></div>'
    shown = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in zip(texts[5:9:2], texts[6:9:2], strict=True))
    return [f'<h1 id="thankyou">{texts[0]}</h1>', f"<dl>{shown}</dl>", reward]


_SHAPES = {"index": _index, "results": _results, "item": _item, "sub": _sub, "done": _done}


def _text(node: Node) -> str:
    return escape(node.text, quote=False)


def _button(label: str) -> str:
    return f'<button type="submit" class="btn">{escape(label)}</button>'


def _buttons(found: list[Node]) -> list[str]:
    return [_button(node.text) for node in found if node.kind == "button"]


def _choice(group: str, value: str, name: str, checked: bool) -> str:
    mark = " checked" if checked else ""
    radio = f'<input type="radio" id="{name}" name="{escape(group)}" value="{escape(value)}"{mark}>'
    return f'{radio}<label for="{name}">{escape(value)}</label>'

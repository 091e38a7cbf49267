"""Pages as HTML, with the ids, classes and names that agents and browsers look for; no script, no outside file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from skillc_gym.envs.webshop.shop.nodes import Node

if TYPE_CHECKING:
    from skillc_gym.envs.webshop.catalog.product import Listing, Product
    from skillc_gym.envs.webshop.shop.pages import Page

__all__ = ["page_html"]

_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
.btn{font:inherit;padding:.3rem .8rem;border:1px solid #888;border-radius:.4rem;background:#f4f4f4;cursor:pointer}
.product{border-top:1px solid #ddd;padding:.8rem 0}.product-price{color:#066}
fieldset{border:0;padding:0;margin:.6rem 0}img{max-width:12rem}"""


class _View(NamedTuple):
    """What a page shows beside its texts."""

    product: Product | None
    listings: Sequence[Listing | Product]
    checked: frozenset[tuple[str, str]]


def page_html(
    page: Page,
    found: Iterable[Node],
    instruction: str,
    *,
    product: Product | None = None,
    listings: Sequence[Listing | Product] = (),
) -> str:
    """Writes a page. Its texts, in order, are those of the mode "text".

    Args:
        page: Where the customer is, and what was chosen.
        found: The page's texts after the instruction.
        instruction: The customer's goal.
        product: The product looked at.
        listings: The products on a page of results, best first.
    """
    parts = ["<h1>WebShop</h1>"] if page.kind == "index" else []
    if page.kind != "done":
        label = "Instruction: " if page.kind == "index" else "Instruction:"
        said = f"{label}<br>{escape(instruction, quote=False)}"
        parts.append(f'<div id="instruction-text"><h4>{said}</h4></div>')
    parts += _SHAPES[page.kind](list(found), _View(product, listings, frozenset(page.options)))
    body = "\n".join(parts)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>WebShop</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>"
    )


def _index(found: list[Node], view: _View) -> list[str]:
    box = '<input type="text" id="search_input" name="search_query" placeholder="Search...">'
    return [f'<form method="post" action="">{box}{_button("Search")}</form>']


def _results(found: list[Node], view: _View) -> list[str]:
    parts = _buttons(found)
    parts.insert(1, f"<h3>{_text(next(node for node in found if node.kind == 'text'))}</h3>")
    for listing in view.listings:
        link = f'<a class="product-link" href="#">{escape(listing.asin)}</a>'
        facts = f'<h4 class="product-title">{escape(listing.title)}</h4>'
        price = f'<h5 class="product-price">{escape(listing.price_tag)}</h5>'
        parts.append(f'<div class="product">{link}{facts}{price}</div>')
    return parts


def _item(found: list[Node], view: _View) -> list[str]:
    product, buttons = view.product, _buttons(found)
    if product is None:
        return buttons
    parts = [*buttons[:2], f'<img id="product-image" src="{escape(product.main_image)}" alt="">']
    for number, (group, values) in enumerate(product.options.items()):
        choices = "".join(
            _choice(group, value, f"option-{number}-{place}", (group, value) in view.checked)
            for place, value in enumerate(values)
        )
        parts.append(f"<fieldset><h4>{escape(group)}</h4>{choices}</fieldset>")
    parts += [f"<h2>{escape(product.title)}</h2>", f"<h4>Price: {escape(product.price_tag)}</h4>"]
    return [*parts, "<h4>Rating: N.A.</h4>", *buttons[2:]]


def _sub(found: list[Node], view: _View) -> list[str]:
    return [*_buttons(found), *(f'<p class="product-info">{_text(node)}</p>' for node in found if node.kind == "text")]


def _done(found: list[Node], view: _View) -> list[str]:
    place = next(number for number, node in enumerate(found) if node.text.startswith("Your score"))
    spans = [f"<span>{_text(node)}</span>" for node in found]
    code, hidden, details = ("".join(spans[start:end]) for start, end in ((1, 4), (4, place), (place + 2, None)))
    score = f'<h3 id="reward">{_text(found[place])}<pre>{_text(found[place + 1])}</pre></h3>'
    parts = [f'<h1 id="thankyou">{_text(found[0])}</h1>', f"<p>{code}</p>", f"<div hidden>{hidden}</div>"]
    return [*parts, score, f"<div hidden>{details}</div>"]


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

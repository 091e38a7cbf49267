"""What stands around a page: head, search, footer and, for a person, a receipt's parts; and the other pages."""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from skillc_gym.envs.webshop.site.access import AGENT, PERSON, UPSTREAM
from skillc_gym.envs.webshop.site.front import PageView
from skillc_gym.errors import missing_extra

if TYPE_CHECKING:
    from jinja2 import Environment


@lru_cache(1)
def _templates() -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise missing_extra("Jinja2", "browser") from error
    loader = PackageLoader("skillc_gym.envs.webshop.site")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def render(template: str, **values: Any) -> str:
    """Fills in one of the site's templates; every text is escaped."""
    # A lone half of a surrogate pair cannot be sent.
    return _templates().get_template(template).render(values).encode("utf-8", "replace").decode()


def shop_page(view: PageView, *, state: int, searchable: bool, audience: str = AGENT) -> str:
    """Writes a page of the shop for an audience; nothing stands around it for `UPSTREAM`.

    ``state`` is another number for every answer of the site, by which a browser's driver sees that it is a new page.
    """
    page = view.page
    words = page.words if page.kind in ("results", "item", "sub") else ""
    seen = {"words": words, "searchable": searchable and page.kind != "index", "person": audience == PERSON}
    facts = json.dumps({"query_cut": view.cut})
    template = "upstream.html" if audience == UPSTREAM else "shop.html"
    return render(template, view=view, kind=page.kind, state=state, facts=facts, **seen)


def picture(asin: str, category: str = "") -> str:
    """Draws a product as SVG of 160 by 160 units: the colours come from its id, the shape from its category."""
    digest = sha256(asin.encode("utf-8", "surrogatepass")).digest()
    hue, turn = digest[0] * 360 // 256, 20 + digest[1] % 50
    dots = [(digest[i] * 160 // 256, digest[i + 1] * 160 // 256, 6 + digest[i + 2] % 22) for i in range(2, 17, 3)]
    hues = {"hue": hue, "ink": f"hsl({(hue + turn) % 360},45%,38%)"}
    return render("picture.svg", category=category, mark=asin[-4:], dots=dots, **hues)

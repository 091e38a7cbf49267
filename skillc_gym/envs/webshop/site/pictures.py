"""Pictures of products, drawn from their asin and category alone: none is downloaded, and every one is its own."""

from __future__ import annotations

from hashlib import sha256
from html import escape

__all__ = ["picture"]

_SHAPES = {
    "beauty": (
        '<rect x="58" y="76" width="44" height="62" rx="9"/><rect x="66" y="58" width="28" height="16" rx="3"/>'
        '<path d="M72 56V40l16-8v24z"/>'
    ),
    "electronics": (
        '<rect x="34" y="44" width="92" height="62" rx="7"/><rect x="70" y="106" width="20" height="14"/>'
        '<rect x="54" y="120" width="52" height="8" rx="4"/>'
    ),
    "fashion": ('<path d="M58 38l-28 18 12 24 12-6v62h52V74l12 6 12-24-28-18c-4 10-12 15-22 15s-18-5-22-15z"/>'),
    "garden": (
        '<rect x="40" y="72" width="80" height="34" rx="12"/><rect x="48" y="48" width="64" height="36" rx="12"/>'
        '<rect x="46" y="104" width="9" height="24" rx="4"/><rect x="105" y="104" width="9" height="24" rx="4"/>'
    ),
    "grocery": ('<path d="M48 60h64l-7 74H55z"/><path d="M60 62c0-30 40-30 40 0" fill="none" stroke-width="7"/>'),
}
_OTHER = '<path d="M80 34l44 22v48l-44 22-44-22V56z"/>'


def picture(asin: str, category: str = "") -> str:
    """Draws a product.

    Args:
        asin: Its id, from which the colours come.
        category: Its category, from which the shape comes.

    Returns:
        An SVG document of 160 by 160 units.
    """
    digest = sha256(asin.encode("utf-8", "surrogatepass")).digest()
    hue, turn = digest[0] * 360 // 256, 20 + digest[1] % 50
    paper, deep = f"hsl({hue},42%,90%)", f"hsl({hue},38%,78%)"
    ink = f"hsl({(hue + turn) % 360},45%,38%)"
    dots = "".join(
        f'<circle cx="{digest[i] * 160 // 256}" cy="{digest[i + 1] * 160 // 256}" r="{6 + digest[i + 2] % 22}"/>'
        for i in range(2, 17, 3)
    )
    mark = escape(asin[-4:].encode("utf-8", "replace").decode())
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 160 160" width="160" height="160">'
        f'<rect width="160" height="160" fill="{paper}"/><g fill="{deep}" opacity=".55">{dots}</g>'
        f'<g fill="{ink}" stroke="{ink}" stroke-linejoin="round">{_SHAPES.get(category, _OTHER)}</g>'
        f'<text x="150" y="152" text-anchor="end" font-family="monospace" font-size="11" fill="{ink}">{mark}</text>'
        "</svg>"
    )

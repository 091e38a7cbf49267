"""The HTML around a page's body: its style, in light and dark, and figures inlined, so that it needs no other file."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any

from skillc_gym.episodes import STYLE

__all__ = ["document", "figure", "raw", "table"]

_STYLE = """
:root { --ink:#1d2330; --soft:#667085; --line:#e4e7ec; --card:#fff; --page:#f2f4f7; color-scheme:light dark; }
@media (prefers-color-scheme: dark) { :root { --ink:#e6e9ef; --soft:#98a2b3; --line:#2b3240; --card:#171b24;
  --page:#0e1117; } }
* { box-sizing:border-box; }
body { margin:0 auto; max-width:78rem; padding:2rem 1.2rem 4rem; background:var(--page); color:var(--ink);
  font:16px/1.55 system-ui,sans-serif; }
h1 { font-size:1.6rem; margin:0 0 .3rem; } h2 { margin:2.6rem 0 .7rem; font-size:1.2rem; } h3 { margin:1.6rem 0 .4rem;
  font-size:1rem; }
p { max-width:48rem; } .soft { color:var(--soft); font-size:.9rem; } .warn { color:#b45309; font-size:.9rem; }
.cards { display:grid; grid-template-columns:repeat(auto-fit,minmax(15rem,1fr)); gap:1rem; margin:1.4rem 0; }
.card { background:var(--card); border:1px solid var(--line); border-radius:12px; padding:1rem 1.2rem; }
.card b { display:block; font-size:1.7rem; line-height:1.3; font-variant-numeric:tabular-nums; }
figure { margin:1rem 0; background:#fff; border:1px solid var(--line); border-radius:12px; padding:.9rem;
  max-width:64rem; }
figure img { width:100%; height:auto; display:block; } figure.narrow { max-width:52rem; }
.scroll { overflow-x:auto; background:var(--card); border:1px solid var(--line); border-radius:12px; }
table { border-collapse:collapse; width:100%; font-size:.9rem; font-variant-numeric:tabular-nums; }
th, td { padding:.5rem .8rem; text-align:right; white-space:nowrap; border-bottom:1px solid var(--line); }
th:first-child, td:first-child { text-align:left; } tr:last-child td { border-bottom:0; }
table.words th, table.words td { text-align:left; }
tr.all td { font-weight:600; } td small { color:var(--soft); font-weight:400; }
details.task, details.raw { background:var(--card); border:1px solid var(--line); border-radius:12px; margin:.6rem 0;
  padding:.6rem 1rem; }
summary { cursor:pointer; } details.raw pre { overflow-x:auto; font-size:.8rem; }
"""


def document(title: str, parts: Iterable[str]) -> str:
    """A whole page.

    Args:
        title: Its heading; escaped here.
        parts: HTML of the body, in order; empty parts are left out.
    """
    body = "\n".join(part for part in parts if part)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}{STYLE}</style></head>\n"
        f"<body><h1>{escape(title)}</h1>\n{body}</body></html>\n"
    )


def figure(path: Path | None, caption: str, *, narrow: bool = False) -> str:
    """A picture inlined; nothing where there is none."""
    if path is None:
        return ""
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    css = ' class="narrow"' if narrow else ""
    return f'<figure{css}><img alt="{escape(caption)}" src="data:image/png;base64,{data}"></figure>'


def raw(name: str, values: Mapping[str, Any]) -> str:
    """Settings as JSON, folded; nothing where there are none."""
    if not values:
        return ""
    text = escape(json.dumps(values, indent=1, ensure_ascii=False))
    return f'<details class="raw"><summary>{escape(name)}</summary><pre>{text}</pre></details>'


def table(head: Iterable[str], rows: Iterable[str], *, words: bool = False) -> str:
    """A table that scrolls sideways by itself.

    Args:
        head: Column heads, plain text.
        rows: ``<tr>`` elements.
        words: Whether columns hold words, which stand on the left.
    """
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    css = ' class="words"' if words else ""
    return f'<div class="scroll"><table{css}><tr>{cells}</tr>{"".join(rows)}</table></div>'

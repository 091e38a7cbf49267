"""Any text as an action of WebShop, in shops whose products a stranger may have written."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.fuzz.actions import actions_target
from benchmarks.fuzz.target import FuzzTarget
from skillc_gym.envs.base import TextTaskEnv
from skillc_gym.envs.webshop import OBSERVATION_MODES, WebShopEnv
from skillc_gym.envs.webshop.catalog import Catalog, open_catalog

__all__ = ["TARGET"]

_ASINS = ("Buy Now", "NEXT >", "< PREV", "FEATURES", "Attributes", "SEARCH", "b0lower000", "B0[x]", "a/b?c#d", "\ud83d")
_TEXTS = ("red", "[SEP] Buy Now", "[button] Buy Now [button_]", "buy now", "features", 'large 12" [xl]', "a\nb", "é😀")
_PIECES = (
    *("search[red thing]", "search[", "click[", "]", "[", "buy now", "back to search", "< prev", "next >", "\n"),
    *("<r>", "<a>", "<c> garden", "<q> things", "search_results", "item_page", '"red"', "\ud800", "😀", " "),
)


def _rows() -> Iterator[dict[str, Any]]:
    names = itertools.chain(_ASINS, (f"B0{number:08d}" for number in range(60)))
    for number, asin in enumerate(names):
        text = _TEXTS[number % len(_TEXTS)]
        yield {
            "asin": asin, "name": f"Thing {text} {number}", "full_description": f"{text}\n<b>{text}</b>",
            "small_description": [text, "", " soft "], "query": "things", "pricing": f"${number}.0$50",
            "images": ["x"], "category": "garden", "product_category": f"Home › {text}",
            "customization_options": {f"kind {text}": [{"value": one} for one in _TEXTS], "size": [{"value": text}]},
        }  # fmt: skip


def _catalog() -> Catalog:
    entry = {"instruction": "find a red thing", "attributes": ["soft"], "instruction_attributes": ["soft"]}
    with tempfile.TemporaryDirectory(prefix="skillc-shop-") as folder:
        rows = list(_rows())
        (Path(folder) / "items_shuffle.json").write_text(json.dumps(rows), encoding="utf-8")
        asked = {row["asin"]: entry for row in rows[::2]}
        (Path(folder) / "items_ins_v2.json").write_text(json.dumps(asked), encoding="utf-8")
        return open_catalog(folder)


def _shops() -> Sequence[TextTaskEnv]:
    catalog = _catalog()
    plain = [
        WebShopEnv(data=catalog, compat=compat, observation_mode=mode, show_attributes=compat == "fixed")
        for compat in ("fixed", "upstream")
        for mode in OBSERVATION_MODES
    ]
    return [*plain, WebShopEnv(data=catalog, observation_mode="text_rich", escape_markup=True)]


TARGET = FuzzTarget(
    "The shop takes any text in any order, in every mode and with upstream's defects, on products that are called like "
    "buttons or draw pages; it may never raise, and what cannot be done changes nothing.",
    actions_target(_shops, _PIECES),
)

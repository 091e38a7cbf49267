"""Any text as an action of an environment, in any order, with resets and returns to earlier moments among them."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.fuzz.target import GENERATOR, FuzzTarget, Run, changed_text
from skillc_gym.envs.alfworld import ALFWorldEnv
from skillc_gym.envs.base import TextTaskEnv
from skillc_gym.envs.webshop import OBSERVATION_MODES, WebShopEnv
from skillc_gym.envs.webshop.catalog import Catalog, open_catalog

MOMENTS = 8
"""Earlier moments that a run can return to."""


def actions_target(environments: Callable[[], Sequence[TextTaskEnv]], pieces: Sequence[str]) -> Callable[[Any], Run]:
    """Makes what a fuzz target makes: a player of fuzzed actions."""

    def make(atheris: Any) -> Run:
        envs = environments()

        def play(data: bytes) -> None:
            provider = atheris.FuzzedDataProvider(data)
            env = envs[provider.ConsumeIntInRange(0, len(envs) - 1)]
            _, info = env.reset(seed=provider.ConsumeIntInRange(0, 1_000))
            moments = [env.snapshot()]
            while provider.remaining_bytes() > 1:
                info = _move(provider, env, info, moments, pieces)

        return play

    return make


def _move(
    provider: Any, env: TextTaskEnv, info: dict[str, Any], moments: list[Any], pieces: Sequence[str]
) -> dict[str, Any]:
    way = provider.ConsumeIntInRange(0, 15)
    if way == 0:
        return env.reset()[1]
    if way == 1:
        moments[MOMENTS - 1 :] = [env.snapshot()]
        observation, after = env.restore(moments[provider.ConsumeIntInRange(0, len(moments) - 1)])
        assert observation in env.observation_space
        return after
    return outcome_checked(env, info, _action(provider, info["admissible_commands"], pieces))


def _action(provider: Any, listed: Sequence[str], pieces: Sequence[str]) -> str:
    pool = listed or pieces
    action: str = pool[provider.ConsumeIntInRange(0, len(pool) - 1)]
    way = provider.ConsumeIntInRange(0, 3)
    if way == 0:
        return str(provider.ConsumeUnicode(60))
    return changed_text(provider, action, pieces) if way == 1 else action


def outcome_checked(env: TextTaskEnv, before: dict[str, Any], action: str) -> dict[str, Any]:
    """Makes a step, checks what must hold of any answer, and returns the info."""
    observation, reward, terminated, truncated, info = env.step(action)
    assert observation in env.observation_space, "an observation outside its space"
    observation.encode()
    assert 0.0 <= reward <= 1.0, f"a reward of {reward}"
    assert 0.0 <= info["task_score"] <= 1.0, f"a score of {info['task_score']}"
    assert truncated is False, "an environment without a step limit truncated"
    assert isinstance(terminated, bool), "terminated is no bool"
    if not info["action_valid"]:
        assert info["admissible_commands"] == before["admissible_commands"], "an impossible action changed something"
    return info


_OF_HOUSES = (
    "go to bed 1",
    "take ",
    " from ",
    "look",
    "\n",
    "\0",
    "  ",
    "1",
    "desk",
    "%s",
    "{0}",
    "\u2028",
    "é",
    "😀",
)


def _houses() -> Sequence[TextTaskEnv]:
    return [
        ALFWorldEnv(data="generated", generator=GENERATOR, domain_randomization=shuffled, render_mode=mode)
        for shuffled, mode in ((False, None), (True, None), (False, "ansi"))
    ]


HOUSES = FuzzTarget(
    "The environment of houses takes any text in any order, with resets and returns between; it may never raise, and "
    "what is not admissible changes nothing.",
    actions_target(_houses, _OF_HOUSES),
)

_ASINS = ("Buy Now", "NEXT >", "< PREV", "FEATURES", "Attributes", "SEARCH", "b0lower000", "B0[x]", "a/b?c#d", "\ud83d")
_TEXTS = ("red", "[SEP] Buy Now", "[button] Buy Now [button_]", "buy now", "features", 'large 12" [xl]', "a\nb", "é😀")
_OF_SHOPS = (
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


def shop_catalog() -> Catalog:
    """A shop whose products are called like buttons or draw pages."""
    entry = {"instruction": "find a red thing", "attributes": ["soft"], "instruction_attributes": ["soft"]}
    with tempfile.TemporaryDirectory(prefix="skillc-shop-") as folder:
        rows = list(_rows())
        (Path(folder) / "items_shuffle.json").write_text(json.dumps(rows), encoding="utf-8")
        asked = {row["asin"]: entry for row in rows[::2]}
        (Path(folder) / "items_ins_v2.json").write_text(json.dumps(asked), encoding="utf-8")
        return open_catalog(folder)


def _shops() -> Sequence[TextTaskEnv]:
    catalog = shop_catalog()
    plain = [
        WebShopEnv(data=catalog, compat=compat, observation_mode=mode, show_attributes=compat == "fixed")
        for compat in ("fixed", "upstream")
        for mode in OBSERVATION_MODES
    ]
    return [*plain, WebShopEnv(data=catalog, observation_mode="text_rich", escape_markup=True)]


SHOPS = FuzzTarget(
    "The shop takes any text in any order, in every mode and with upstream's defects, on products that are called like "
    "buttons or draw pages; it may never raise, and what cannot be done changes nothing.",
    actions_target(_shops, _OF_SHOPS),
)

"""The same episodes in the text environment and in a browser over every transport, each moment compared."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from skillc_gym.envs.webshop import WebShopEnv
from skillc_gym.envs.webshop.browser import WebShopBrowserEnv
from skillc_gym.envs.webshop.experts import Shopper

MODES = ("text", "text_rich", "html")
LIMIT = 15
ODD_QUERIES = (
    "a/b & c",
    '"red" <b>rug</b>',
    "../../etc",
    "röd 100% 中文 😀",
    "?q=1#x;y",
    "search_results",
    " ",
    "'quoted'",
    "tab\tbetween",
    "<script>alert(1)</script>",
    "x" * 300,
)
GARBAGE = ("", "click[nothing]", "search[]", "Click[buy now]", "click[search]", "buy", "click[Buy Now] thanks", "\n")
Info = Mapping[str, Any]
Script = Callable[[str, Info], str]
"""From the observation in the mode "text" and the info to an action."""


def shopper(info: Info, _: random.Random) -> Script:
    """Plays as the rule-based customer does."""
    customer = Shopper(info["goal"])
    return lambda observation, info: customer.act(observation, list(info["available_actions"]))


def clicker(info: Info, rng: random.Random) -> Script:
    """Clicks at random, searches from everywhere, for odd words too, and tries what is not possible."""

    def act(_: str, info: Info) -> str:
        chance = rng.random()
        if chance < 0.08:
            return rng.choice(GARBAGE)
        if chance < 0.16:
            return f"search[{rng.choice(ODD_QUERIES)}]"
        action = rng.choice(info["available_actions"] or ["search[<query>]"])
        return str(action).replace("<query>", " ".join(info["goal"].split()[:6]))

    return act


@dataclass
class Comparison:
    """What was compared, and what differed."""

    counts: Counter[str] = field(default_factory=Counter)
    differences: list[dict[str, Any]] = field(default_factory=list)

    def check(self, what: str, ours: Any, theirs: Any, **where: Any) -> None:
        """Compares two values."""
        self.counts[what] += 1
        if ours != theirs:
            self.differences.append({"what": what, **where, "text environment": ours, "browser": theirs})


class Trio:
    """The text environment and one in a browser for every transport, in the same moment of the same task."""

    def __init__(self, *transports: str, browsers: int = 1, **shop: Any) -> None:
        self._native = {mode: WebShopEnv(**shop, observation_mode=mode) for mode in MODES}
        self.browsers = {
            name: WebShopBrowserEnv(transport=name, observation_mode="html", browsers=browsers, **shop)
            for name in transports
        }
        self.task_ids = self._native["text"].task_ids

    def play(
        self,
        task_id: str,
        style: Callable[[Info, random.Random], Script],
        seed: int,
        found: Comparison,
        *,
        limit: int = LIMIT,
    ) -> int:
        """Plays an episode in all of them and compares every moment; returns the number of actions."""
        options = {"task_id": task_id}
        expected = {mode: env.reset(seed=seed, options=options) for mode, env in self._native.items()}
        shown = {name: env.reset(seed=seed, options=options) for name, env in self.browsers.items()}
        self._compare(found, expected, shown, task=task_id, step=0, action=None)
        act = style(expected["text"][1], random.Random(seed))
        for step in range(1, limit + 1):
            observation, info = expected["text"][0], expected["text"][-1]
            action = act(observation, info)
            after = {mode: env.step(action) for mode, env in self._native.items()}
            outcomes = {name: env.step(action) for name, env in self.browsers.items()}
            for name, outcome in outcomes.items():
                flags = {"transport": name, "task": task_id, "step": step, "action": action}
                found.check("reward", after["text"][1], outcome[1], **flags)
                found.check("flags", after["text"][2:4], outcome[2:4], **flags)
            expected = {mode: (outcome[0], outcome[-1]) for mode, outcome in after.items()}
            shown = {name: (outcome[0], outcome[-1]) for name, outcome in outcomes.items()}
            self._compare(found, expected, shown, task=task_id, step=step, action=action)
            if after["text"][2]:
                return step
        return limit

    def close(self) -> None:
        """Closes the browsers."""
        for env in self.browsers.values():
            env.close()

    def _compare(self, found: Comparison, expected: Any, shown: Any, **where: Any) -> None:
        for name, env in self.browsers.items():
            place = {"transport": name, **where}
            for mode in MODES:
                found.check(mode, expected[mode][0], env.parsed_page.observation(mode), **place)
            found.check("observation", expected["html"][0], shown[name][0], **place)
            found.check("info", expected["text"][1], shown[name][1], **place)
            found.check("address", self._native["text"].address, env.address, **place)


def draw(trio: Trio, episodes: int, seed: int) -> Iterator[tuple[str, Callable[[Info, random.Random], Script], int]]:
    """Draws tasks, half of them for the rule-based customer and half for random clicks."""
    rng = random.Random(seed)
    for number in range(episodes):
        yield rng.choice(trio.task_ids), (shopper, clicker)[number % 2], seed + number

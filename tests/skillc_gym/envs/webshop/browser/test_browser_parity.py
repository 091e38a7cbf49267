"""What is read off the page in the browser is what the text environment says, over both transports."""

import random

import pytest
from hostile_shop import SHOP

from skillc_gym.envs.webshop import WebShopEnv
from skillc_gym.envs.webshop.browser import WebShopBrowserEnv
from skillc_gym.envs.webshop.experts import Shopper

MODES = ("text", "text_rich", "html")
ODD_QUERIES = (
    *("a/b & c", '"red" <b>rug</b>', "../../etc", "röd 100% 中文 😀", "?q=1#x;y", "search_results", " ", "'quoted'"),
    *("tab\tbetween", "<script>alert(1)</script>", "x" * 300),
)
GARBAGE = ("", "click[nothing]", "search[]", "Click[buy now]", "click[search]", "buy", "click[Buy Now] thanks", "\n")


def shopper(info, rng):
    """Plays as the rule-based customer does."""
    customer = Shopper(info["goal"])
    return lambda observation, info: customer.act(observation, list(info["available_actions"]))


def clicker(info, rng):
    """Clicks at random, searches from everywhere, for odd words too, and tries what is not possible."""

    def act(_, info):
        chance = rng.random()
        if chance < 0.08:
            return rng.choice(GARBAGE)
        if chance < 0.16:
            return f"search[{rng.choice(ODD_QUERIES)}]"
        action = rng.choice(info["available_actions"] or ["search[<query>]"])
        return action.replace("<query>", " ".join(info["goal"].split()[:6]))

    return act


class Trio:
    """The text environment and one in a browser for every transport, in the same moment of the same task."""

    def __init__(self, **shop):
        self.native = {mode: WebShopEnv(**shop, observation_mode=mode) for mode in MODES}
        self.browsers = {
            name: WebShopBrowserEnv(transport=name, observation_mode="html", browsers=1, **shop)
            for name in ("served", "swap")
        }
        self.task_ids = self.native["text"].task_ids

    def play(self, task_id, style, seed=0, limit=15):
        """Plays an episode in all of them and compares every moment; returns the number of actions."""
        start = {"seed": seed, "options": {"task_id": task_id}}
        expected = {mode: env.reset(**start) for mode, env in self.native.items()}
        shown = {name: env.reset(**start) for name, env in self.browsers.items()}
        self.compare(expected, shown, (task_id, None))
        act = style(expected["text"][-1], random.Random(seed))
        for step in range(1, limit + 1):
            action = act(expected["text"][0], expected["text"][-1])
            expected = {mode: env.step(action) for mode, env in self.native.items()}
            shown = {name: env.step(action) for name, env in self.browsers.items()}
            for name, outcome in shown.items():
                assert outcome[1:4] == expected["text"][1:4], (name, task_id, step, action)
            self.compare(expected, shown, (task_id, step, action))
            if expected["text"][2]:
                return step
        return limit

    def compare(self, expected, shown, where):
        for name, env in self.browsers.items():
            for mode in MODES:
                assert env.parsed_page.observation(mode) == expected[mode][0], (name, mode, *where)
            assert shown[name][0] == expected["html"][0], (name, *where)
            assert shown[name][-1] == expected["text"][-1], (name, *where)
            assert env.address == self.native["text"].address, (name, *where)

    def play_some(self, episodes, seed, limit=15):
        """Half of the tasks, which are drawn, are played by the rule-based customer and half by random clicks."""
        rng = random.Random(seed)
        styles = [(shopper, clicker)[number % 2] for number in range(episodes)]
        return sum(self.play(rng.choice(self.task_ids), style, seed + n, limit) for n, style in enumerate(styles))

    def play_script(self, *actions):
        script = iter(actions)
        self.play(self.task_ids[0], lambda *_: lambda *_: next(script, ""), limit=len(actions))

    def close(self):
        for env in self.browsers.values():
            env.close()


@pytest.fixture(scope="module")
def trio(chromium):
    trio = Trio(data=SHOP, show_attributes=True)
    yield trio
    trio.close()


def test_episodes_are_the_same(trio):
    assert trio.play_some(2, 11, limit=8) > 4


@pytest.mark.slow
def test_episodes_with_upstreams_defects_are_the_same(chromium):
    trio = Trio(data=SHOP, compat="upstream", show_attributes=True)
    trio.play_some(6, 5)
    trio.close()


@pytest.mark.parametrize("place", range(-4, 0))
def test_hostile_products_are_the_same(trio, place):
    product = SHOP.products[place]
    values = [value for values in product.options.values() for value in values][:6]
    labels = (product.asin.lower(), *values, "description", "< prev", "features")
    trio.play_script(f"search[{product.title[-12:]}]", *(f"click[{label}]" for label in labels))
    assert trio.browsers["served"].parsed_page.kind == "sub"


def test_any_words_can_be_searched_for(trio):
    odd = (
        *("a/b rug", "../..", '"><script>x</script> rug', "röd 😀", "rug\x07bell", "rug\ud800", "a[", "]"),
        *("\u200brug", " "),
    )
    trio.play_script(*(f"search[{words}]" for words in odd), "click[next >]", "click[< prev]")

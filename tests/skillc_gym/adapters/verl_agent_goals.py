"""Compares our goals of a seed with those that a fork's own shop makes of it, prices included, in a process of its own.

    python verl_agent_goals.py CHECKOUT PRODUCTS_FOLDER SEED

The shop's server is the checkout's; the search engine (Java) and the tagger (spaCy), which have no part in goals, are
stood in for.
"""

import importlib
import inspect
import json
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from unittest.mock import MagicMock

from skillc_gym.envs.webshop.catalog import open_catalog
from skillc_gym.envs.webshop.goals import open_goals

SITE = "agent_system/environments/env_package/webshop/webshop"
NOT_ASKED = (
    *("gym", "pyserini", "spacy", "thefuzz", "flask", "cleantext", "selenium", "bs4", "rich", "torch", "tqdm"),
    *("rank_bm25", "web_agent_site.envs.web_agent_site_env"),
)


class StandIns(MetaPathFinder, Loader):
    """Finds a module with any names for each package that is not asked."""

    def find_spec(self, name, path=None, target=None):
        asked = any(name == one or name.startswith(f"{one}.") for one in NOT_ASKED)
        return ModuleSpec(name, self, is_package=True) if asked else None

    def create_module(self, spec):
        module = MagicMock(name=spec.name, __spec__=spec, __path__=[], __name__=spec.name)
        module.tqdm = lambda rows, **_: rows
        return module

    def exec_module(self, module):
        pass


def theirs(checkout, folder, seed, human):
    """Goals and prices of the checkout's own server."""
    server = importlib.import_module("web_agent_site.envs.web_agent_text_env")
    engine = importlib.import_module("web_agent_site.engine.engine")
    engine.HUMAN_ATTR_PATH = str(folder / "items_human_ins.json")
    engine.DEFAULT_ATTR_PATH = str(folder / "items_ins_v2_1000.json")
    takes = inspect.signature(server.SimServer).parameters
    files = {"file_path": str(folder / "items_shuffle_1000.json"), "attr_path": engine.DEFAULT_ATTR_PATH}
    server.random.seed(seed)  # as WebAgentTextEnv does before it makes the server
    given = {name: path for name, path in files.items() if name in takes}
    shop = server.SimServer(seed, "", **given, human_goals=human)
    goals = [(goal["asin"], goal["instruction_text"], goal["price_upper"], options(goal)) for goal in shop.goals]
    return goals, shop.product_prices


def options(goal):
    asked = goal["goal_options"]
    return [list(pair) for pair in asked.items()] if isinstance(asked, dict) else list(asked)


def ours(folder, seed, kind):
    catalog = open_catalog(str(folder))
    goals = open_goals(catalog, kind=kind, order=f"verl-agent:{seed}")
    told = [goals.goal(index) for index in range(len(goals))]
    prices = {catalog.product(place).asin: float(price) for place, price in enumerate(goals.table.prices)}
    names = [[list(one) if kind == "synthetic" else one for one in goal.options] for goal in told]
    plain = [(goal.asin, goal.instruction, goal.price_upper, asked) for goal, asked in zip(told, names, strict=True)]
    return plain, prices


def main(checkout, folder, seed):
    sys.meta_path.insert(0, StandIns())
    sys.path.insert(0, str(Path(checkout) / SITE))
    found = {}
    for kind in ("synthetic", "human"):
        their_goals, their_prices = theirs(checkout, folder, seed, kind == "human")
        our_goals, our_prices = ours(folder, seed, kind)
        assert their_prices == our_prices
        assert len(their_goals) == len(our_goals)
        wrong = [pair for pair in zip(their_goals, our_goals, strict=True) if pair[0] != pair[1]]
        assert not wrong, wrong[0]
        found[kind] = len(our_goals)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))

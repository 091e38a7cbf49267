"""Compares WebShop with all recordings of upstream's, says what each fix changes of them, and writes it down.

python -m benchmarks.parity_webshop --reference FOLDER --data FOLDER --out benchmarks/records/parity_webshop.json
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks import parity_webshop_catalog as catalog
from benchmarks.measuring import measurement, options_parser
from benchmarks.parity_webshop_catalog import Comparison, read_cases, sources
from skillc_gym.envs.webshop import WebShopEnv
from skillc_gym.envs.webshop.goals import COLOR_WORDS, Goal, normalize_color, noun_tagger, score, token_set_ratio
from skillc_gym.envs.webshop.shop import FIXED, FIXES, SEPARATOR, UPSTREAM, Fixes
from skillc_gym.errors import MissingDataError
from skillc_gym.version import __version__

Case = dict[str, Any]


def compare_colors(folder: Path) -> Comparison:
    """Compares the list of colours."""
    found = Comparison("colours")
    found.add("color_words", list(COLOR_WORDS), read_cases(folder, "color_words.json"))
    return found


def compare_fuzzy(folder: Path) -> Comparison:
    """Compares the scores of pairs of texts, before and after colours were reduced."""
    found = Comparison("fuzzy scores")
    for case in read_cases(folder, "fuzz_cases.jsonl"):
        one, other = _texts(case["p"]), _texts(case["g"])
        reduced = normalize_color(one), normalize_color(other)
        got = (*reduced, token_set_ratio(*reduced), token_set_ratio(one, other))
        expected = (_texts(case["p_norm"]), _texts(case["g_norm"]), case["score"], case["raw_score"])
        found.add(f"{one!r} and {other!r}", got, expected)
    return found


def compare_rewards(folder: Path) -> Comparison:
    """Compares the scores of purchases and all their parts, given the recorded nouns."""
    found = Comparison("rewards")
    for number, case in enumerate(read_cases(folder, "reward_cases.jsonl")):
        goal, product = case["goal"], case["product"]
        options = _options(goal["goal_options"])
        wanted: Any = SimpleNamespace(**goal | {"attributes": tuple(goal["attributes"]), "options": options})
        bought: Any = SimpleNamespace(
            **product,
            attributes=tuple(product["Attributes"]),
            title=product["Title"],
            description=product["Description"],
            bullets=tuple(product["BulletPoints"]),
        )
        reward = score(
            wanted,
            bought,
            case["options"].values(),
            case["price"],
            goal_nouns=case["goal_nouns"],
            product_nouns=case["product_nouns"],
        )
        found.add(f"case {number} ({case['label']})", (reward.total, reward.parts()), (case["reward"], case["info"]))
    return found


def compare_nouns(folder: Path) -> Comparison:
    """Compares the tagger with the recorded nouns of names; agreement is all that can be asked of it."""
    chosen = noun_tagger(None)
    found = Comparison(f"nouns by {chosen.id}")
    names = {case["product"]["name"]: case["product_nouns"] for case in read_cases(folder, "reward_cases.jsonl")}
    names |= {case["goal"]["name"]: case["goal_nouns"] for case in read_cases(folder, "reward_cases.jsonl")}
    for name, nouns in names.items():
        found.add(repr(name), list(chosen.nouns(name)), nouns)
    return found


def compare_goals(folder: Path) -> Comparison:
    """Compares both lists of goals in order, with texts, prices and weights."""
    found = Comparison("goals")
    for kind in ("synthetic", "human"):
        goals = WebShopEnv(data=sources(folder), goals=kind).goals
        cases = read_cases(folder, f"goals_{kind}.jsonl")
        found.add(f"number of {kind} goals", len(goals), len(cases))
        for case in cases[: len(goals)]:
            found.add(f"{kind}/{case['idx']}", _goal_record(goals.goal(case["idx"]), kind), case)
            found.counts[kind] += 1
    return found


def compare_episodes(folder: Path, *, compat: str | Fixes = "upstream") -> Comparison:
    """Replays the recorded episodes, and compares every observation, reward, flag, list of actions and address."""
    found = Comparison("episodes" if compat == "upstream" else f"episodes, compat={compat}")
    envs: dict[tuple[str, str, bool], WebShopEnv] = {}
    for episode in read_cases(folder, "episodes.jsonl"):
        key = (episode["goals"], episode["observation_mode"], bool(episode["extra"].get("show_attrs")))
        if key not in envs:
            choice: Case = dict(zip(("goals", "observation_mode", "show_attributes"), key, strict=True))
            envs[key] = WebShopEnv(data=sources(folder), compat=compat, **choice)
        found.counts["episodes"] += 1
        for place, got, expected in _replay(envs[key], episode):
            found.add(f"{episode['id']} step {place}", got, expected)
            found.counts["purchases"] += bool(expected.get("done"))
            if got != expected:  # what follows would differ too
                break
    return found


def _replay(env: WebShopEnv, episode: Case) -> Iterator[tuple[int, Case, Case]]:
    observation, info = env.reset(options={"task_id": f"{episode['goals']}/{episode['goal_idx']}"})
    state = _History(episode["extra"].get("num_prev_obs", 0), episode["extra"].get("num_prev_actions", 0))
    known = ("obs", "url", "available", "reward", "done")
    yield 0, _seen(env, state.after(observation), info), {name: episode["reset"][name] for name in known[:3]}
    for place, step in enumerate(episode["steps"], 1):
        observation, reward, done, _, info = env.step(step["action"])
        got = {**_seen(env, state.after(observation, step["action"]), info), "reward": reward, "done": done}
        yield place, got, {name: step[name] for name in known}


class _History:
    """Upstream's own way to show earlier observations and actions in front of the current one."""

    def __init__(self, observations: int, actions: int) -> None:
        self._shown = observations, actions
        self._past: list[tuple[str, str]] = []
        self._last = ""

    def after(self, observation: str, action: str | None = None) -> str:
        if action is not None:
            self._past.append((self._last, action))
        self._last = observation
        fields = [observation]
        for back, (before, done) in enumerate(reversed(self._past), 1):
            fields[:0] = [before] * (back <= self._shown[0]) + [done] * (back <= self._shown[1])
        return SEPARATOR.join(fields)


def _seen(env: WebShopEnv, observation: str, info: Case) -> Case:
    available = {name: info[name] for name in ("has_search_bar", "clickables")}
    return {"obs": observation, "url": env.url, "available": available}


def _goal_record(goal: Goal, kind: str) -> Case:
    named = {option[0]: option[1] for option in goal.options if isinstance(option, tuple)}
    called_the_same = ("asin", "category", "query", "name", "product_category", "price_upper", "weight")
    return {
        **{field: getattr(goal, field) for field in called_the_same},
        "idx": goal.index,
        "instruction_text": goal.instruction,
        "attributes": list(goal.attributes),
        "goal_options": named if kind == "synthetic" else list(goal.options),
    }


def _options(options: list[str] | dict[str, str]) -> tuple[str | tuple[str, str], ...]:
    return tuple(options.items()) if isinstance(options, dict) else tuple(options)


def _texts(text: str | list[str]) -> str | tuple[str, ...]:
    return text if isinstance(text, str) else tuple(text)


# The command ---------------------------------------------------------------------------------------------------------

EXACT: tuple[Callable[[Path], Comparison], ...] = (
    compare_colors,
    compare_fuzzy,
    compare_rewards,
    compare_goals,
    catalog.compare_products,
    catalog.compare_loader,
    catalog.compare_terms,
    catalog.compare_rankings,
    catalog.compare_special_searches,
    compare_episodes,
)
"""What must be equal."""


def _changed(folder: Path, fixes: Fixes) -> frozenset[str]:
    """The recordings that some fixes change: episodes by id, hidden commands."""
    episodes = compare_episodes(folder, compat=fixes)
    hidden = catalog.compare_special_searches(folder, compat=fixes)
    lines = [line.split(" step ")[0] for line in episodes.differences]
    return frozenset(lines + [f"`{line.split(': got ')[0]}`" for line in hidden.differences])


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    found = [compare(options.reference) for compare in EXACT]
    try:
        found.append(catalog.compare_real_rankings(options.reference, options.data))
    except MissingDataError as error:
        print(f"The rankings of the real products were not compared: {error}", file=sys.stderr)
    alone = {name: _changed(options.reference, replace(UPSTREAM, **{name: True})) for name in FIXES}
    together = _changed(options.reference, FIXED)
    compared = [
        {"name": each.name, "cases": each.cases, "counts": dict(each.counts), "differences": each.differences}
        for each in [*found, compare_nouns(options.reference)]
    ]
    fixes = {name: sorted(changed) for name, changed in alone.items()}
    unexplained = sorted(together.difference(*alone.values()))
    told = {"fixes": fixes, "all_fixes": sorted(together), "unexplained": unexplained}
    return {"version": __version__, "compared": compared, **told}


def main(words: Sequence[str] | None = None) -> int:
    """Compares; returns 1 if anything differs that must not. A tagger need not agree with the recorded nouns."""
    parser = options_parser(__doc__)
    parser.add_argument("--reference", type=Path, required=True, help="folder of reference vectors")
    parser.add_argument("--data", default=None, help="the real 1,000 products; $WEBSHOP_DATA if left out")
    return measurement(parser, _measure, words, failed=_wrong)


def _wrong(record: dict[str, Any]) -> bool:
    exact = [each for each in record["compared"] if not each["name"].startswith("nouns")]
    return bool(record["unexplained"]) or any(each["differences"] for each in exact)


if __name__ == "__main__":
    sys.exit(main())

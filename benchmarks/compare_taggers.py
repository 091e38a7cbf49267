"""How far the built-in tagger of nouns agrees with a spaCy model on a catalogue, and what it changes in rewards.

python -m benchmarks.compare_taggers --data FOLDER --tagger spacy --out docs/results/compare_taggers
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.page_record import measure_and_write
from skillc_gym.envs.webshop import WebShopEnv
from skillc_gym.envs.webshop.experts import Shopper, words
from skillc_gym.envs.webshop.goals import Goal, NounTagger, score
from skillc_gym.version import __version__

_LIMIT = 15


def main(arguments: Sequence[str] | None = None) -> int:
    """Compares and writes a page."""
    record = measure_and_write(_parser().parse_args(arguments), measure, markdown)
    if record is None:
        return 2
    return 0


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Compares names, all purchases of what a goal's own words find, and the purchases of the rule-based customer."""
    ours = WebShopEnv(data=options.data)
    theirs = WebShopEnv(data=options.data, noun_tagger=options.tagger)
    return {
        "command": "python -m benchmarks.compare_taggers " + " ".join(sys.argv[1:]),
        "skillc-gym": __version__,
        "taggers": [ours.tagger.id, theirs.tagger.id],
        "names": _names(ours, theirs.tagger),
        "found": _found(ours, theirs.tagger, options.every),
        "shopper": _shopper(ours, theirs, options.every),
    }


def _names(env: WebShopEnv, other: NounTagger) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    for product in map(env.catalog.product, range(len(env.catalog))):
        ours, theirs = set(env.tagger.nouns(product.title)), set(other.nouns(product.title))
        counts.update(names=1, same=ours == theirs, both=len(ours & theirs), either=len(ours | theirs))
        counts.update(only_ours=len(ours - theirs), only_theirs=len(theirs - ours))
    return dict(counts)


def _found(env: WebShopEnv, other: NounTagger, every: int) -> dict[str, Any]:
    """Scores every product that a search for a goal's own words finds, as if it were bought without options."""
    counts: Counter[str] = Counter()
    change = 0.0
    for goal in _goals(env, every):
        for index in env.catalog.search(" ".join(words(goal.instruction)[:6])):
            ours, theirs = (_rate(env, goal, int(index), tagger) for tagger in (env.tagger, other))
            counts.update(purchases=1, types=ours[0] != theirs[0], scores=ours[1] != theirs[1])
            counts.update(higher=ours[1] > theirs[1], lower=ours[1] < theirs[1])
            change += ours[1] - theirs[1]
    return {**counts, "mean_change": change / max(counts["purchases"], 1)}


def _rate(env: WebShopEnv, goal: Goal, index: int, tagger: NounTagger) -> tuple[float, float]:
    product, own = env.catalog.product(index), env.catalog.product(int(env.goals.table.product[goal.index]))
    price = float(env.goals.table.prices[index])
    nouns = {"goal_nouns": tagger.nouns(own.title), "product_nouns": tagger.nouns(product.title)}
    reward = score(goal, product, [], price, **nouns)
    return reward.r_type, reward.total


def _shopper(ours: WebShopEnv, theirs: WebShopEnv, every: int) -> dict[str, Any]:
    """Lets the rule-based customer buy the same in both."""
    counts: Counter[str] = Counter()
    scores = [0.0, 0.0]
    for goal in _goals(ours, every):
        task = {"task_id": ours.goals.task_id(goal.index)}
        totals = [_bought(env, task) for env in (ours, theirs)]
        counts.update(episodes=1, differing=totals[0] != totals[1])
        counts.update(won_builtin=totals[0] == 1.0, won_spacy=totals[1] == 1.0)
        scores = [before + total for before, total in zip(scores, totals, strict=True)]
    return {**counts, "score_builtin": scores[0] / counts["episodes"], "score_spacy": scores[1] / counts["episodes"]}


def _bought(env: WebShopEnv, task: dict[str, str]) -> float:
    observation, info = env.reset(seed=0, options=task)
    customer = Shopper(info["goal"])
    for _ in range(_LIMIT):
        observation, _, bought, _, info = env.step(customer.act(observation, info["available_actions"]))
        if bought:
            break
    return float(info["task_score"])


def _goals(env: WebShopEnv, every: int) -> Iterator[Goal]:
    return map(env.goals.goal, env.goals.range[::every])


def markdown(record: dict[str, Any]) -> str:
    """Writes the record as a page."""
    names, found, shopper = record["names"], record["found"], record["shopper"]
    ours, theirs = record["taggers"]
    return (
        "# The built-in tagger beside spaCy's model\n\n"
        f"Made by `{record['command']}`, skillc-gym {record['skillc-gym']}: `{ours}` beside `{theirs}`.\n\n"
        "| | figure |\n|---|---:|\n"
        f"| names of products | {names['names']:,} |\n"
        f"| with exactly the same nouns | {names['same']:,} |\n"
        f"| nouns that both find, of those that either finds | {names['both'] / names['either']:.1%} |\n"
        f"| nouns that only the built-in one finds, only spaCy | {names['only_ours']:,}, {names['only_theirs']:,} |\n"
        f"| products found by goals' own words, scored as bought | {found['purchases']:,} |\n"
        f"| of these, another r_type | {found['types'] / found['purchases']:.2%} |\n"
        f"| of these, another score | {found['scores'] / found['purchases']:.2%} |\n"
        f"| higher with the built-in one, lower | {found['higher']:,}, {found['lower']:,} |\n"
        f"| mean of built-in score less spaCy's | {found['mean_change']:+.5f} |\n"
        f"| episodes of the rule-based customer | {shopper['episodes']:,} |\n"
        f"| of these, another score | {shopper['differing'] / shopper['episodes']:.2%} |\n"
        f"| mean score, built-in and spaCy | {shopper['score_builtin']:.4f}, {shopper['score_spacy']:.4f} |\n"
        f"| success, built-in and spaCy | {shopper['won_builtin'] / shopper['episodes']:.2%}, "
        f"{shopper['won_spacy'] / shopper['episodes']:.2%} |\n"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=None, help="WebShop products (default: WEBSHOP_DATA)")
    parser.add_argument("--tagger", default="spacy", help="'spacy' or the name of a model")
    parser.add_argument("--every", type=int, default=7, help="take every so many goals")
    parser.add_argument("--out", type=Path, help="where to write .json and .md")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())

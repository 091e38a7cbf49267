"""Measures WebShop: parity with recordings of upstream's, the shopper's success, speed, and what any string does.

python -m benchmarks.check_webshop vectors --reference FOLDER --data FOLDER --out docs/results/parity_webshop
python -m benchmarks.check_webshop shopper --data FOLDER --out runs/shopper.json
python -m benchmarks.check_webshop speed --data FOLDER
python -m benchmarks.check_webshop storm --data FOLDER --actions 10000000
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import compare_webshop
from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.envs.webshop.experts.reading import words
from skillc_gym.envs.webshop.experts.shopper import Shopper
from skillc_gym.envs.webshop.goals.goals import split_range
from skillc_gym.errors import ConfigError, SkillCError

SPLITS = ("test", "valid", "train")
LIMIT = 15
PIECES = (
    "search[", "click[", "]", "[", "[]", "<r>", "<c> beauty", "<q> x", "buy now", "< prev", "next >", "features",
    "back to search", "\n", "\x00", "\ud800", "é", "😀", "中文", "'", '"', "{0}", "%s", "..", "/",
    "search_results", "item_page",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one of the measurements; returns 1 if recordings differ."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except SkillCError as error:
        print(error, file=sys.stderr)
        return 2


def check_vectors(options: argparse.Namespace) -> int:
    """Compares with every file of recordings, and says what the fixes change of them."""
    chosen = ["--reference", str(options.reference), "--show", str(options.show)]
    chosen += ["--data", options.data] * (options.data is not None)
    return compare_webshop.main(chosen + ["--out", str(options.out)] * (options.out is not None))


def check_shopper(options: argparse.Namespace) -> int:
    """Lets the rule-based shopper buy for every goal, or for some of each split."""
    report: dict[str, Any] = {}
    for kind in options.goals:
        env = WebShopEnv(data=options.data, goals=kind)
        for split in SPLITS:
            try:
                indices = list(split_range(split, len(env.goals)))
            except ConfigError:
                continue
            chosen = sorted(random.Random(0).sample(indices, min(options.tasks or len(indices), len(indices))))
            rows = [_shop(env, f"{kind}/{index}") for index in chosen]
            report[f"{kind} {split}"] = row = _summary(rows)
            print(
                f"{kind} {split}: "
                + ", ".join(f"{name} {value}" for name, value in row.items() if name != "unreachable")
            )
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(report, indent=1), encoding="utf-8")
    return 0


def check_speed(options: argparse.Namespace) -> int:
    """Clicks at random, with the list of actions at every step."""
    started = time.perf_counter()
    env = WebShopEnv(data=options.data, goals=options.goals[0])
    print(f"opened in {time.perf_counter() - started:.2f} s: {len(env.catalog)} products, {len(env.goals)} goals")
    rng = random.Random(0)
    queries = [" ".join(words(env.goals.goal(i).instruction)[:6]) for i in range(min(200, len(env.goals)))]
    _clicks(env, rng, queries, options.steps // 10)
    rates = [_clicks(env, rng, queries, options.steps) for _ in range(3)]
    runs = ", ".join(f"{rate:,.0f}" for rate in rates)
    print(f"steps per CPU second, random clicks with actions: median {sorted(rates)[1]:,.0f} of {runs}")
    started = time.process_time()
    for _ in range(20_000):
        env.reset()
    print(f"reset: {(time.process_time() - started) / 20_000 * 1e6:.1f} us")
    return 0


def check_storm(options: argparse.Namespace) -> int:
    """Plays listed actions and strings of all kinds; an exception ends it, and growth of memory is told."""
    env = WebShopEnv(data=options.data, goals=options.goals[0], compat=options.compat, observation_mode=options.mode)
    rng = random.Random(options.seed)
    actions = _strings(rng, options.long)
    _, info = env.reset(seed=options.seed)
    memory: list[float] = []
    for number in range(options.actions):
        listed = info["available_actions"]
        action = rng.choice(listed) if listed and rng.random() < 0.5 else next(actions)
        _, _, ended, _, info = env.step(action)
        if ended or number % 50 == 49:
            _, info = env.reset()
        if number % max(options.actions // 10, 1) == 0:
            memory.append(_resident())
            print(f"{number:10,d} actions, {memory[-1]:.1f} MB resident", flush=True)
    print(
        f"{options.actions:,} actions, no exception; {_resident() - memory[len(memory) // 2]:+.1f} MB since half-time"
    )
    return 0


def _shop(env: WebShopEnv, task_id: str) -> tuple[str, float, bool]:
    observation, info = env.reset(options={"task_id": task_id})
    shopper = Shopper(info["goal"], steps=LIMIT)
    reward = 0.0
    for _ in range(LIMIT):
        observation, reward, ended, _, info = env.step(shopper.act(observation, info["available_actions"]))
        if ended:
            break
    return task_id, reward, env.best_score(task_id) == 1.0


def _summary(rows: list[tuple[str, float, bool]]) -> dict[str, Any]:
    scores = [reward for _, reward, _ in rows]
    reachable = [reward == 1.0 for _, reward, can in rows if can]
    return {
        "tasks": len(rows),
        "mean_score": round(sum(scores) / len(rows), 4),
        "success": round(sum(score == 1.0 for score in scores) / len(rows), 4),
        "success_of_reachable": round(sum(reachable) / max(len(reachable), 1), 4),
        "unreachable_tasks": len(rows) - len(reachable),
        "unreachable": [task_id for task_id, _, can in rows if not can],
    }


def _clicks(env: WebShopEnv, rng: random.Random, queries: list[str], steps: int) -> float:
    _, info = env.reset(seed=0)
    started = time.process_time()
    for _ in range(steps):
        action = rng.choice(info["available_actions"])
        if action == "search[<query>]":
            action = f"search[{rng.choice(queries)}]"
        _, _, ended, _, info = env.step(action)
        if ended:
            _, info = env.reset()
    return steps / (time.process_time() - started)


def _strings(rng: random.Random, long: int) -> Iterator[str]:
    while True:
        text = "".join(rng.choice(PIECES) for _ in range(rng.randrange(8)))
        if rng.random() < 0.3:
            text = f"search[{text}{rng.randrange(10**6)} shoes]"
        if long and rng.random() < 1 / 2_000:
            text = f"search[{rng.choice(PIECES) * (long // 4)} {rng.random()}]"
        yield text


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(required=True)
    vectors = parts.add_parser("vectors", help="parity with recordings")
    vectors.add_argument("--reference", type=Path, required=True, help="folder of reference vectors")
    vectors.add_argument("--show", type=int, default=3, help="differences to show for each file")
    vectors.add_argument("--data", default=None, help="the real 1,000 products; $WEBSHOP_DATA if left out")
    vectors.add_argument("--out", type=Path, help="where to write .md and .json")
    vectors.set_defaults(run=check_vectors)
    runs = {"shopper": check_shopper, "speed": check_speed, "storm": check_storm}
    for name, run in runs.items():
        part = parts.add_parser(name)
        part.add_argument("--data", default=None, help="catalogue; $WEBSHOP_DATA if left out, or 'generated'")
        part.add_argument("--goals", nargs="+", default=["synthetic"], choices=["synthetic", "human"])
        part.set_defaults(run=run)
    shopper, speed, storm = (parts.choices[name] for name in runs)
    shopper.add_argument("--tasks", type=int, default=0, help="tasks of each split; all if left out")
    shopper.add_argument("--out", type=Path, help="where to write the figures and the unreachable tasks, as JSON")
    speed.add_argument("--steps", type=int, default=100_000)
    storm.add_argument("--actions", type=int, default=1_000_000)
    storm.add_argument("--long", type=int, default=100_000, help="length of the longest queries; 0 for none")
    storm.add_argument("--compat", default="fixed", choices=["fixed", "upstream"])
    storm.add_argument("--mode", default="text", help="observation mode")
    storm.add_argument("--seed", type=int, default=0)
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""What an update of each method costs beside GRPO's: seconds, prompt tokens and generated tokens, in one process.

    python -m benchmarks.method_costs --out benchmarks/records/method_costs.json

Methods take turns, a few updates each, at a learning rate of 0, so that the policy stays what it is. Beside plain
GRPO stands GRPO on the very rollouts of each method (its allocation, curriculum and memory, GRPO's credit and loss):
the same tokens are played, so the ratio is what the method adds. Methods that play alike follow each other and share
it. Validations and the first update of every turn are left out.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from benchmarks.measuring import measurement, options_parser
from trainers.config import TrainConfig
from trainers.recipes import ADDITIONS, Recipe, get_recipe, recipe_names
from trainers.training import run
from trainers.warmstart import small_policy_settings

BASELINE = "grpo"
_SAME = "grpo_on_"
_PARTS = ("generate", "prepare", "update")
_PLAYING = ("allocation", "curriculum", "contrast", "memory")
"""The parts of a recipe that decide which rollouts are played."""


@dataclass(frozen=True)
class Update:
    """One update's cost."""

    seconds: float
    prompt_tokens: int
    generated: int

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Update:
        """Reads a line of the metrics."""
        seconds = sum(float(record[f"seconds_{part}"]) for part in _PARTS)
        return cls(seconds, int(record["prompt_tokens"]), int(record["tokens_generated"]))


def same_rollouts(method: str) -> str:
    """The preset that plays a method's rollouts and learns from them as GRPO does."""
    return f"{__name__}:{_SAME}{method.replace('+', '__')}"


def __getattr__(name: str) -> Recipe:
    if not name.startswith(_SAME):
        raise AttributeError(name)
    own = get_recipe(name.removeprefix(_SAME).replace("__", "+"))
    shared = {part: getattr(own, part) for part in _PLAYING}
    return replace(get_recipe(BASELINE), name=name, **shared)


def measure_costs(config: TrainConfig, methods: Sequence[str], *, rounds: int, updates: int) -> dict[str, Any]:
    """Measures methods in turns, each after an update that is left out; medians, and how they compare with GRPO's."""
    presets = list(dict.fromkeys([BASELINE, *methods]))
    beside = _references(presets)
    turns = list(dict.fromkeys(preset for pair in zip(beside.values(), beside, strict=True) for preset in pair))
    found: dict[str, list[Update]] = {}
    for seed in range(rounds):
        for preset in turns:
            found.setdefault(preset, []).extend(_turn(config.with_(method=preset, seed=seed, steps=updates + 1)))
    return {
        "env": config.env,
        "rollouts": config.tasks_per_step * config.group_size,
        "rounds": rounds,
        "updates": updates,
        "methods": [_row(method, found, beside[method]) for method in presets],
    }


def _references(presets: Sequence[str]) -> dict[str, str]:
    """Beside what every preset stands, GRPO on its rollouts; presets that play alike stand together."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for preset in presets:
        recipe = get_recipe(preset)
        alike.setdefault(tuple(repr(getattr(recipe, part)) for part in _PLAYING), []).append(preset)
    groups = alike.values()
    return {preset: BASELINE if BASELINE in names else same_rollouts(names[0]) for names in groups for preset in names}


def _turn(config: TrainConfig) -> list[Update]:
    with tempfile.TemporaryDirectory() as folder:
        metrics = run(config.with_(run=folder, resume="never")).metrics
    return [Update.of(record) for record in metrics if record["event"] == "train"][1:]


def _row(method: str, found: Mapping[str, Sequence[Update]], beside: str) -> dict[str, Any]:
    own, plain, same = found[method], found[BASELINE], found[beside]
    ratios = [a.seconds / b.seconds for a, b in zip(own, same, strict=True)]
    return {
        "method": method,
        "seconds": median(each.seconds for each in own),
        "prompt_tokens": median(each.prompt_tokens for each in own),
        "generated_tokens": median(each.generated for each in own),
        "to_grpo": median(each.seconds for each in own) / median(each.seconds for each in plain),
        "to_grpo_on_its_rollouts": median(ratios),
        "ratios": [round(ratio, 3) for ratio in ratios],
        "same_rollouts": [each.generated for each in own] == [each.generated for each in same],
        "every_second": [round(each.seconds, 3) for each in own],
    }


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    import torch

    torch.set_num_threads(1)
    settings = {**small_policy_settings(options.env), "learning_rate": 0.0, "panel_per_type": 2}
    apart = {"validate_every": 10**6, "save_every": 10**6, "transcripts_every": 0}
    config = TrainConfig(model=options.model, **{**settings, **apart})
    return measure_costs(config, options.methods, rounds=options.rounds, updates=options.updates)


def main(words: Sequence[str] | None = None) -> int:
    """Runs the measurement; returns 2 where it was refused."""
    parser = options_parser(__doc__)
    everything = [*recipe_names(), *(f"skillc+{name}" for name in ADDITIONS)]
    parser.add_argument("--methods", nargs="+", default=everything, help="methods (default: all, and the additions)")
    parser.add_argument("--env", default="alfworld", help="the environment")
    parser.add_argument("--model", default="shipped", help="the policy")
    parser.add_argument("--rounds", type=int, default=2, help="turns of every method")
    parser.add_argument("--updates", type=int, default=3, help="updates of a turn")
    return measurement(parser, _measure, words)


if __name__ == "__main__":
    sys.exit(main())

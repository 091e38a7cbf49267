"""A simulated learner's run folder, for developing pictures: metrics, before and after reports, episodes."""

import json
import math
from itertools import product
from pathlib import Path

import numpy as np

from skillc_gym.episodes import Episode
from tests.trainers.toys import episode as played
from trainers.advantages import RolloutBatch
from trainers.evaluation import ArmOutcome, PairedOutcome, PairedReport
from trainers.evaluation.table import retirement_rule
from trainers.recipes import get_recipe
from trainers.recipes.method import Method

SPEEDS = {
    "pick_and_place_simple": 0.06,
    "look_at_obj_in_light": 0.045,
    "pick_clean_then_place_in_recep": 0.03,
    "pick_heat_then_place_in_recep": 0.02,
    "pick_cool_then_place_in_recep": 0.012,
    "pick_two_obj_and_place": 0.006,
}
ARMS = ("with", "without")
START = dict(zip(SPEEDS, (0.45, 0.35, 0.15, 0.05, 0.05, 0.2), strict=True))


def rate(kind: str, condition: int, step: int) -> float:
    learned = 1 - math.exp(-SPEEDS[kind] * step)
    return 0.7 + 0.12 * learned if condition else START[kind] + (0.86 - START[kind]) * learned


def episode(task: str, kind: str, condition: int, won: bool) -> Episode:
    actions = ["go to countertop 1", "take apple 1 from countertop 1"]
    actions += ["go to microwave 1", "heat apple 1 with microwave 1"] if won else ["look"] * 5
    actions += ["go to garbagecan 1", "move apple 1 to garbagecan 1"]
    seen = [f"You arrive at {a.split(' to ')[-1]}. You see a <b>bread 1</b>, a plate 2." for a in actions]
    skill = {"skill": "heat", "text": "Heat it in the microwave before you place it."} if condition else {}
    goal, shown = "heat some apple and put it in garbagecan.", {"actions": actions, "observations": seen, **skill}
    return played(task, won=won, condition=condition, kind=kind, goal=goal, **shown)


def report(step: int, seed: int) -> PairedReport:
    """An evaluation of twenty tasks of each type after so many steps."""
    rng = np.random.default_rng(seed)
    outcomes, episodes = [], []
    for kind, i in product(SPEEDS, range(20)):
        luck, task = rng.random(2), f"valid/{kind}/{i:03d}"
        won = {1: bool(luck[0] < rate(kind, 1, step)), 0: bool(luck[i % 2] < rate(kind, 0, step))}
        pair = [episode(task, kind, z, w) for z, w in won.items()]
        arms = [
            ArmOutcome(bool(e.won), float(e.won), len(e.turns), well_formed=len(e.turns), admissible=len(e.turns) - 1)
            for e in pair
        ]
        outcomes.append(PairedOutcome(task, kind, *arms))
        episodes += pair
    return PairedReport(tuple(outcomes), seed, {"temperature": 0.4, "greedy": False}, episodes=tuple(episodes))


def metrics(preset: str = "skillc", steps: int = 180) -> list[dict]:
    """Records as a training run writes them, validated on 24 tasks of each type."""
    rng = np.random.default_rng(0)
    state = Method(get_recipe(preset), tuple(SPEEDS), steps)
    records: list[dict] = []

    def validate(step: int) -> None:
        sr = [{k: rng.binomial(24, rate(k, z, step)) / 24 for k in SPEEDS} for z in (1, 0)]
        retired = [{"type": r.task_type, "reason": r.reason} for r in state.curriculum.update(*sr, step)]
        log = state.describe()
        record: dict = {"step": step, "event": "validation", "sr_with": sr[0], "sr_without": sr[1], "retired": retired}
        record |= {f"overall_{arm}": float(np.mean([*rates.values()])) for arm, rates in zip(ARMS, sr, strict=True)}
        record |= {"n": dict.fromkeys(SPEEDS, 24), "gap_smoothed": log["gap"], "gate": log["gate"]}
        record |= {"active": log["active"], "retirement": retirement_rule(state.curriculum)}
        records.append({**record, "gated": state.recipe.allocation.follows_curriculum})

    validate(0)
    for step in range(1, steps + 1):
        rows = []
        for kind in rng.choice(list(SPEEDS), 8):
            n_plus, task = state.n_plus(kind, 8), f"{kind}-{rng.integers(600)}"
            for z in [1] * n_plus + [0] * (8 - n_plus):
                rows.append((float(rng.random() < rate(kind, z, step)), task, str(kind), z))
        returns, task, kinds, condition = zip(*rows, strict=True)
        lengths = [12.0 - 4 * r + 2 * rng.random() for r in returns]
        batch = RolloutBatch.build(returns=returns, task=task, task_type=kinds, condition=condition, length=lengths)
        log = state.credit(batch).log
        for z, arm in zip((1, 0), ARMS, strict=True):
            chosen = [value for value, shown in zip(returns, condition, strict=True) if shown == z]
            log[f"success_{arm}"] = float(np.mean(chosen)) if chosen else None
        records.append({"step": step, "event": "train", "grad_norm": 1.0, **log})
        if step % 10 == 0:
            validate(step)
    return records


def write_run(folder: Path, preset: str = "skillc", steps: int = 180, **settings: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(record) + "\n" for record in metrics(preset, steps)]
    (folder / "metrics.jsonl").write_text("".join(lines))
    config = {"method": preset, "method_options": {}, "steps": steps, "seed": 0, "env": "alfworld", "group_size": 8}
    (folder / "config.json").write_text(json.dumps({**config, **settings}))
    (folder / "versions.json").write_text(json.dumps({"python": "3.11", "git": {"revision": "0" * 40}}))
    return folder

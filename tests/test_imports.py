"""Importing is light, and libraries keep to the house rules that a parser can see."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.test_rooms import PACKAGES, ROOT, inside, modules

LIBRARIES = PACKAGES[:4]
HEAVY = {
    *("torch", "transformers", "trl", "textworld", "alfworld", "matplotlib", "rich", "selenium", "starlette"),
    *("jinja2", "uvicorn", "vllm", "ray", "tensorboard", "wandb", "trackio"),
}
UPSTREAMS_PROCESS = "skillc_gym.envs.alfworld.engine.upstream_worker"
"""A script that runs alone in a process of its own, where upstream shuffles with the global generator."""
PURE_NUMPY_RANDOM = {"default_rng", "RandomState", "Generator", "SeedSequence", "BitGenerator", "PCG64"}


@pytest.mark.parametrize(
    "names",
    [
        "skill_library",
        "skillc_gym",
        "trainers",
        "skillc_gym.wrappers, skillc_gym.vector, skillc_gym.episodes, skillc_gym.envs.alfworld.env, "
        "skillc_gym.envs.alfworld.generate, skillc_gym.envs.alfworld.experts.explorer",
        "trainers.advantages, trainers.losses, trainers.memory, trainers.recipes.method, skillc_lab.report, "
        "trainers.config, trainers.evaluation.paired, trainers.tracking.run_folder, skillc_lab.cli.main",
        "skillc_lab.commands.train, skillc_lab.commands.evaluate, skillc_lab.commands.demo, "
        "skillc_lab.commands.play, skillc_lab.commands.doctor, skillc_lab.commands.report",
    ],
)
def test_importing_brings_in_nothing_heavy_and_says_nothing(names: str):
    program = f"import {names}, sys, json; print(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert not set(json.loads(done.stdout)) & HEAVY


def prints(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"


def catches_all(node: ast.AST) -> bool:
    return isinstance(node, ast.ExceptHandler) and node.type is None


def uses_global_random(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module in ("random", "numpy.random")
    if not isinstance(node, ast.Attribute):
        return False
    owner = ast.unparse(node.value)
    if owner in ("np.random", "numpy.random"):
        return node.attr not in PURE_NUMPY_RANDOM
    return owner == "random" and node.attr != "Random"


@pytest.mark.parametrize(
    ("rule", "packages", "program", "broken"),
    [
        (prints, LIBRARIES, "print(1)\nlog.print(1)", 1),
        (catches_all, PACKAGES, "try:\n    x\nexcept:\n    y\ntry:\n    x\nexcept ValueError:\n    y", 1),
        (
            uses_global_random,
            PACKAGES,
            "from random import choice\nnp.random.seed(0)\nrandom.choice([1])\nnp.random.default_rng(0)",
            3,
        ),
    ],
)
def test_libraries_keep_to_the_rules(
    rule: Callable[[ast.AST], bool], packages: tuple[str, ...], program: str, broken: int
):
    assert sum(map(rule, ast.walk(ast.parse(program)))) == broken
    wrong = [
        f"{name}:{node.lineno}"
        for name, tree in modules().items()
        if inside(name, *packages) and (rule, name) != (uses_global_random, UPSTREAMS_PROCESS)
        for node in ast.walk(tree)
        if rule(node)
    ]
    assert wrong == []

"""Packages import in one direction, importing is light, and libraries keep to the house rules that a parser can see."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("skill_library", "skillc_gym", "trainers", "skillc_lab", "scripts", "benchmarks")
"""From the bottom to the top: a package imports itself and those before it."""
LIBRARIES = LAYERS[:4]
HEAVY = {
    "torch",
    "transformers",
    "trl",
    "textworld",
    "alfworld",
    "matplotlib",
    "rich",
    "selenium",
    "starlette",
    "jinja2",
    "uvicorn",
    "vllm",
    "ray",
    "tensorboard",
    "wandb",
    "trackio",
}
UPSTREAMS_PROCESS = Path("skillc_gym/envs/alfworld/engine/upstream_worker.py")
"""A script that runs alone in a process of its own, where upstream shuffles with the global generator."""
PURE_NUMPY_RANDOM = {"default_rng", "Generator", "SeedSequence", "BitGenerator", "PCG64"}


def trees(*packages: str) -> Iterator[tuple[Path, ast.Module]]:
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path.relative_to(ROOT), ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and full name of everything a file imports, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: import by full name, not relative"
            assert node.module
            yield node.lineno, node.module


@pytest.mark.parametrize("package", LAYERS)
def test_nothing_imports_upward(package: str):
    above = {*LAYERS[LAYERS.index(package) + 1 :], "tests"}
    wrong = [
        f"{path}:{line} imports {name}"
        for path, tree in trees(package)
        for line, name in imported(tree)
        if name.split(".")[0] in above
    ]
    assert not wrong


def test_every_file_belongs_to_a_layer():
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests"}
    assert packages == set(LAYERS)
    assert all(any(trees(package)) for package in LAYERS)


@pytest.mark.parametrize(
    "modules",
    [
        "skill_library",
        "skillc_gym",
        "trainers",
        "skillc_gym.wrappers, skillc_gym.vector, skillc_gym.episodes",
        "skillc_gym.envs.alfworld.env, skillc_gym.envs.alfworld.generate, skillc_gym.envs.alfworld.experts.explorer",
        "trainers.advantages, trainers.losses, trainers.memory, trainers.recipes.method, skillc_lab.report",
        "trainers.config, trainers.evaluation.paired, trainers.tracking.run_folder, skillc_lab.cli.main",
        "skillc_lab.commands.train, skillc_lab.commands.evaluate, skillc_lab.commands.demo",
        "skillc_lab.commands.play, skillc_lab.commands.doctor, skillc_lab.commands.report",
    ],
)
def test_importing_brings_in_nothing_heavy(modules: str):
    program = f"import {modules}, sys, json; print(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    loaded = set(ast.literal_eval(done.stdout))  # one JSON line: importing itself said nothing
    assert not loaded & HEAVY


def test_libraries_do_not_print():
    wrong = [
        f"{path}:{node.lineno}"
        for path, tree in trees(*LIBRARIES)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert not wrong


def test_no_bare_except():
    wrong = [
        f"{path}:{node.lineno}"
        for path, tree in trees(*LAYERS)
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and node.type is None
    ]
    assert not wrong


def uses_global_random(node: ast.AST) -> bool:
    if not isinstance(node, ast.Attribute):
        return False
    owner = ast.unparse(node.value)
    if owner in ("np.random", "numpy.random"):
        return node.attr not in PURE_NUMPY_RANDOM
    return owner == "random" and node.attr != "Random"


def test_no_global_random_state():
    wrong = [
        f"{path}:{node.lineno} {ast.unparse(node)}"
        for path, tree in trees(*LAYERS)
        for node in ast.walk(tree)
        if uses_global_random(node) and path != UPSTREAMS_PROCESS
    ]
    wrong += [
        f"{path}:{node.lineno} from {node.module}"
        for path, tree in trees(*LAYERS)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in ("random", "numpy.random")
    ]
    assert not wrong


def test_the_checks_see_what_they_look_for():
    bad = ast.parse("import numpy as np\nnp.random.seed(0)\nrandom.choice([1])\nnp.random.default_rng(0)\n")
    assert [ast.unparse(node) for node in ast.walk(bad) if uses_global_random(node)] == [
        "np.random.seed",
        "random.choice",
    ]
    assert list(imported(ast.parse("def f():\n    from trainers.config import x\n"))) == [(2, "trainers.config")]

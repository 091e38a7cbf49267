"""Rooms: what each may import, lazily or for types alone included, never in a circle; the house rules of libraries."""

import ast
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("skill_library", "skillc_gym", "trainers", "skillc_lab", "scripts", "benchmarks")
"""From the bottom to the top: a package imports itself and those before it."""

GYM = (
    ("errors", "values", "files", "lazy", "pages", "picture", "spaces", "version", "chat", "panels", "episodes"),
    ("envs", "envs.base", "envs.registry", "envs.warm_start"),
    ("curricula", "curriculum", "wrappers"),
    ("vector",),
    ("testing", "adapters"),
    ("envs.alfworld", "envs.webshop", "envs.coins"),
)
"""Rooms of the gym from the bottom to the top: a room imports those in earlier rows, its own row, and itself."""

TRAINERS = (
    *("base", "stats", "config", "tracking", "models", "advantages", "allocation", "losses", "engines", "rollout"),
    *("retrieval", "writers", "memory", "recipes", "interop", "evaluation", "learner", "backends", "training"),
    "warmstart",
)
LAB = ("tables", "agents", "skills", "board", "planning", "report", "studies", "cli", "commands")
"""Rooms of trainers and laboratory from the bottom to the top: a room imports itself and those before it."""

ROWS = {
    "skillc_gym": GYM,
    "trainers": tuple((room,) for room in TRAINERS),
    "skillc_lab": tuple((room,) for room in LAB),
}
APART = ("envs.alfworld", "envs.webshop", "envs.coins")
"""Rooms of one row that do not know each other."""

ALGORITHM = ("advantages", "allocation", "engines", "losses", "rollout", "memory", "recipes", "learner", "backends")
"""Rooms of the trainers that compute an update."""

RECORDS_ONLY = ("skillc_lab.report", "trainers.tracking")
"""Rooms that see records, so none of the rooms above."""

TRL_USERS = ("trainers.backends.trl", "skillc_gym.adapters.trl", "benchmarks.trl_throughput")
OUTSIDERS = ("skillc_lab", "benchmarks")
"""Packages that use those below as any outsider would: public names of rooms only."""


@cache
def modules() -> Mapping[str, ast.Module]:
    """Every module of the packages, parsed once."""
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in zip(names, paths, strict=True)}


def nodes() -> Iterator[tuple[str, ast.AST]]:
    """Every part of every module, with the module's name."""
    return ((name, node) for name, tree in modules().items() for node in ast.walk(tree))


LOADERS = ("import_module", "load_reference", "load_object")


def named(tree: ast.Module) -> Iterator[str]:
    """What a module imports, wherever in it, or loads by a name; ``from room import module`` is an import of both."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in LOADERS:
            yield from (str(part.value).partition(":")[0] for part in node.args if isinstance(part, ast.Constant))
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: import by full name, not relative"
            yield from (str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names))


@cache
def imports() -> Mapping[str, frozenset[str]]:
    """The modules of ours that each imports."""
    return {name: frozenset(named(tree)).intersection(modules()) - {name} for name, tree in modules().items()}


def inside(module: str, *rooms: str) -> bool:
    return any(module == room or module.startswith(f"{room}.") for room in rooms)


def height(module: str, package: str) -> int:
    """The row of the innermost room of a module; above all of them if it lies in none."""
    rooms = {f"{package}.{room}": row for row, rooms in enumerate(ROWS[package]) for room in rooms}
    return max(((len(room), row) for room, row in rooms.items() if inside(module, room)), default=(0, 99))[1]


def test_the_packages_are_all_there_are():
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests"} == set(PACKAGES)


@pytest.mark.parametrize(
    ("room", "hidden"),
    [(package, [*PACKAGES[row + 1 :], "tests"]) for row, package in enumerate(PACKAGES)]
    + [(f"skillc_gym.{room}", [f"skillc_gym.{other}" for other in APART if other != room]) for room in APART]
    + [(room, [f"trainers.{name}" for name in ALGORITHM]) for room in RECORDS_ONLY]
    + [("trainers", [f"skillc_gym.{room}" for room in APART])],
)
def test_nobody_imports_what_it_should_not_know(room: str, hidden: list[str]):
    own = {name: tree for name, tree in modules().items() if inside(name, room)}
    assert own
    assert {(name, other) for name, tree in own.items() for other in named(tree) if inside(other, *hidden)} == set()


@pytest.mark.parametrize("package", ROWS)
def test_every_module_has_a_room_and_imports_from_it_or_those_below(package: str):
    own = [name for name in modules() if name.startswith(f"{package}.") and not name.endswith(".__main__")]
    assert [name for name in own if height(name, package) == 99] == []
    pairs = {(name, other) for name in own for other in imports()[name] if other.startswith(f"{package}.")}
    assert {(name, other) for name, other in pairs if height(other, package) > height(name, package)} == set()
    assert {name for name in own if package in imports()[name]} == set()  # its own facade stands above all rooms


def test_no_imports_run_in_a_circle():
    TopologicalSorter(imports()).prepare()  # a CycleError names the circle


@cache
def public_names(room: str) -> frozenset[str]:
    """What a room exports; its own rooms too."""
    rooms = {name.removeprefix(f"{room}.") for name in modules() if name.startswith(f"{room}.")}
    exported = getattr(importlib.import_module(room), "__all__", ())
    return frozenset(exported) | {name for name in rooms if "." not in name}


def is_public(module: str) -> bool:
    """Whether it is a package, or a room that is one module."""
    package, _, room = module.partition(".")
    return (ROOT / module.replace(".", "/")).is_dir() or any(room in row for row in ROWS.get(package, ()))


def private_imports(tree: ast.Module) -> Iterator[str]:
    """What a module imports of the packages below beside public names of rooms, or reads of what it imported."""
    rooms = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if inside(a.name, *PACKAGES[:3]) and not is_public(a.name))
        elif isinstance(node, ast.ImportFrom) and node.module and inside(node.module, *PACKAGES[:3]):
            if not is_public(node.module):
                yield node.module
                continue
            for name in (alias.name for alias in node.names):
                rooms.add(name)
                whole = f"{node.module}.{name}"
                if name not in public_names(node.module) or (whole in modules() and not is_public(whole)):
                    yield f"{node.module}:{name}"
    read = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and re.match("_[^_]", node.attr))
    yield from (node.attr for node in read if isinstance(node.value, ast.Name) and node.value.id in rooms)


def test_the_laboratory_and_benchmarks_import_public_names_only():
    own = [tree for name, tree in modules().items() if inside(name, *OUTSIDERS)]
    assert {name for tree in own for name in private_imports(tree)} == set()


def test_hidden_and_private_imports_are_found():
    def found(text: str) -> list[str]:
        return list(private_imports(ast.parse(text)))

    hidden = ast.parse(
        "def f():\n    from x import y\nif TYPE_CHECKING:\n    import z\nload_object('trainers.base.io:f')"
    )
    assert set(named(hidden)) == {"x", "x.y", "z", "trainers.base.io"}
    assert (height("trainers.base.io", "trainers"), height("skillc_gym.envs.coins.env", "skillc_gym")) == (0, 5)
    assert found("from trainers.config import TrainConfig\nfrom skillc_gym.errors import ConfigError") == []
    assert found("from trainers.config.train_config import TrainConfig") == ["trainers.config.train_config"]
    assert found("from trainers.config import _hidden") == ["trainers.config:_hidden"]
    assert found("from trainers import config\nconfig._hidden") == ["_hidden"]


def test_only_its_backend_imports_trl():
    users = {name for name, tree in modules().items() for other in named(tree) if inside(other, "trl")}
    assert {name for name in users if not inside(name, *TRL_USERS)} == set()


def test_nobody_asks_which_environment_it_is():
    """An environment's name is compared nowhere: what depends on it stands in its description."""
    names = {"alfworld", "webshop", "skillc/ALFWorld-v0", "skillc/WebShop-v0"}
    compared = [(name, node) for name, node in nodes() if isinstance(node, ast.Compare)]
    said = [(name, part) for name, node in compared for part in ast.walk(node) if isinstance(part, ast.Constant)]
    assert [f"{name}:{part.lineno}" for name, part in said if part.value in names] == []


def test_concrete_environments_are_named_by_no_generic_room():
    generic, concrete = ([f"skillc_gym.{room}" for row in rows for room in row] for rows in (GYM[:-1], [APART]))
    said = {
        (name, node.value)
        for name, node in nodes()
        if isinstance(node, ast.Constant) and inside(name, *generic) and not inside(name, *concrete)
    }
    assert {
        one for one in said if re.fullmatch(r"skillc_gym\.envs\.(alfworld|webshop|coins)[\w.:]*", str(one[1]))
    } == set()


def test_no_two_test_modules_share_a_name():
    """Without packages around them pytest takes a second module of a name for the first, and collects neither."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


# Importing is light, and libraries keep to the house rules that a parser can see --------------------------------------

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


RANDOM = "from random import choice\nnp.random.seed(0)\nrandom.choice([1])\nnp.random.default_rng(0)"


@pytest.mark.parametrize(
    ("rule", "packages", "program", "broken"),
    [
        (prints, LIBRARIES, "print(1)\nlog.print(1)", 1),
        (catches_all, PACKAGES, "try:\n    x\nexcept:\n    y\ntry:\n    x\nexcept ValueError:\n    y", 1),
        (uses_global_random, PACKAGES, RANDOM, 3),
    ],
)
def test_libraries_keep_to_the_rules(rule: Callable[[ast.AST], bool], packages, program: str, broken: int):
    assert sum(map(rule, ast.walk(ast.parse(program)))) == broken
    broken_at = [(name, node.lineno) for name, node in nodes() if inside(name, *packages) and rule(node)]
    allowed = [UPSTREAMS_PROCESS] if rule is uses_global_random else []
    assert [(name, line) for name, line in broken_at if name not in allowed] == []

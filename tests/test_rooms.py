"""Rooms: what each may import, lazily or for types alone included, and that imports never run in a circle."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("skill_library", "skillc_gym", "trainers", "skillc_lab", "scripts", "benchmarks")

GYM = (
    ("errors", "files", "lazy", "pages", "picture", "spaces", "version", "chat", "panels", "episodes"),
    ("envs", "envs.base", "envs.registry", "envs.warm_start", "envs.context_need"),
    ("curricula", "curriculum", "wrappers"),
    ("vector",),
    ("testing", "adapters"),
    ("envs.alfworld", "envs.webshop", "envs.coins"),
)
"""Rooms of the gym from the bottom to the top: a room imports those in earlier rows, its own row, and itself."""

APART = ("envs.alfworld", "envs.webshop", "envs.coins")
"""Rooms of one row that do not know each other."""

TRAINERS = (
    "base",
    "stats",
    "config",
    "tracking",
    "models",
    "advantages",
    "allocation",
    "losses",
    "engines",
    "rollout",
    "retrieval",
    "writers",
    "memory",
    "recipes",
    "interop",
    "evaluation",
    "learner",
    "backends",
    "training",
    "warmstart",
)
"""Rooms of the trainers from the bottom to the top: a room imports itself and those before it, lazily or not."""

LAB = ("tables", "agents", "skills", "planning", "report", "studies", "cli", "commands")
"""Rooms of the laboratory, in the same way."""

MODULES_YET: set[str] = set()
"""Modules of the trainers that lie in no room yet; it only shrinks."""

TRAINERS_YET: set[tuple[str, str]] = set()
"""(room, imported room) that break the order of the trainers still; it only shrinks."""

LAB_YET: set[tuple[str, str]] = set()
"""The same of the laboratory."""

ALGORITHM = ("advantages", "allocation", "engines", "losses", "rollout", "memory", "recipes", "learner", "backends")
"""Rooms of the trainers that compute an update."""

RECORDS_ONLY = ("skillc_lab.report", "trainers.tracking")
"""Rooms that see records, so none of the rooms above."""

NOT_YET: set[tuple[str, str]] = set()
"""(module, imported module) in the trainers that break the rules still; it only shrinks."""

TRL_USERS = ("trainers.backends.trl", "skillc_gym.adapters.trl")

CIRCLES_YET: set[tuple[str, ...]] = set()
"""Circles in the trainers that are there still; it only shrinks."""


OUTSIDERS = ("skillc_lab", "benchmarks")
"""Packages that use those below as any outsider would: public names of rooms only."""


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def modules() -> Mapping[str, ast.Module]:
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return {module_name(path): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def imported(tree: ast.Module, known: Mapping[str, object]) -> Iterator[str]:
    """The known modules that a module imports, wherever in it; ``from room import module`` is an import of both."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        yield from (name for name in names if name in known)


@cache
def imports() -> Mapping[str, frozenset[str]]:
    found = modules()
    return {name: frozenset(imported(tree, found)) - {name} for name, tree in found.items()}


def circles(graph: Mapping[str, frozenset[str]]) -> list[tuple[str, ...]]:
    """Strongly connected parts of more than one module: whoever can be reached from each other."""

    def reached(start: str) -> set[str]:
        seen, left = set(), [start]
        while left:
            for name in graph[left.pop()] - seen:
                seen.add(name)
                left.append(name)
        return seen

    reach = {name: reached(name) for name in graph}
    return sorted({tuple(sorted(other for other in reach[name] if name in reach[other])) for name in graph} - {()})


def room_of(module: str, package: str, rows: tuple[tuple[str, ...], ...]) -> str | None:
    inside = module.removeprefix(f"{package}.")
    rooms = [room for row in rows for room in row if inside == room or inside.startswith(f"{room}.")]
    return max(rooms, key=len, default=None)


def upward(package: str, rows: tuple[tuple[str, ...], ...]) -> set[tuple[str, str]]:
    """The imports of a package that lead to a later row."""
    height = {room: level for level, row in enumerate(rows) for room in row}
    return {
        (module, name)
        for module, names in imports().items()
        for name in names
        if module.startswith(f"{package}.") and name.startswith(f"{package}.")
        if (own := room_of(module, package, rows)) and (other := room_of(name, package, rows))
        if height[other] > height[own]
    }


def test_no_imports_run_in_a_circle():
    assert set(circles(imports())) <= CIRCLES_YET


def test_circles_are_found():
    graph = {"a": frozenset("b"), "b": frozenset("c"), "c": frozenset("a"), "d": frozenset("a")}
    assert circles(graph) == [("a", "b", "c")]
    lazily = ast.parse("def f():\n    from x import y\nif TYPE_CHECKING:\n    import z")
    assert set(imported(lazily, dict.fromkeys(("x.y", "z")))) == {"x.y", "z"}


def test_the_gyms_rooms_import_only_downward():
    assert upward("skillc_gym", GYM) == set()


def test_every_module_of_the_gym_has_a_room():
    names = [name for name in modules() if name.startswith("skillc_gym.")]
    assert [name for name in names if room_of(name, "skillc_gym", GYM) is None] == []


def misplaced(package: str, order: tuple[str, ...]) -> set[tuple[str, str]]:
    """Imports from a room of a package into a later one; a module that lies in no room is a room by its name."""
    height = {room: place for place, room in enumerate(order)}
    edges = {
        (name.split(".")[1], other.split(".")[1])
        for name, others in imports().items()
        for other in others
        if name.startswith(f"{package}.") and other.startswith(f"{package}.")
    }
    edges -= {edge for edge in edges if edge[0] == "__main__"}
    return {(room, other) for room, other in edges if room != other and height.get(other, 99) >= height.get(room, 99)}


@pytest.mark.parametrize(("package", "order"), [("trainers", TRAINERS), ("skillc_lab", LAB)])
def test_every_module_has_a_room(package: str, order: tuple[str, ...]):
    found = {name.split(".")[1] for name in modules() if name.startswith(f"{package}.")} - {"__main__"}
    assert found <= set(order) | MODULES_YET


@pytest.mark.parametrize(
    ("package", "order", "known"), [("trainers", TRAINERS, TRAINERS_YET), ("skillc_lab", LAB, LAB_YET)]
)
def test_rooms_import_in_one_direction(package: str, order: tuple[str, ...], known: set[tuple[str, str]]):
    assert misplaced(package, order) == known


@cache
def public_names(room: str) -> frozenset[str]:
    """What a room exports; its own rooms too."""
    inside = {name.removeprefix(f"{room}.") for name in modules() if name.startswith(f"{room}.")}
    return frozenset(getattr(importlib.import_module(room), "__all__", ())) | {
        name for name in inside if "." not in name
    }


def is_public(module: str) -> bool:
    """Whether it is a package, or a room that is one module."""
    package, _, inside = module.partition(".")
    rooms = {"skillc_gym": {room for row in GYM for room in row}, "trainers": set(TRAINERS)}
    return (ROOT / module.replace(".", "/")).is_dir() or inside in rooms.get(package, ())


def private_imports(tree: ast.Module) -> Iterator[str]:
    """What a module imports of the packages below beside public names of rooms."""
    below = PACKAGES[:3]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] in below and not is_public(a.name))
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in below:
            if not is_public(node.module):
                yield node.module
                continue
            for name in (alias.name for alias in node.names):
                whole = f"{node.module}.{name}"
                if name not in public_names(node.module) or (whole in modules() and not is_public(whole)):
                    yield f"{node.module}:{name}"


def test_the_laboratory_and_benchmarks_import_public_names_only():
    own = [tree for name, tree in modules().items() if name.startswith(OUTSIDERS)]
    assert {name for tree in own for name in private_imports(tree)} == set()


def test_private_imports_are_found():
    def found(text: str) -> list[str]:
        return list(private_imports(ast.parse(text)))

    assert found("from trainers.config import TrainConfig\nfrom skillc_gym.errors import ConfigError") == []
    assert found("from trainers.config.train_config import TrainConfig") == ["trainers.config.train_config"]
    assert found("from trainers.config import _hidden") == ["trainers.config:_hidden"]


@pytest.mark.parametrize("room", APART)
def test_environments_do_not_know_each_other(room: str):
    others = tuple(f"skillc_gym.{other}" for other in APART if other != room)
    own = {name: names for name, names in imports().items() if name.startswith(f"skillc_gym.{room}")}
    assert not [(name, other) for name, names in own.items() for other in names if other.startswith(others)]


@pytest.mark.parametrize("room", RECORDS_ONLY)
def test_reports_and_tracking_see_records_only(room: str):
    hidden = tuple(f"trainers.{name}" for name in ALGORITHM)
    own = {name: names for name, names in imports().items() if name.startswith(room)}
    assert {(name, other) for name, names in own.items() for other in names if other.startswith(hidden)} == set()


def test_only_its_backend_imports_trl():
    users = {
        (name, "trl")
        for name, tree in modules().items()
        for node in ast.walk(tree)
        for word in ([node.module] if isinstance(node, ast.ImportFrom) else [])
        + ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [])
        if word and word.split(".")[0] == "trl"
    }
    assert {user for user in users if not user[0].startswith(TRL_USERS)} == set()


def test_nobody_asks_which_environment_it_is():
    """An environment's name is compared nowhere: what depends on it stands in its description."""
    names = {"alfworld", "webshop", "skillc/ALFWorld-v0", "skillc/WebShop-v0"}
    wrong = [
        f"{module}:{node.lineno}"
        for module, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and part.value in names
    ]
    assert wrong == []


def test_concrete_environments_are_named_by_no_generic_room():
    generic = [f"skillc_gym.{room}" for row in GYM[:-1] for room in row]
    wrong = [
        f"{name}: {node.value}"
        for name, tree in modules().items()
        if any(name == room or name.startswith(f"{room}.") for room in generic)
        and not name.startswith(tuple(f"skillc_gym.{room}" for room in APART))
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if re.fullmatch(r"skillc_gym\.envs\.(alfworld|webshop)[\w.:]*", node.value)
    ]
    assert wrong == []


def test_no_two_test_modules_share_a_name():
    """Without packages around them pytest takes a second module of a name for the first, and collects neither."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))

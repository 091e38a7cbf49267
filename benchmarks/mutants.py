"""Whether the tests notice a fault: changes one place of the code at a time, and runs the tests that pass through it.

``python -m benchmarks.mutants --count 200`` runs the quick tests once, to see which lines each passes through. Then it
draws places by a seed, changes each (a comparison, an operator, a condition, a number, a truth value), runs its tests
until one fails, and counts. It needs pytest-cov, and works in a copy of the checkout that ``--tree`` names.
``--against OLDER`` draws among the functions that both trees hold word for word, and makes each change in both: what
differs then is the tests alone, so that a few pairs say more than two samples of different places would.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.measuring import measurement, options_parser
from trainers.stats import wilson

PACKAGES = ("skillc_gym", "trainers")
_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult
}  # fmt: skip
_PATIENCE = 900.0
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_WHOLE_FILE = (1, sys.maxsize)


@dataclass(frozen=True)
class Mutant:
    """One changed place; ``node`` is its number in the walk over its file's tree, ``lines`` are those run with it."""

    file: str
    line: int
    node: int
    change: str
    lines: tuple[int, int] = _WHOLE_FILE


def changed(node: ast.AST) -> ast.AST | None:
    """A copy of a node that means something else; None where nothing is changed."""
    found = deepcopy(node)
    match found:
        case ast.Compare(ops=[op, *rest]) if type(op) in _COMPARED:
            found.ops = [_COMPARED[type(op)](), *rest]
        case ast.BinOp(op=op) if type(op) in _COMPUTED:
            found.op = _COMPUTED[type(op)]()
        case ast.BoolOp(op=op):
            found.op = ast.Or() if isinstance(op, ast.And) else ast.And()
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            found.test = ast.UnaryOp(ast.Not(), test)
        case ast.Constant(value=bool(value)):
            found.value = not value
        case ast.Constant(value=int(value) | float(value)):
            found.value = value + 1
        case _:
            return None
    return found


def mutants_of(root: Path, path: Path) -> Iterator[Mutant]:
    """All places of a file that can be changed; annotations and what only types are not among them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {id(node) for outer in ast.walk(tree) for part in _not_run(outer) for node in ast.walk(part)}
    within: dict[int, ast.stmt] = {}
    for number, node in enumerate(ast.walk(tree)):
        if isinstance(node, _FUNCTIONS) or (isinstance(node, ast.stmt) and id(node) in within):
            within[id(node)] = node
        within.update({id(child): within[id(node)] for child in ast.iter_child_nodes(node) if id(node) in within})
        if id(node) not in skipped and changed(node) is not None:
            found = _lines(within.get(id(node)))
            yield Mutant(str(path.relative_to(root)), getattr(node, "lineno", 0), number, type(node).__name__, found)


def _lines(statement: ast.stmt | None) -> tuple[int, int]:
    """The lines that run with a statement's own expressions; of a function's defaults, its body's."""
    if statement is None:
        return _WHOLE_FILE
    end = statement.end_lineno or statement.lineno
    body = getattr(statement, "body", None)
    if not body:
        return statement.lineno, end
    return (body[0].lineno, end) if isinstance(statement, _FUNCTIONS) else (statement.lineno, body[0].lineno - 1)


def shared_mutants(root: Path, other: Path) -> list[tuple[Mutant, Mutant]]:
    """The same changes in both trees, of all functions that each holds once, whatever its file and docstring are."""
    here, there = functions_of(root), functions_of(other)
    return [pair for key in sorted(here.keys() & there.keys()) for pair in zip(here[key], there[key], strict=True)]


def functions_of(root: Path) -> dict[str, list[Mutant]]:
    """The mutants of every outermost function and method, by what it is; what a tree holds twice is left out."""
    found: dict[str, list[list[Mutant]]] = {}
    for path in files_of(root):
        numbered = {mutant.node: mutant for mutant in mutants_of(root, path)}
        tree = ast.parse(path.read_text(encoding="utf-8"))
        numbers = {id(node): number for number, node in enumerate(ast.walk(tree))}
        for key, function in _outermost(tree, ""):
            own = [numbered[numbers[id(node)]] for node in ast.walk(function) if numbers[id(node)] in numbered]
            found.setdefault(key, []).append(own)
    return {key: each[0] for key, each in found.items() if len(each) == 1}


def _outermost(node: ast.AST, inside: str) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _outermost(child, f"{inside}{child.name}.")
        elif isinstance(child, _FUNCTIONS):
            body = child.body[ast.get_docstring(child) is not None :]
            yield f"{inside}{child.name}: {ast.dump(child.args)} {[ast.dump(line) for line in body]}", child


def files_of(root: Path) -> list[Path]:
    """The code that is changed, in the order of its names."""
    return sorted(path for package in PACKAGES for path in (root / package).rglob("*.py"))


def _not_run(node: ast.AST) -> list[ast.AST]:
    """Parts that are never executed, or whose change is none: annotations, and the line that asks for type checkers."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        return [node]
    kept = (getattr(node, name, None) for name in ("annotation", "returns"))
    return [part for part in kept if isinstance(part, ast.AST)]


@dataclass(frozen=True)
class PassingTests:
    """The tests that pass without a change, by file and line that they pass through; the narrowest come first."""

    through: Mapping[str, Mapping[int, Sequence[str]]]
    left_out: Sequence[str]
    """Tests that fail without a change, and so notice none."""

    def of(self, mutant: Mutant) -> list[str]:
        """A place's tests; where no function is around it, those of its whole file."""
        first, last = mutant.lines
        lines = self.through.get(mutant.file, {})
        return list(dict.fromkeys(test for line, tests in lines.items() if first <= line <= last for test in tests))


def passing_tests(root: Path) -> PassingTests:
    """Runs a tree's quick tests once, noting which lines each passes through."""
    packages = [f"--cov={package}" for package in PACKAGES]
    done = _pytest(root, ["tests", "-rfE", *packages, "--cov-context=test", "--cov-report="], timeout=None)
    summary = [line.split() for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    left_out = sorted({_function(words[1]) for words in summary})
    through = _contexts(root)
    passed = Counter(_function(name) for lines in through.values() for names in lines.values() for name in names)

    def narrowest_first(names: Sequence[str]) -> list[str]:
        found = {_function(name) for name in names if name} - set(left_out)
        return sorted(found, key=lambda test: (passed[test], test))

    tests = {file: {line: narrowest_first(names) for line, names in lines.items()} for file, lines in through.items()}
    return PassingTests(tests, left_out)


def _contexts(root: Path) -> dict[str, dict[int, list[str]]]:
    from coverage import CoverageData

    data = CoverageData(basename=str(root / ".coverage"))
    data.read()
    return {str(Path(file).relative_to(root)): data.contexts_by_lineno(file) for file in data.measured_files()}


def _function(context: str) -> str:
    """A test's function, without the parameters in its name and the phase behind it."""
    return context.partition("|")[0].partition("[")[0]


def survives(root: Path, mutant: Mutant, tests: Sequence[str]) -> bool:
    """Changes the place, runs its tests, and puts the file back."""
    path = root / mutant.file
    before = path.read_text(encoding="utf-8")
    tree = ast.parse(before)
    target = list(ast.walk(tree))[mutant.node]
    new = changed(target)
    assert new is not None
    vars(target).update(vars(new))
    path.write_text(ast.unparse(ast.fix_missing_locations(tree)), encoding="utf-8")
    try:
        return not tests or _pytest(root, ["-x", *tests], timeout=_PATIENCE).returncode in (0, 5)  # 5: no test
    except subprocess.TimeoutExpired:
        return False
    finally:
        path.write_text(before, encoding="utf-8")


def _pytest(root: Path, options: Sequence[str], timeout: float | None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *options]
    # An editable install would find the code that is not changed.
    environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False, timeout=timeout
    )


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Draws the mutants and runs their tests, in as many copies of the tree as there are workers."""
    root, draw = options.tree.resolve(), random.Random(options.seed)
    if options.against is None:
        places = [each for path in files_of(root) for each in mutants_of(root, path)]
        return {"seed": options.seed, **_counted(root, draw.sample(places, options.count), options.workers)}
    other = options.against.resolve()
    places_of_both = shared_mutants(root, other)
    here, there = map(list, zip(*draw.sample(places_of_both, options.count), strict=True))
    # Half of the workers each, so that an interrupted measurement was as long at both.
    with ThreadPoolExecutor(2) as pool:
        sides = list(pool.map(_counted, (root, other), (here, there), [max(1, options.workers // 2)] * 2))
    return {"seed": options.seed, "places": len(places_of_both), "tree": sides[0], "against": sides[1]}


def _counted(root: Path, drawn: Sequence[Mutant], workers: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        copies = [Path(folder, str(number)) for number in range(workers)]
        for copy in copies:
            shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".git", ".venv", "build", "runs", "*.egg-info"))
        tests = passing_tests(copies[0])
        shares = [drawn[number::workers] for number in range(workers)]
        alive = [found for own in pool.map(partial(_alive, tests), copies, shares) for found in own]
    killed = len(drawn) - len(alive)
    return {
        "mutants": len(drawn),
        "killed": killed,
        "interval": wilson(killed, len(drawn)).to_json(),
        "alive": [asdict(mutant) for mutant in alive],
        "left_out": tests.left_out,
    }


def _alive(tests: PassingTests, copy: Path, mutants: Sequence[Mutant]) -> list[Mutant]:
    return [mutant for mutant in mutants if survives(copy, mutant, tests.of(mutant))]


def main(words: Sequence[str] | None = None) -> int:
    """Runs the sample."""
    parser = options_parser(__doc__)
    parser.add_argument("--tree", type=Path, default=Path.cwd(), help="the checkout (default: this folder)")
    parser.add_argument("--against", type=Path, help="another checkout: the same changes in both (default: none)")
    parser.add_argument("--count", type=int, default=200, help="mutants (default: 200)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw (default: 0)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    return measurement(parser, measure, words)


if __name__ == "__main__":
    sys.exit(main())

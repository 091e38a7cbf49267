"""Mutants: a place is changed in a copy, its own tests decide, and the file is as it was afterwards."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks.mutants import changed, main, mirrors_of, mutants_of, survives


@pytest.mark.parametrize(
    ("code", "mutant"),
    [
        ("a < b", "a <= b"), ("a in b", "a not in b"), ("a + b", "a - b"), ("a and b", "a or b"), ("True", "False"),
        ("3", "4"), ("x if a else y", "x if not a else y"), ("a", None), ("'word'", None),
    ],
)  # fmt: skip
def test_a_change_means_something_else(code: str, mutant: str | None) -> None:
    found = changed(ast.parse(code, mode="eval").body)
    assert (found and ast.unparse(found)) == mutant


def test_tests_that_look_kill_a_mutant_and_the_file_stays_as_it_was(tmp_path: Path) -> None:
    code = "def more(a: 'list[1 + 1]') -> int:\n    unused = 7\n    return a + 1\n"
    for path, text in {
        "trainers/room/sums.py": code,
        "trainers/__init__.py": "",
        "trainers/room/__init__.py": "",
        "tests/trainers/room/test_sums.py": "from trainers.room.sums import more\ndef test(): assert more(2) == 3\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    file = tmp_path / "trainers/room/sums.py"
    assert mirrors_of(tmp_path, "trainers/room/sums.py") == ["tests/trainers/room/test_sums.py", "tests/trainers/room"]
    found = list(mutants_of(tmp_path, file))
    assert [(each.line, each.change) for each in found] == [(2, "Constant"), (3, "BinOp"), (3, "Constant")]
    assert [survives(tmp_path, each) for each in found] == [True, False, False]
    assert file.read_text() == code


def test_tests_that_fail_without_a_change_notice_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path, text in {
        "trainers/room/sums.py": "x = 1\n",
        "skillc_gym/__init__.py": "",
        "tests/trainers/room/test_sums.py": "def test(): assert False\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert main(["--tree", str(tmp_path), "--count", "1", "--workers", "1"]) == 2
    assert "fails in the copy without any change" in capsys.readouterr().err

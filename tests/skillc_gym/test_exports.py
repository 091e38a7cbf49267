"""What ``skillc_gym`` exports: everything it names, imported late, and typed."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import skillc_gym

SOURCE = ast.parse(Path(skillc_gym.__file__).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", skillc_gym.__all__)
def test_every_name_is_there(name: str):
    assert getattr(skillc_gym, name) is not None
    assert name in dir(skillc_gym)


def test_every_late_name_is_the_one_that_type_checkers_see():
    block = next(node for node in SOURCE.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in block.body for alias in node.names}
    assert seen == {name: f"skillc_gym.{home}" for name, home in skillc_gym._HOMES.items()}
    for name, module in seen.items():
        assert getattr(importlib.import_module(module), name) is getattr(skillc_gym, name)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'SkillInjektion'"):
        _ = skillc_gym.SkillInjektion
    with pytest.raises(ImportError):
        exec("from skillc_gym import SkillInjektion")


def test_importing_the_package_imports_what_it_registers_and_no_more():
    program = "import sys, skillc_gym; print(*sorted(name for name in sys.modules if name.startswith('skillc_gym.')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    rooms = {name.split(".")[1] for name in done.stdout.split()}
    assert rooms == {"chat", "envs", "errors", "version"}

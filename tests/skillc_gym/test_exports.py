"""What ``skillc_gym`` exports: everything it names, imported late, and typed."""

from __future__ import annotations

import subprocess
import sys

import pytest

import skillc_gym


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'SkillInjektion'"):
        _ = skillc_gym.SkillInjektion
    assert set(skillc_gym.__all__) <= set(dir(skillc_gym))
    with pytest.raises(ImportError):
        exec("from skillc_gym import SkillInjektion")


def test_importing_the_package_imports_what_it_registers_and_no_more():
    program = "import sys, skillc_gym; print(*sorted(name for name in sys.modules if name.startswith('skillc_gym.')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    rooms = {name.split(".")[1] for name in done.stdout.split()}
    assert rooms == {"chat", "envs", "errors", "lazy", "values", "version"}

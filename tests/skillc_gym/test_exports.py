"""What ``skillc_gym`` exports: everything it names, imported late, and typed."""

from __future__ import annotations

import subprocess
import sys

import pytest

import skillc_gym


@pytest.mark.parametrize("name", skillc_gym.__all__)
def test_every_name_is_there(name: str):
    assert getattr(skillc_gym, name) is not None
    assert name in dir(skillc_gym)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'SkillInjektion'"):
        _ = skillc_gym.SkillInjektion
    with pytest.raises(ImportError):
        exec("from skillc_gym import SkillInjektion")


def test_importing_the_package_imports_what_it_registers_and_no_more():
    program = "import sys, skillc_gym; print(*sorted(name for name in sys.modules if name.startswith('skillc_gym.')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    rooms = {name.split(".")[1] for name in done.stdout.split()}
    assert rooms == {"chat", "envs", "errors", "lazy", "version"}

"""The package as a whole: what it exports and imports, its errors for extras, and what docstrings and pages quote."""

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import skillc_gym
from skillc_gym.errors import MissingExtraError, needs_extra

DOCS = Path(__file__).resolve().parents[2] / "docs"


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


@pytest.mark.parametrize("statement", ["import no_such_package", "from pytest import no_such_name"])
def test_a_package_of_another_version_is_not_called_missing(statement):
    said = f"pytest cannot be imported.*{statement.split()[-1]}.*extra 'dev'"
    with pytest.raises(MissingExtraError, match=said), needs_extra("pytest", "dev"):
        exec(statement)


def test_the_quoted_skill_is_the_skill():
    quoted = re.search(r"^```markdown\n(.*?)\.\.\.\n```", (DOCS / "skills.md").read_text(), re.DOTALL | re.MULTILINE)[1]
    assert (DOCS.parent / "skill_library" / "alfworld" / "heat" / "SKILL.md").read_text().startswith(quoted)


MODULES = "spaces adapters.chat_env chat testing wrappers.skill_injection wrappers.action_format vector.paired"


@pytest.mark.parametrize("module", [*MODULES.split(), "vector.collect", "curricula.difficulty", "curricula.skills"])
def test_the_examples_in_docstrings_hold(module):
    result = doctest.testmod(importlib.import_module(f"skillc_gym.{module}"))
    assert result.attempted
    assert not result.failed

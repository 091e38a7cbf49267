"""Examples of docstrings hold, and pages quote what is there; their Python blocks: `tests/test_python_blocks.py`."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_quoted_skill_is_the_skill():
    quoted = re.search(r"^```markdown\n(.*?)\.\.\.\n```", (DOCS / "skills.md").read_text(), re.DOTALL | re.MULTILINE)[1]
    assert (DOCS.parent / "skill_library" / "alfworld" / "heat" / "SKILL.md").read_text().startswith(quoted)


@pytest.mark.parametrize(
    "module",
    [
        "spaces",
        "adapters.chat_env",
        "chat",
        "testing",
        "wrappers.skill_injection",
        "wrappers.action_format",
        "vector.paired",
        "vector.collect",
    ],
)
def test_the_examples_in_docstrings_hold(module):
    result = doctest.testmod(importlib.import_module(f"skillc_gym.{module}"))
    assert result.attempted
    assert not result.failed

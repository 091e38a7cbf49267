"""Every Python block of these pages and every example of these docstrings runs as a reader would type it."""

import doctest
import importlib
import re
import sys
import types
from pathlib import Path

import gymnasium
import pytest

from skillc_gym.envs import registry

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize(
    "page",
    [
        "skills.md",
        "wrappers.md",
        "paired-rollouts.md",
        "adapters.md",
        "alfworld.md",
        "webshop.md",
        "coins.md",
        "environments.md",
        "faq.md",
        "webshop-catalog.md",
    ],
)
def test_the_blocks_run(page, monkeypatch):
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert blocks
    reader = types.ModuleType(
        f"reader_of_{page.removesuffix('.md').replace('-', '_')}"
    )  # pickles find classes by module
    monkeypatch.setitem(sys.modules, reader.__name__, reader)
    # What the page registers is gone after it.
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    known = dict(gymnasium.registry)
    try:
        for block in blocks:
            exec(compile(block, page, "exec"), reader.__dict__)
    finally:
        for name in set(gymnasium.registry) - set(known):
            del gymnasium.registry[name]


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

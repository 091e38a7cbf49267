"""The options of a recipe or an agent for the help of commands, from the doc strings of its parts."""

from __future__ import annotations

import inspect
import itertools
import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from docstring_parser import google

from skillc_lab.agents import AGENTS, get_agent
from skillc_lab.agents.zero_shot import ZeroShot
from skillc_lab.cli.options import ALIASES
from trainers.base import flat_options
from trainers.config import TrainConfig
from trainers.recipes import get_recipe, recipe_names

__all__ = ["agent_help", "recipe_help"]


def recipe_help(words: Sequence[str]) -> str:
    """Lists the options of the recipe that the words of a command choose, or of the default one.

    Raises:
        UnknownNameError: If there is no such recipe.
    """
    name = _chosen(words, "method", TrainConfig.method)
    recipe = get_recipe(name)
    docs = dict(_docs(recipe, ""))
    rows = _rows("method", recipe.options, docs)
    return _page(f"method {name}", recipe.summary, rows, [other for other in recipe_names() if other != name])


def agent_help(words: Sequence[str]) -> str:
    """Lists the options of the agent that the words of a command choose, or of the default one.

    Raises:
        UnknownNameError: If there is no such agent.
    """
    name = _chosen(words, "agent", ZeroShot.name)
    agent = get_agent(name)
    summary = inspect.cleandoc(agent.__doc__ or "").partition("\n")[0]
    rows = _rows("agent", flat_options(agent), dict(_docs(agent, "")))
    return _page(f"agent {name}", summary, rows, [other for other in AGENTS.names() if other != name])


def _rows(kind: str, options: Mapping[str, Any], docs: Mapping[str, str]) -> list[str]:
    return [f"  {kind}.{key}={_shown(value)}\n{_indented(docs.get(key, ''))}" for key, value in options.items()]


def _page(named: str, summary: str, rows: Sequence[str], others: Sequence[str]) -> str:
    kind = named.partition(" ")[0]
    head = f"Options of the {named} with their defaults ({summary})"
    return "\n".join([head, *rows, f"Other {kind}s: {', '.join(others)}."])


def _chosen(words: Sequence[str], kind: str, default: str) -> str:
    """The method or agent that the words name."""
    kinds = (kind, *(old for old, new in ALIASES.items() if new == kind))
    pairs = [word.removeprefix("--").partition("=") for word in words]
    named = [value for key, equals, value in pairs if key in kinds and equals]
    named += [value for word, value in itertools.pairwise(words) if word.removeprefix("--") in kinds]
    return named[-1] if named else default


def _docs(part: Any, prefix: str) -> Iterator[tuple[str, str]]:
    """(option, meaning) of every option of a tree of parts, under its own name and with the part's before it."""
    # A part's class need not repeat what the one that it derives from says.
    pages = [google.parse(inspect.cleandoc(kind.__doc__ or "")) for kind in reversed(type(part).__mro__)]
    own = {param.arg_name: param.description or "" for page in pages for param in page.params}
    for spec in fields(part):
        value = getattr(part, spec.name)
        parts = value if isinstance(value, tuple) else (value,)
        for inner in parts:
            if is_dataclass(inner):
                yield from _docs(inner, getattr(inner, "name", spec.name) if isinstance(value, tuple) else spec.name)
        if spec.name in own:
            meaning = " ".join(own[spec.name].split())
            yield spec.name, meaning
            yield f"{prefix}.{spec.name}", meaning


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _indented(text: str) -> str:
    return textwrap.indent(textwrap.fill(text, 92), " " * 6)

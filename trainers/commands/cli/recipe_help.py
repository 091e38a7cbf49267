"""The options of a recipe for the help of commands, from the doc strings of its parts."""

from __future__ import annotations

import inspect
import itertools
import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from docstring_parser import google

from trainers.config import TrainConfig
from trainers.recipes import get_recipe, recipe_names

__all__ = ["recipe_help"]


def recipe_help(words: Sequence[str]) -> str:
    """Lists the options of the recipe that the words of a command choose, or of the default one.

    Raises:
        UnknownNameError: If there is no such recipe.
    """
    name = _chosen(words)
    recipe = get_recipe(name)
    docs = dict(_docs(recipe, ""))
    rows = [f"  preset.{key}={_shown(value)}\n{_indented(docs.get(key, ''))}" for key, value in recipe.options.items()]
    others = ", ".join(other for other in recipe_names() if other != name)
    return "\n".join(
        [f"Options of the preset {name} with their defaults ({recipe.summary})", *rows, f"Other presets: {others}."]
    )


def _chosen(words: Sequence[str]) -> str:
    """The preset that the words name."""
    pairs = [word.removeprefix("--").partition("=") for word in words]
    named = [value for key, equals, value in pairs if key == "preset" and equals]
    named += [value for word, value in itertools.pairwise(words) if word == "--preset"]
    return named[-1] if named else TrainConfig.preset


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

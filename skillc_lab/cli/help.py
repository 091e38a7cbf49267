"""From doc strings: the options of a recipe or an agent for the help of commands, and tables for the documentation."""

from __future__ import annotations

import inspect
import itertools
import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

from skillc_lab.agents import AGENTS, get_agent
from skillc_lab.agents.zero_shot import ZeroShot
from skillc_lab.cli.main import command_modules
from skillc_lab.cli.options import ALIASES, Option, field_docs, options_of
from trainers.base import flat_options
from trainers.config import Settings, TrainConfig
from trainers.recipes import get_recipe


def recipe_help(words: Sequence[str]) -> str:
    """Lists the options of the method that the words of a command choose, with --help-all those of the default one."""
    name = _chosen(words, "method", TrainConfig.method)
    if name is None:
        return f"A method has options of its own: skillc help train --method {TrainConfig.method}; skillc methods"
    recipe = get_recipe(name)
    return _page("method", name, recipe.summary, recipe.options, recipe)


def agent_help(words: Sequence[str]) -> str:
    """Lists the options of the agent that the words of a command choose, with --help-all those of the default one."""
    name = _chosen(words, "agent", ZeroShot.name)
    if name is None:
        return f"An agent has options of its own: skillc help evaluate --agent NAME; {', '.join(AGENTS.names())}"
    agent = get_agent(name)
    summary = inspect.cleandoc(agent.__doc__ or "").partition("\n")[0]
    return _page("agent", name, summary, flat_options(agent), agent)


def _page(kind: str, name: str, summary: str, options: Mapping[str, Any], part: Any) -> str:
    docs = dict(_docs(part, ""))
    rows = [
        f"  {kind}.{key}={_shown(value)}\n{textwrap.indent(textwrap.fill(docs.get(key, ''), 92), ' ' * 6)}"
        for key, value in options.items()
    ]
    return "\n".join([f"Options of the {kind} {name} with their defaults ({summary})", *rows])


def _chosen(words: Sequence[str], kind: str, default: str) -> str | None:
    """The method or agent that the words name; the default one where all options are asked for."""
    kinds = (kind, *(old for old, new in ALIASES.items() if new == kind))
    pairs = [word.removeprefix("--").partition("=") for word in words]
    named = [value for key, equals, value in pairs if key in kinds and equals]
    followed = [(word.removeprefix("--"), value) for word, value in itertools.pairwise(words)]
    named += [value for word, value in followed if word in kinds and not value.startswith("--")]
    return named[-1] if named else default if "--help-all" in words else None


def _docs(part: Any, prefix: str) -> Iterator[tuple[str, str]]:
    """(option, meaning) of every option of a tree of parts, under its own name and with the part's before it."""
    own = field_docs(part.__class__)
    for name in (spec.name for spec in fields(part) if spec.name in own):
        yield name, own[name]
        yield f"{prefix}.{name}", own[name]
    # Behind them: an option of a part may be called as another part is, and is the one that is meant.
    for spec in fields(part):
        value = getattr(part, spec.name)
        parts = value if isinstance(value, tuple) else (value,)
        for inner in parts:
            if is_dataclass(inner):
                yield from _docs(inner, getattr(inner, "name", spec.name) if isinstance(value, tuple) else spec.name)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


# Tables of the documentation ------------------------------------------------------------------------------------------


def settings_tables() -> str:
    """All settings of training: one heading and table per group."""
    groups = get_type_hints(Settings)
    return "\n\n".join(
        f"### {group.name.replace('_', ' ').capitalize()}\n\n{_table(options_of(groups[group.name]).values())}"
        for group in fields(Settings)
    )


def completed(page: str) -> str:
    """The page of commands, with a row more in its table for every command that it does not name."""
    *_, last = re.finditer(r"^\| `skillc .*$", page, re.MULTILINE)
    cells = " ".join(re.findall(r"^\| (`skillc [^|]*)", page, re.MULTILINE))
    missing = {
        name: summary
        for name, (_, summary) in command_modules().items()
        if not re.search(rf"`(?:skillc )?(?:tools )?{name.removeprefix('tools ')}[ `]", cells)
    }
    rows = "".join(f"\n| `skillc {name}` | {summary} | |" for name, summary in missing.items())
    return page[: last.end()] + rows + page[last.end() :]


def _table(options: Iterable[Option]) -> str:
    rows = [f"| `{option.name}` | {_default(option.default)} | {option.doc.replace('``', '`')} |" for option in options]
    return "\n".join(["| setting | default | meaning |", "|---|---|---|", *rows])


def _default(value: Any) -> str:
    if value is MISSING:
        return "required"
    return "none" if value in (None, "", {}, ()) else f"`{str(value).lower() if isinstance(value, bool) else value}`"

"""verl-agent's prompts, read from a checkout of the user's: nothing of it is imported, and nothing stands here."""

from __future__ import annotations

import ast
import os
import string
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml

from skillc_gym.chat import ChatFormat
from skillc_gym.errors import ConfigError, require_name

_N = TypeVar("_N", bound=ast.AST)
_AGENT = "agent_system/environments"
_CONFIG = "verl/trainer/config/ppo_trainer.yaml"
_PLACEHOLDERS = {
    "current_observation": "observation",
    "admissible_actions": "commands",
    "available_actions": "commands",
    "task_description": "goal",
    "step_count": "step",
    "history_length": "shown",
    "action_history": "history",
    "current_step": "next_step",
}
_WORLDS: Mapping[str, tuple[str, Mapping[str, Sequence[str]], str]] = {
    "alfworld": ("AlfWorldEnvironmentManager", {"help": []}, ""),
    "webshop": ("WebshopEnvironmentManager", {"search[<query>]": ["search[<your query>]", "click[search]"]}, " [SEP] "),
}
"""Its manager's name there, how commands of ours are listed, and what is between the parts of an observation."""


def read_chat(folder: str | os.PathLike[str], env: str = "alfworld") -> ChatFormat:
    """Reads the wording of prompts in "alfworld" or "webshop" from a checkout of verl-agent or of a fork.

    Templates, history's length and lines, the list of commands, the greatest length and what becomes of replies
    without tags are the checkout's. A skill goes into a system message of its own, so that the user message is theirs.

    Raises:
        ConfigError: It is no such checkout; the message names the file and what was looked for in it.
        UnknownNameError: There are no prompts for such an environment.
    """
    require_name("environment with prompts of verl-agent", env, _WORLDS)
    root = Path(folder).expanduser()
    manager, listed_as, parts = _WORLDS[env]
    templates = _Code(root / _AGENT / "prompts" / f"{env}.py")
    build = _Code(root / _AGENT / "env_manager.py").function(manager, "build_text_obs")
    memory = _Code(root / "agent_system/memory/memory.py").function("SimpleMemory", "fetch")
    projection = _Code(root / _AGENT / "env_package" / env / "projection.py")
    listing = build.first(ast.Call, "the list of commands", _joins_texts)
    return ChatFormat(
        role="",
        reply="",
        first=_renamed(templates.text(f"{env.upper()}_TEMPLATE_NO_HIS")),
        turn="",
        window_turn=_renamed(templates.text(f"{env.upper()}_TEMPLATE")),
        show_admissible=False,
        separator=ast.literal_eval(listing.func.value),  # type: ignore[attr-defined]  # _joins_texts has seen to it
        command=_template(listing.args[0].elt, {"s": "command"}),  # type: ignore[attr-defined]  # as above
        listed_as=listed_as,
        parts=parts,
        form="window",
        window=_history_length(root / _CONFIG),
        past=_template(
            memory.first(ast.JoinedStr, "a line of the history"),
            {"step_num": "step", "obs": "observation", "act": "action"},
        ),
        longest=build.number(
            ast.Compare,
            lambda node: getattr(getattr(node.left, "func", None), "id", "") == "len",
            lambda node: node.comparators[0],
        ),
        reply_tail=projection.number(ast.Slice, lambda node: _is_minus(node.lower), lambda node: node.lower.operand),
    )


class _Code:
    """A file of the checkout, or a function in it, as a tree."""

    def __init__(self, path: Path, tree: ast.AST | None = None) -> None:
        self.path = path
        try:
            self.tree = ast.parse(path.read_text(encoding="utf-8")) if tree is None else tree
        except (OSError, ValueError, SyntaxError) as error:
            raise ConfigError(f"{path} cannot be read ({error}): name a checkout of verl-agent or of a fork") from error

    def function(self, owner: str, name: str) -> _Code:
        """A method of a class."""
        for node in self._all(ast.ClassDef):
            if node.name == owner:
                for part in node.body:
                    if isinstance(part, ast.FunctionDef) and part.name == name:
                        return _Code(self.path, part)
        raise self._lacks(f"{owner}.{name}")

    def text(self, name: str) -> str:
        """The text that a name stands for, by its last assignment."""
        for node in reversed(list(self._all(ast.Assign))):
            if [getattr(target, "id", "") for target in node.targets] == [name]:
                value = getattr(node.value, "value", None)
                if isinstance(value, str):
                    return value
        raise self._lacks(f"the text {name}")

    def first(self, kind: type[_N], what: str, fits: Any = lambda node: True) -> _N:
        """The first node of a kind that fits."""
        for node in self._all(kind):
            if fits(node):
                return node
        raise self._lacks(what)

    def number(self, kind: type[_N], fits: Any, part: Any) -> int:
        """The number in the first node that fits; 0 if there is none."""
        node = next((part(node) for node in self._all(kind) if fits(node)), ast.Constant(0))
        if not isinstance(node, ast.Constant) or type(node.value) is not int:
            raise self._lacks(f"a number where it has {ast.unparse(node)!r}")
        return node.value

    def _all(self, kind: type[_N]) -> Iterator[_N]:
        return (node for node in ast.walk(self.tree) if isinstance(node, kind))

    def _lacks(self, what: str) -> ConfigError:
        return ConfigError(f"{self.path} lacks {what}: it is no checkout of verl-agent, or one that was changed there")


def _joins_texts(node: ast.Call) -> bool:
    """Whether it is ``"...".join(f"..." for ...)``."""
    func = node.func
    joins = isinstance(func, ast.Attribute) and func.attr == "join" and isinstance(func.value, ast.Constant)
    return joins and bool(node.args) and isinstance(getattr(node.args[0], "elt", None), ast.JoinedStr)


def _is_minus(node: ast.expr | None) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def _template(node: Any, names: Mapping[str, str]) -> str:
    """A template of ``str.format`` from an f-string."""
    pieces = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            pieces.append(_escaped(part.value))
        else:  # an expression without a name of ours stands as it is, and `ChatFormat` names it in its refusal
            pieces.append(f"{{{names.get(written := ast.unparse(part.value), written)}}}")
    return "".join(pieces)


def _renamed(template: str) -> str:
    """A template with our names of what is filled in."""
    try:
        parsed = list(string.Formatter().parse(template))
    except ValueError:
        return template  # `ChatFormat` says what is wrong with it
    return "".join(
        _escaped(text) + ("" if name is None else f"{{{_PLACEHOLDERS.get(name, name)}}}") for text, name, _, _ in parsed
    )


def _escaped(text: Any) -> str:
    return str(text).replace("{", "{{").replace("}", "}}")


def _history_length(path: Path) -> int:
    try:
        return int(yaml.safe_load(path.read_text(encoding="utf-8"))["env"]["history_length"])
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"{path} does not say env.history_length ({type(error).__name__}: {error}); name a checkout of verl-agent"
        ) from error

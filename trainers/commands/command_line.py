"""Reads a configuration from ``key=value`` words, and describes the settings for a command line's help."""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields
from typing import Annotated, Any, Literal, get_args, get_origin

from skillc_gym.errors import ConfigError, unknown_name
from trainers.config import HINTS, TrainConfig

__all__ = ["describe_settings", "parse_config", "parse_pairs", "setting_docs"]

_GROUPS = {"preset": "preset_options", "env": "env_options", "chat": "chat_options", "engine": "engine_options"}


def parse_config(words: Iterable[str]) -> TrainConfig:
    """Reads a configuration from ``key=value`` words.

    Args:
        words: For instance ``["preset=skillc", "model=policy", "steps=40", "preset.omega=0.2"]``.

    Raises:
        UnknownNameError: For a key that does not exist; the message names the nearest.
        ConfigError: For a word that is no pair, a value of the wrong type, or a missing model.
    """
    values = parse_pairs(words)
    if "model" not in values:
        raise ConfigError("model=PATH is missing: a transformers checkpoint folder or name to start from.")
    return TrainConfig(**values)


def parse_pairs(words: Iterable[str]) -> dict[str, Any]:
    """Reads ``key=value`` words into typed fields of :class:`TrainConfig`; dotted keys go to their group."""
    values: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals:
            raise ConfigError(f"Expected key=value, got {word!r}; for instance steps=40.")
        group, dot, option = key.partition(".")
        if dot and group in _GROUPS:
            values.setdefault(_GROUPS[group], {})[option] = _guess(text)
        elif key in HINTS:
            values[key] = _typed(key, text, HINTS[key])
        else:
            raise unknown_name("setting", key, HINTS, "Options of a group are written preset.x=, env.x=, chat.x=.")
    return values


def _guess(text: str) -> Any:
    """Reads JSON where it is JSON, and anything else as itself; None and booleans in Python's spelling too."""
    spoken = {"None": None, "True": True, "False": False}
    if text in spoken:
        return spoken[text]
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _typed(key: str, text: str, hint: Any) -> Any:
    kinds = get_args(hint) if get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    if type(None) in kinds and text.lower() in ("none", "null"):
        return None
    kind = next(k for k in kinds if k is not type(None))
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    origin = get_origin(kind) or kind
    try:
        if origin is Literal or kind is str:
            return text
        if origin is tuple:
            return tuple(part for part in text.split(",") if part)
        if kind is bool:
            return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[text.lower()]
        return json.loads(text) if origin is Mapping else kind(text)
    except (KeyError, ValueError) as error:
        wanted = getattr(origin, "__name__", str(origin))
        raise ConfigError(f"{key}={text!r} is not of type {wanted}.") from error


def describe_settings() -> str:
    """Every setting with its meaning and default, for the command line's help."""
    lines = []
    for spec in fields(TrainConfig):
        default = "required" if spec.default is MISSING and spec.default_factory is MISSING else _default(spec)
        lines.append(f"  {spec.name}  ({default})\n      {setting_docs()[spec.name]}")
    return "\n".join(lines)


def _default(spec: Field[Any]) -> str:
    return "none" if spec.default is MISSING else repr(spec.default)


def setting_docs() -> dict[str, str]:
    """The doc string under each field of :class:`TrainConfig` and its groups, read from the source."""
    groups = [ast.parse(inspect.getsource(group)).body[0] for group in reversed(TrainConfig.__mro__[:-1])]
    nodes = [node for group in groups if isinstance(group, ast.ClassDef) for node in group.body]
    docs = {}
    for field_node, doc in itertools.pairwise(nodes):
        if isinstance(field_node, ast.AnnAssign) and isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant):
            docs[ast.unparse(field_node.target)] = " ".join(str(doc.value.value).split())
    return docs

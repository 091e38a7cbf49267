"""One grammar for all commands: ``--steps 40``, ``--steps=40`` and ``steps=40``, ``--preset.omega 0.2``, flags.

Words are brought into one form and checked (so that an error names the option and the nearest one that exists); tyro
then builds the command's options from them, and writes the help from the same classes and doc strings.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import json
import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from typing import Annotated, Any, TypeVar

import tyro

from skillc_gym.errors import ConfigError, unknown_name
from skillc_lab.commands.cli.values import free_value, is_flag, is_list, read_truth, reader, registry

__all__ = ["Option", "field_docs", "options_of", "parse"]

Options = TypeVar("Options")
_KEY = re.compile(r"[A-Za-z_][\w.-]*")
_GROUP_END = "_options"
_LOOK = (tyro.conf.OmitArgPrefixes, tyro.conf.PositionalMetavarFromFieldName)


@dataclass(frozen=True)
class Option:
    """One option of a command."""

    name: str
    """Its field, without the underscore at the end that sets it apart from a word of Python's."""
    hint: Any
    """Its type."""
    doc: str
    """What it means."""
    default: Any
    """Its default; MISSING if it must be given."""
    positional: bool = False
    """Whether it is written without its name."""


def parse(options: type[Options], words: Sequence[str], prog: str) -> Options:
    """Builds a command's options from the words behind its name; prints the help and leaves if that is asked for.

    Args:
        options: A dataclass; fields that are dataclasses contribute their own options under their own names.
        words: What was typed.
        prog: The command, as it is typed.

    Raises:
        UnknownNameError: For an option that does not exist; the message names the nearest.
        ConfigError: For a missing option, a value of the wrong type, or a word that is no option.
        SystemExit: After the help.
    """
    words = list(words)
    if {"-h", "--help"}.intersection(words) or words == ["help"]:
        arguments = ["--help"]
    else:
        arguments = _checked(options_of(options), words, prog)
    return tyro.cli(options, args=arguments, prog=prog, registry=registry(), config=_LOOK)


def options_of(options: type) -> dict[str, Option]:
    """All options of a command, by name, in the order of its help."""
    return {option.name: option for option in _options(options)}


def _options(options: type) -> Iterator[Option]:
    hints, docs = typing.get_type_hints(options, include_extras=True), field_docs(options)
    for spec in fields(options):
        hint = hints[spec.name]
        inner, *marks = typing.get_args(hint) if typing.get_origin(hint) is Annotated else (hint,)
        if is_dataclass(inner):
            yield from _options(typing.cast("type", inner))
        else:
            yield Option(spec.name.rstrip("_"), hint, docs[spec.name], _default(spec), tyro.conf.Positional in marks)


def _default(spec: Field[Any]) -> Any:
    return spec.default_factory() if spec.default_factory is not MISSING else spec.default


@functools.cache
def field_docs(options: type) -> Mapping[str, str]:
    """The doc string under each field of a dataclass and its bases, read from the source."""
    classes = [ast.parse(inspect.getsource(base)).body[0] for base in reversed(options.__mro__[:-1])]
    nodes = [node for found in classes if isinstance(found, ast.ClassDef) for node in found.body]
    docs = {}
    for field_node, doc in itertools.pairwise(nodes):
        if isinstance(field_node, ast.AnnAssign) and isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant):
            docs[ast.unparse(field_node.target)] = " ".join(str(doc.value.value).split())
    return docs


# Words ---------------------------------------------------------------------------------------------------------------


def _checked(options: Mapping[str, Option], words: Sequence[str], prog: str) -> list[str]:
    """The words in the parser's form, every name and value checked; of an option given twice, the later counts."""
    given: dict[str, list[str]] = {}
    groups: dict[str, dict[str, Any]] = {}
    places = [option.name for option in options.values() if option.positional]
    left = list(words)
    while left:
        key, values = _take(options, left, bool(places))
        if not key:
            given[places.pop(0)] = values
        elif "." in key:
            group, _, name = key.partition(".")
            groups.setdefault(group + _GROUP_END, {})[name] = free_value(values[0])
        else:
            given[key] = values
    for name, found in groups.items():
        given[name] = [json.dumps({**json.loads(given.get(name, ["{}"])[0]), **found})]
    for name, values in given.items():
        _check_value(options[name], values)
    for option in options.values():
        if option.default is MISSING and option.name not in given:
            raise ConfigError(f"{_shown(option)} is missing: {option.doc} See {prog} --help.")
    return [word for name, values in given.items() for word in _typed(options[name], values)]


def _take(options: Mapping[str, Option], left: list[str], place: bool) -> tuple[str, list[str]]:
    """Removes the next option and its values from the words; a positional one has no name."""
    word = left.pop(0)
    dashed = word.startswith("--")
    text, equals, value = word.removeprefix("--").partition("=")
    if not dashed and not (equals and _KEY.fullmatch(text)):
        if place and not word.startswith("-"):
            return "", [word]
        raise ConfigError(f"Expected --option value or option=value, got {word!r}; for instance --seed 1 or seed=1.")
    key, negated = _name(options, text, word, dashed)
    if negated:
        return key, ["false"]
    option = options.get(key)
    if equals:
        return key, [part for part in value.split(",") if part] if option and is_list(option.hint) else [value]
    if option and is_flag(option.hint):
        return key, [left.pop(0)] if left and left[0].lower() in ("true", "false") else ["true"]
    taken = _values(options, left) if option and is_list(option.hint) else left[:1]
    del left[: len(taken)]
    if not taken or (taken[0].startswith("--") and _known(options, taken[0][2:].partition("=")[0])):
        raise ConfigError(f"{word} wants a value: {options[key].doc}")
    return key, taken


def _values(options: Mapping[str, Option], left: Sequence[str]) -> list[str]:
    """The words of a list: those before the next option, dashed or as a pair."""

    def is_option(word: str) -> bool:
        return word.startswith("--") or ("=" in word and bool(_known(options, word.partition("=")[0])))

    return list(itertools.takewhile(lambda word: not is_option(word), left))


def _name(options: Mapping[str, Option], text: str, word: str, dashed: bool) -> tuple[str, bool]:
    """The option that a word names, and whether it switches it off."""
    key = _known(options, text)
    if key:
        return key, False
    off = _known(options, text.removeprefix("no-").removeprefix("no_")) if dashed else ""
    if off and is_flag(options[off].hint):
        return off, True
    names = [("--" if dashed else "") + (name.replace("_", "-") if dashed else name) for name in options]
    groups = [name.removesuffix(_GROUP_END) for name in options if name.endswith(_GROUP_END)]
    remedy = f"Options of a group are written {', '.join(f'{group}.x=' for group in groups)}." if groups else ""
    raise unknown_name("option", word.partition("=")[0], names, remedy)


def _known(options: Mapping[str, Option], text: str) -> str:
    group, dot, name = text.partition(".")
    if dot:
        return f"{group}.{name.replace('-', '_')}" if name and group + _GROUP_END in options else ""
    key = text.replace("-", "_")
    return key if key in options else ""


def _check_value(option: Option, values: list[str]) -> None:
    rule = reader(option.hint)
    try:
        if is_flag(option.hint):
            read_truth(values[0])
        elif rule is not None:
            rule.instance_from_str(values)
    except ValueError as error:
        raise type(error)(f"{option.name}={','.join(values)!r}: {error}") from error


def _typed(option: Option, values: list[str]) -> list[str]:
    """An option in the parser's form."""
    flag = "--" + option.name.replace("_", "-")
    if option.positional:
        return values
    if is_flag(option.hint):
        return [flag if read_truth(values[0]) else flag.replace("--", "--no-", 1)]
    return [flag, *values] if is_list(option.hint) else [f"{flag}={values[0]}"]


def _shown(option: Option) -> str:
    return option.name.upper().replace("_", "-") if option.positional else f"--{option.name.replace('_', '-')}"

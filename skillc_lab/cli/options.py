"""One grammar for all commands: ``--steps 40``, ``--steps=40`` and ``steps=40``, ``--method.omega 0.2``, flags.

The words are sorted by option, pydantic reads their values by the options' types, and the dataclasses take them; tyro
writes the help from the same classes and doc strings.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import tyro
from docstring_parser import parse_from_object

from skillc_gym.errors import ConfigError, unknown_name
from trainers.base import check_values

Options = TypeVar("Options")

ALIASES: Mapping[str, str] = {
    "preset": "method",
    "beta": "kl_coef",
    "beside": "versus",
    "draw": "task_sampling",
    "minibatches": "num_minibatches",
    "held_out_splits": "held_out_split",
}
"""Old and new name of an option or of a group of options. Where a command has the new one, the old one is understood
too, and says once what it is called now."""

_KEY = re.compile(r"[A-Za-z_][\w.-]*")
_GROUP_END = "_options"
_PLAIN = re.compile(r"[\w.:+=-]+(,[\w.:+=-]+)+")
"""Words with commas between them, and no name or path that has a comma in it."""
_WITH_OPTION = re.compile(r".*:[^:]*=.*", re.DOTALL)
"""A method with an option behind its colon."""


@dataclass(frozen=True)
class Option:
    """One option of a command: type, meaning, and default, MISSING if it must be given."""

    name: str
    """Its field, without the underscore at the end that sets it apart from a word of Python's."""
    hint: Any
    doc: str
    default: Any
    positional: bool = False
    """Whether it is written without its name."""

    @property
    def typed(self) -> str:
        """The option as it is typed."""
        return self.name.upper().replace("_", "-") if self.positional else _dashed(self.name)

    @property
    def is_list(self) -> bool:
        """Whether it takes any number of words."""
        return get_origin(_core(self.hint)) is tuple


def parse(
    options: type[Options],
    words: Sequence[str],
    prog: str,
    main: Sequence[str] = (),
    complete: Callable[[dict[str, Any]], tuple[Mapping[str, Any], Sequence[str]]] | None = None,
) -> Options:
    """Builds a command's options from the words after its name; prints the help and leaves if that is asked for.

    Args:
        options: A dataclass; fields that are dataclasses contribute their own options under their own names.
        words: What was typed.
        prog: The command, as it is typed.
        main: Options that the help shows, unless all are asked for; all if none is named.
        complete: From the options that were typed to all that are known, and what is to be said of that.

    Raises:
        UnknownNameError: For an option that does not exist; the message names the nearest.
        ConfigError: For a missing option, a value of the wrong type, or a word that is no option.
        SystemExit: After the help.
    """
    known = options_of(options)
    if {"-h", "--help", "--help-all"}.intersection(words) or list(words) == ["help"]:
        names = () if "--help-all" in words else main
        more = f"These {len(names)} options matter most; --help-all lists all {len(known)}." if names else ""
        looks = (tyro.conf.OmitArgPrefixes, tyro.conf.PositionalMetavarFromFieldName)
        about = f"{inspect.getdoc(options)}\n\n{more}"
        tyro.cli(_for_help(options, names), args=["--help"], prog=prog, description=about, config=looks)
    typed = _Words(known, words)
    given = typed.sorted()
    values = {name: _read(known[name], found) for name, found in given.items()}
    for option in known.values():
        if option.default is MISSING and option.name not in values:
            raise ConfigError(f"{option.typed} is missing: {option.doc}{typed.swallowed(option)} See {prog} --help.")
    known_values, notes = complete(values) if complete else (values, ())
    built: Options = _build(options, known_values)
    sys.stderr.writelines(f"{note}\n" for note in notes)
    return built


def _for_help(options: type, names: Sequence[str] = ()) -> type:
    """The class with all of its options in their groups, or these alone in their order, as tyro's help shows it."""
    specs = list(_help_specs(options, names))
    if names:
        specs.sort(key=lambda spec: names.index(spec[0].rstrip("_")))
    return make_dataclass(options.__name__, specs, kw_only=True, namespace={"__doc__": inspect.getdoc(options)})


def _help_specs(options: type, names: Sequence[str]) -> Iterator[tuple[str, Any, Any]]:
    docs = field_docs(options)
    for spec, hint, group in _fields(options):
        if group and names:
            yield from _help_specs(group, names)
        elif group:
            yield spec.name, _for_help(group), field()
        elif not names or spec.name.rstrip("_") in names:
            # A mapping is no value that tyro knows: it is shown as a text.
            default, mapping = _default(spec), _is_mapping(_core(hint))
            looks = tyro.conf.arg(help=docs[spec.name], metavar="JSON" if mapping else None)
            yield spec.name, Annotated[str if mapping else hint, looks], field(default="{}" if mapping else default)


def options_of(options: type) -> dict[str, Option]:
    """All options of a command, by name, in the order of its help."""
    found: dict[str, Option] = {}
    docs = field_docs(options)
    for spec, hint, group in _fields(options):
        name = spec.name.rstrip("_")
        positional = tyro.conf.Positional in getattr(hint, "__metadata__", ())
        found |= options_of(group) if group else {name: Option(name, hint, docs[spec.name], _default(spec), positional)}
    return found


def _fields(options: type) -> Iterator[tuple[Field[Any], Any, type | None]]:
    """Each field with its type, and with the class of the group where it is one."""
    hints = typing.get_type_hints(options, include_extras=True)
    for spec in fields(options):
        core = _core(hints[spec.name])
        yield spec, hints[spec.name], core if isinstance(core, type) and is_dataclass(core) else None


def _default(spec: Field[Any]) -> Any:
    return spec.default_factory() if spec.default_factory is not MISSING else spec.default


def _core(hint: Any) -> Any:
    """The type without its annotations, and without the None that it may be."""
    hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if get_origin(hint) in (Union, types.UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not type(None)]
        return _core(kinds[0]) if len(kinds) == 1 else hint
    return hint


def _is_mapping(kind: Any) -> bool:
    """Whether it is the type of a group of options, each of which can be given after a dot."""
    return Mapping in (kind, get_origin(kind))


def _build(options: type, values: Mapping[str, Any]) -> Any:
    given = {}
    for spec, _, group in _fields(options):
        if group:
            given[spec.name] = _build(group, values)
        elif spec.name.rstrip("_") in values:
            given[spec.name] = values[spec.name.rstrip("_")]
    made = options(**given)
    check_values(made)
    return made


@functools.cache
def field_docs(options: type) -> Mapping[str, str]:
    """What a dataclass and its bases say of each field: in the doc string under it, or in that of the class."""
    pages = [parse_from_object(base) for base in reversed(options.__mro__[:-1])]
    return {param.arg_name: " ".join((param.description or "").split()) for page in pages for param in page.params}


# Words to options ----------------------------------------------------------------------------------------------------


class _Words:
    def __init__(self, options: Mapping[str, Option], words: Sequence[str]) -> None:
        self._options = options
        self._left = list(words)
        self._places = [option.name for option in options.values() if option.positional]
        self._lists: list[tuple[str, list[str]]] = []

    def sorted(self) -> dict[str, list[str]]:
        """The words of each option; of an option given twice the later ones count, options of a group add up."""
        given: dict[str, list[str]] = {}
        groups: dict[str, dict[str, Any]] = {}
        while self._left:
            key, values = self._take()
            group, dot, name = key.partition(".")
            if dot:
                groups.setdefault(group + _GROUP_END, {})[name] = _free_value(values[0])
            elif key in groups:
                groups[key].update(_read(self._options[key], values))
            else:
                given[key] = values
        for name, found in groups.items():
            whole = _read(self._options[name], given.get(name, ["{}"]))
            given[name] = [json.dumps({**whole, **found})]
        return given

    def swallowed(self, option: Option) -> str:
        """Of an option that has no name and is missing: which list, if any, took the words where it may stand."""
        if not option.positional or not self._lists:
            return ""
        word, taken = self._lists[-1]
        return f" {word} took {' '.join(taken)}; put {option.typed} first."

    def _take(self) -> tuple[str, list[str]]:
        """Removes the next option and its values from the words."""
        word = self._left.pop(0)
        dashed = word.startswith("--")
        text, equals, value = word.removeprefix("--").partition("=")
        if not dashed and not (equals and _KEY.fullmatch(text)):
            if self._places and not word.startswith("-"):
                return self._places.pop(0), [word]
            raise ConfigError(f"Expected --option value or option=value, got {word!r}, unlike --seed 1 or seed=1.")
        key = self._known(text)
        if not key and dashed and self._is_flag(negated := self._known(re.sub(r"^no[-_]", "", text))):
            if equals:
                raise ConfigError(f"--{text} takes no value, got {value!r}; write --{text}, or {_dashed(negated)}.")
            return negated, ["false"]
        if not key:
            raise self._unknown(word.partition("=")[0], dashed)
        _note_new_name(re.split(r"\.|_options", text.replace("-", "_"))[0], re.split(r"\.|_options", key)[0])
        option = self._options.get(key)
        if equals:
            return key, _parts(value) if option and option.is_list else [value]
        if self._is_flag(key):
            return key, [self._left.pop(0)] if self._left and self._left[0].lower() in ("true", "false") else ["true"]
        return key, self._values(word, option)

    def _values(self, word: str, option: Option | None) -> list[str]:
        """The words behind a dashed option: one, or for a list all before the next option."""
        in_list = option is not None and option.is_list
        wanted = len(self._left) if in_list else 1
        taken = list(itertools.takewhile(lambda each: not self._begins_option(each, in_list), self._left[:wanted]))
        if not taken:
            raise ConfigError(f"{word} wants a value: {option.doc if option else 'an option of a group has one.'}")
        del self._left[: len(taken)]
        if option is None or not option.is_list:
            return taken
        self._lists.append((word, taken))
        if Path in get_args(_core(option.hint)):
            return taken  # names of files may hold commas
        return [part for each in taken for part in (_parts(each) if _PLAIN.fullmatch(each) else [each])]

    def _begins_option(self, word: str, in_list: bool) -> bool:
        """Whether a word begins an option; a pair ends a list only, since any text may hold an equals sign."""
        text, equals, _ = word.removeprefix("--").partition("=")
        if in_list:
            return word.startswith("--") or bool(equals and self._known(text))
        return word.startswith("--") and bool(self._known(text))

    def _is_flag(self, key: str) -> bool:
        """Whether an option is switched on and off without a value."""
        return key in self._options and _core(self._options[key].hint) is bool

    def _known(self, text: str) -> str:
        """The option that a text names, by either of its names; "" if there is none."""
        head, dot, name = text.partition(".")
        head = head.replace("-", "_")
        end = _GROUP_END if dot or head.endswith(_GROUP_END) else ""
        plain = head.removesuffix(end)
        for each in filter(None, (plain, ALIASES.get(plain))):
            if each + end in self._options:
                return (f"{each}.{name.replace('-', '_')}" if name else "") if dot else each + end
        return ""

    def _unknown(self, text: str, dashed: bool) -> Exception:
        groups = [f"{name.removesuffix(_GROUP_END)}.x=" for name in self._options if name.endswith(_GROUP_END)]
        remedy = f"Options of a group are written {', '.join(groups)}." if groups else ""
        names = [_dashed(name) if dashed else name for name in self._options]
        return unknown_name("option", text, names, remedy)


def _parts(text: str) -> list[str]:
    """What stands between commas; ``rho=0.5`` is one more option of the method before it, ``skillc:omega=0.2``."""
    found: list[str] = []
    for part in filter(None, text.split(",")):
        if found and _WITH_OPTION.fullmatch(found[-1]) and re.match(r"[\w.]+=", part):
            found[-1] += f",{part}"
        else:
            found.append(part)
    return found


@functools.cache
def _note_new_name(typed: str, name: str) -> None:
    if ALIASES.get(typed) == name:
        sys.stderr.write(f"note: the option {typed} is called {name} now\n")


def _dashed(name: str) -> str:
    return "--" + name.replace("_", "-")


# Words to values -----------------------------------------------------------------------------------------------------


def _read(option: Option, words: list[str]) -> Any:
    from pydantic import Json, TypeAdapter, ValidationError

    core = _core(option.hint)
    bare = get_args(option.hint)[0] if get_origin(option.hint) is Annotated else option.hint
    if type(None) in get_args(bare) and len(words) == 1 and words[0].lower() in ("none", "null"):
        return None
    if get_origin(core) is Literal and words[0] not in get_args(core):
        raise unknown_name(option.name, words[0], get_args(core))
    kind = Json[dict[str, Any]] if _is_mapping(core) else core
    try:
        return TypeAdapter(kind).validate_python(words if option.is_list else words[0])
    except ValidationError as error:
        told = " or ".join(dict.fromkeys(found["msg"] for found in error.errors()))  # one for each part of a union
        raise ConfigError(f"{option.name}={','.join(words)!r}: {told}") from error


def _free_value(text: str) -> Any:
    """Reads a value whose type is not declared: JSON where it is JSON, Python's None and booleans, else the text."""
    plain = {"None": None, "True": True, "False": False}
    if text in plain:
        return plain[text]
    try:
        return json.loads(text)
    except ValueError:  # or a number of too many digits
        return text

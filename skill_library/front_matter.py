"""The front matter of a SKILL.md: a small, bounded part of YAML, of which nothing but strings is ever built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import yaml

from skill_library.errors import brief

_MAX_CHARACTERS = 16_384
_MAX_DEPTH = 8
_MAX_BRACKETS = 256
_STRING, _NULL = "tag:yaml.org,2002:str", "tag:yaml.org,2002:null"


class FrontMatter:
    """The fields between the two ``---`` lines; ValueError, without the file's name, for text that is not such YAML.

    YAML's aliases, anchors, tags and merge keys are refused: they serve no skill, and a few lines of them stand for
    gigabytes. Values are looked at, never constructed, so an odd number or date in a field that nobody reads is no
    matter.
    """

    def __init__(self, text: str) -> None:
        if len(text) > _MAX_CHARACTERS:
            raise ValueError(f"the front matter is longer than {_MAX_CHARACTERS:,} characters")
        # The scanner's time grows with the square of the brackets that are open, before it tells how many there are.
        if text.count("[") + text.count("{") > _MAX_BRACKETS:
            raise ValueError(f"the front matter has more than {_MAX_BRACKETS} opening brackets")
        try:
            _check_events(text)
            node = yaml.compose(text, Loader=yaml.SafeLoader)
        except (yaml.YAMLError, OverflowError) as error:
            raise ValueError(
                f"the front matter is not YAML ({_reason(error)}); a value with ': ' or '#' in it goes in quotes"
            ) from error
        if not isinstance(node, yaml.MappingNode):
            raise ValueError(f"the front matter must be fields like 'name: heat', got {brief(text.strip())}")
        self._fields = _named(node)

    def require(self, names: Sequence[str]) -> None:
        """Checks that fields are there; ValueError if some are not."""
        missing = [name for name in names if name not in self._fields]
        if missing:
            raise ValueError(f"the front matter lacks {', '.join(missing)}")

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    def names(self, inside: str) -> tuple[str, ...]:
        """The names of all fields, then of a field's own."""
        node = self._fields.get(inside)
        return (*self._fields, *(_named(node) if isinstance(node, yaml.MappingNode) else ()))

    def texts(self, name: str, read: Sequence[str]) -> dict[str, str]:
        """A field's own fields, those asked for and not null; ValueError for one that is neither text nor number."""
        node = self._fields.get(name)
        if node is not None and node.tag != _NULL and not isinstance(node, yaml.MappingNode):
            raise ValueError(f"{name} must be fields below it, like '{read[0]}: ...'; got {_shown(node)}")
        entries = _named(node) if isinstance(node, yaml.MappingNode) else {}
        found = {key: entries[key] for key in read if key in entries and entries[key].tag != _NULL}
        for key, value in found.items():
            if not isinstance(value, yaml.ScalarNode):
                raise ValueError(f"{name}.{key} must be a text, several joined by commas; got {_shown(value)}")
        return {key: str(value.value) for key, value in found.items()}

    def string(self, name: str) -> str:
        """A field's text without surrounding white space; ValueError if it is no string, or empty."""
        node = self._fields[name]
        if not _is_string(node) or not node.value.strip():
            raise ValueError(f"{name} must be a non-empty string, got {_shown(node)}")
        return str(node.value.strip())

    def strings(self, name: str, example: str) -> tuple[str, ...]:
        """A field's list of texts; ValueError, with the ``example``, unless it is a list of one or more strings."""
        node = self._fields[name]
        entries = node.value if isinstance(node, yaml.SequenceNode) else []
        if not entries or not all(_is_string(entry) and entry.value for entry in entries):
            raise ValueError(f"{name} must be a list of strings ({example}), got {_shown(node)}")
        return tuple(entry.value for entry in entries)


def _reason(error: Exception) -> str:
    """What is wrong, and in which line of the file."""
    mark = getattr(error, "problem_mark", None)
    where = f", line {mark.line + 2}" if mark is not None else ""
    return f"{getattr(error, 'problem', None) or error}{where}"


def _check_events(text: str) -> None:
    """Refuses what can grow beyond its text, before anything is composed from it."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise ValueError(f"the front matter is nested deeper than {_MAX_DEPTH} levels")
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            raise ValueError(f"the front matter uses YAML's anchors or aliases ({brief(event.anchor)}); write it out")
        tag = getattr(event, "tag", None)
        if tag is not None:
            raise ValueError(f"the front matter uses YAML's tags ({brief(tag)}); write plain values")


def _named(node: yaml.MappingNode) -> Mapping[str, yaml.Node]:
    fields: dict[str, yaml.Node] = {}
    for key, value in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else None
        if name == "<<":
            raise ValueError("the front matter uses YAML's merge key '<<'; write the fields out")
        if name in fields:
            raise ValueError(f"the front matter has the field {brief(name)} twice")
        if name is not None:
            fields[name] = value
    return fields


def _is_string(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == _STRING


def _shown(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        kind = node.tag.rpartition(":")[2]
        return brief(node.value) if kind == "str" else f"{brief(node.value)} (a YAML {kind}; put it in quotes)"
    kind = "list" if isinstance(node, yaml.SequenceNode) else "mapping"
    return f"a {kind} of {len(node.value)}" if node.value else f"an empty {kind}"

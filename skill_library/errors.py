"""Root of the project's exception tree, and the errors of skill files."""

from __future__ import annotations

import reprlib


class SkillCError(Exception):
    """Anything this project raises on purpose; catch it to catch them all."""


class SkillFileError(SkillCError, ValueError):
    """A skill folder that cannot be read as one: no front matter, a missing field, an empty body."""


_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 200
_REPR.maxlevel = 3


def brief(value: object) -> str:
    """A value's ``repr`` for a message, cut in length, width and depth: what came from a file may be of any size."""
    return _REPR.repr(value)

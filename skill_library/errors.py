"""Root of the project's exception tree, and the errors of skill files."""

from __future__ import annotations

import reprlib


class SkillCError(Exception):
    """Anything this project raises on purpose; catch it to catch them all."""

    # OSError, which some of them are too, builds its text from (errno, strerror); ours is a plain sentence.
    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class SkillFileError(SkillCError, ValueError):
    """A skill folder that cannot be read as one: no front matter, a missing field, an empty body."""


class UnreadableFileError(SkillCError, OSError):
    """A file that is not a regular file, is too large, or may not be read."""


_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 200
_REPR.maxlevel = 3


def brief(value: object) -> str:
    """A value's ``repr`` for a message, cut in length, width and depth: what came from a file may be of any size."""
    return _REPR.repr(value)

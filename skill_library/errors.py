"""Root of the project's exception tree, and the errors of skill files."""

from __future__ import annotations


class SkillCError(Exception):
    """Anything this project raises on purpose; catch it to catch them all."""


class SkillFileError(SkillCError, ValueError):
    """A skill folder that cannot be read as one: no front matter, a missing field, an empty body."""

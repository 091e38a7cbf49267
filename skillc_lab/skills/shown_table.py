"""What episodes were shown, as text: a table, and the texts themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skill_library import SkillLibrary
from skillc_gym.envs.registry import short_type
from skillc_lab.skills.shown import ShownText, printable, standing

__all__ = ["shown_table", "shown_text"]

_HEAD = ("type", "condition", "skill", "grade", "episodes", "words", "tokens", "sha256")
_NUMBERS = ("episodes", "words", "tokens")


def shown_table(
    shown: Sequence[ShownText], library: SkillLibrary | None = None, count: Callable[[str], int] | None = None
) -> str:
    """A line per text; "-" stands for what there is none of.

    Args:
        shown: The texts.
        library: Adds a column that says how each stands to this library.
        count: Tokens of a text; None to count words alone.
    """
    head, rows = [*_HEAD], [_row(each, count) for each in shown]
    if library is not None:
        head.append(f"{library.name} today")
        rows = [[*row, standing(each, library) or "-"] for row, each in zip(rows, shown, strict=True)]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return "\n".join(_line(row, head, widths) for row in (head, *rows))


def shown_text(shown: ShownText) -> str:
    """A text in full, behind a line that says who read it."""
    who = f"{shown.episodes} episodes of {shown.task_type} {_condition(shown)} the skill read {shown.skill}"
    what = f"{shown.grade or 'of no recorded grade'}, sha256 {shown.sha256[:12]}"
    return printable(f"{who} ({what}):\n\n{shown.text}\n")


def _row(shown: ShownText, count: Callable[[str], int] | None) -> list[str]:
    words = str(len(shown.text.split())) if shown.text else ""
    tokens = str(count(shown.text)) if shown.text and count else ""
    named = [short_type(shown.task_type), _condition(shown), shown.skill, shown.grade]
    return [printable(cell) or "-" for cell in [*named, str(shown.episodes), words, tokens, shown.sha256[:12]]]


def _line(row: Sequence[str], head: Sequence[str], widths: Sequence[int]) -> str:
    cells = zip(row, head, widths, strict=True)
    return "  ".join(c.rjust(width) if name in _NUMBERS else c.ljust(width) for c, name, width in cells).rstrip()


def _condition(shown: ShownText) -> str:
    return "with" if shown.condition else "without"

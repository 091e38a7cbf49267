"""The exit status of a command whose errors are said in a sentence."""

from __future__ import annotations

import sys
from collections.abc import Callable

from skillc_gym.errors import SkillCError

__all__ = ["exit_status"]


def exit_status(work: Callable[[], object]) -> int:
    """Does the work; 0 if it was done, 2 if it was refused, which has been said."""
    try:
        work()
    except SkillCError as error:
        print(error, file=sys.stderr)
        return 2
    return 0

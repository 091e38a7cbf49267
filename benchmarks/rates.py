"""Rates and differences of a record as text: in per cent and in points, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["points", "rate"]


def rate(found: Mapping[str, Any]) -> str:
    """A record's ``mean`` and ``interval``: ``56.9 [50, 64]``; the mean alone where there is no interval."""
    ends = "" if found["interval"] is None else " [{:.0f}, {:.0f}]".format(*(100 * end for end in found["interval"]))
    return f"{100 * found['mean']:.1f}{ends}"


def points(found: Mapping[str, Any], digits: int = 1) -> str:
    """The same of a difference: ``-0.7 [-6.1, +4.7]``.

    Args:
        found: A record's ``mean`` and ``interval``.
        digits: Decimals of the interval's ends.
    """
    ends = ", ".join(f"{100 * end:+.{digits}f}" for end in found["interval"] or ())
    return f"{100 * found['mean']:+.1f}" + (f" [{ends}]" if ends else "")

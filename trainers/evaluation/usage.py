"""What an evaluation through a server has used: requests, tokens and cost, with the skill and without."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from trainers.rollout.text_policy import Usage

__all__ = ["Usage", "no_price", "usage_report", "usage_row"]

Cost = Callable[[int, int], float | None]
"""Price of tokens read and written; None if there are no prices."""


def no_price(read: int, written: int) -> float | None:
    """The price where nobody has said one: None."""
    return None


def usage_report(used: Iterable[tuple[int, Usage]], cost: Cost = no_price) -> dict[str, Any]:
    """Sums by condition.

    Args:
        used: Condition and usage of every episode.
        cost: Price of tokens read and written; None if there are no prices.

    Returns:
        For ``with``, ``without`` and ``all``: ``episodes``, ``requests``, ``prompt_tokens``, ``completion_tokens``,
        and ``cost``, which is None without prices.
    """
    entries = list(used)
    arms = {"with": (1,), "without": (0,), "all": (0, 1)}
    return {name: usage_row([usage for arm, usage in entries if arm in chosen], cost) for name, chosen in arms.items()}


def usage_row(entries: Sequence[Usage], cost: Cost = no_price, episodes: int | None = None) -> dict[str, Any]:
    """Sums of one row of a report, over one entry per episode unless ``episodes`` says how many there were."""
    total = Usage(*(sum(getattr(entry, name) for entry in entries) for name in Usage.__dataclass_fields__))
    return {
        "episodes": len(entries) if episodes is None else episodes,
        **asdict(total),
        "cost": cost(total.prompt_tokens, total.completion_tokens),
    }

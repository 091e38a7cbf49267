"""What upstream does wrong and this environment mends: every fix by name, with its effect."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

from skillc_gym.errors import unknown_name

__all__ = ["COMPAT", "FIXED", "FIXES", "UPSTREAM", "Fix", "Fixes", "fixes"]


@dataclass(frozen=True, slots=True)
class Fixes:
    """Which fixes are in force; `FIXES` says what each is about."""

    plain_queries: bool
    page_by_state: bool
    real_selections: bool
    bracketed_values: bool
    every_group: bool
    any_case_asins: bool
    long_queries: bool
    fair_draws: bool
    purchase_ends: bool


class Fix(NamedTuple):
    """A fix: what upstream does, what happens here, and what that changes."""

    upstream: str
    fixed: str
    effect: str


FIXES: dict[str, Fix] = {
    "plain_queries": Fix(
        "A query whose first word is <r>, <c> or <q> lists random products, a category or a query's products; "
        "<a> and a bare <c> raise.",
        "They are ordinary text.",
        "Other results for such queries.",
    ),
    "page_by_state": Fix(
        "The page that '< prev' and 'next >' leave is guessed from the URL, which contains the query: the query "
        "search_results makes '< prev' on a product lead to an empty page 0.",
        "The page is known.",
        "Another page after '< prev' for such queries.",
    ),
    "real_selections": Fix(
        'text_rich marks an option as clicked when its value stands in double quotes in the URL: a query "red" marks '
        "red, a value that is a group's name is always marked, one that is not ASCII never.",
        "The chosen options are marked.",
        "Marks in text_rich; no other text and no score.",
    ),
    "bracketed_values": Fix(
        "An option whose value contains [, ] or a line break cannot be clicked.",
        "It can.",
        "Purchases with such options become possible.",
    ),
    "every_group": Fix(
        "A value that occurs in several groups of options is chosen in the last of them only.",
        "It is chosen in the first group in which it is not chosen yet; clicking again reaches the next.",
        "Which group such a click chooses in; score only through another choice that is kept or replaced.",
    ),
    "any_case_asins": Fix(
        "A product whose asin has lower-case letters, or is the label of a button of other pages (Buy Now, FEATURES), "
        "raises when it is clicked.",
        "Its page opens.",
        "Such products can be reached.",
    ),
    "long_queries": Fix(
        "A query of more than 1,024 different terms raises.",
        "The first 1,024 count, and info['query_cut'] is True.",
        "Such queries have results.",
    ),
    "fair_draws": Fix(
        "Random tasks are drawn one place late: goal 0 never, the last one too often.",
        "Tasks are drawn by their weights.",
        "Which task a seed draws.",
    ),
    "purchase_ends": Fix(
        "After a purchase the shop goes on: another search and another purchase are possible.",
        "A purchase ends the episode; later actions change nothing.",
        "Nothing before the purchase.",
    ),
}

_NAMES = [field.name for field in fields(Fixes)]
FIXED = Fixes(**dict.fromkeys(_NAMES, True))
UPSTREAM = Fixes(**dict.fromkeys(_NAMES, False))
COMPAT = {"fixed": FIXED, "upstream": UPSTREAM}


def fixes(compat: str | Fixes) -> Fixes:
    """Returns the fixes of "fixed" or "upstream"; a choice of your own is returned as it is.

    Raises:
        UnknownNameError: If the name is neither.
    """
    if isinstance(compat, Fixes):
        return compat
    if compat not in COMPAT:
        raise unknown_name("compat", compat, COMPAT)
    return COMPAT[compat]

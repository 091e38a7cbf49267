"""What upstream does wrong and this environment mends: every fix by name.

A value of an option that is also a button's label, such as ``< prev``, navigates with and without the fixes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from skillc_gym.errors import unknown_name


@dataclass(frozen=True, slots=True)
class Fixes:
    """Which fixes are in force.

    Attributes:
        plain_queries: <r>, <a>, <c> and <q> in front of a query are ordinary text. Upstream lists random products, a
            category or a query's products, or raises.
        page_by_state: '< prev' and 'next >' know the page they leave. Upstream guesses it from the URL, which contains
            the query: "search_results" makes '< prev' on a product lead to an empty page 0.
        real_selections: text_rich marks the options that are chosen. Upstream marks those whose value stands in double
            quotes in the URL: a query "red" marks red, a value that is not ASCII is never marked.
        bracketed_values: An option whose value contains [, ] or a line break can be clicked.
        every_group: A value that occurs in several groups is chosen in the first one in which it is not chosen yet.
            Upstream chooses it in the last group only.
        any_case_asins: A product opens whose id has lower-case letters or is the label of another page's button.
            Upstream raises.
        long_queries: Of a query's different terms, the first 1,024 count, and an action of more than 4,096 characters
            changes nothing. Upstream raises if there are more terms, and takes any length (here up to 262,144).
        fair_draws: Tasks are drawn by their weights. Upstream draws one place late: goal 0 never, the last too often.
        purchase_ends: A purchase ends the episode. Upstream's shop can be searched, and bought from, again.
    """

    plain_queries: bool
    page_by_state: bool
    real_selections: bool
    bracketed_values: bool
    every_group: bool
    any_case_asins: bool
    long_queries: bool
    fair_draws: bool
    purchase_ends: bool


FIXES = tuple(field.name for field in fields(Fixes))
FIXED = Fixes(**dict.fromkeys(FIXES, True))
UPSTREAM = Fixes(**dict.fromkeys(FIXES, False))
COMPAT = {"fixed": FIXED, "upstream": UPSTREAM}


def fixes(compat: str | Fixes) -> Fixes:
    """Returns the fixes of "fixed" or "upstream"; a choice of your own is returned as it is."""
    if isinstance(compat, Fixes):
        return compat
    if compat not in COMPAT:
        raise unknown_name("compat", compat, COMPAT)
    return COMPAT[compat]

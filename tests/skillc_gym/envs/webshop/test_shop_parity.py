from __future__ import annotations

import pytest

from benchmarks import parity_webshop, parity_webshop_catalog

CASES = {
    parity_webshop.compare_colors: 1,
    parity_webshop.compare_fuzzy: 1000,
    parity_webshop.compare_rewards: 1000,
    parity_webshop.compare_goals: 3000,
    parity_webshop.compare_episodes: 2000,
    parity_webshop_catalog.compare_products: 500,
    parity_webshop_catalog.compare_loader: 40,
    parity_webshop_catalog.compare_terms: 2900,
    parity_webshop_catalog.compare_rankings: 300,
    parity_webshop_catalog.compare_special_searches: 7,
}
CHANGED = {"script0", "script4", "script5", "script6", "script16", "script18", "rand12"}
"""Recorded episodes that the fixes change."""


@pytest.mark.parametrize(("compare", "at_least"), CASES.items())
def test_recordings_of_upstream_are_reproduced(compare, at_least, webshop_reference):
    found = compare(webshop_reference)
    assert found.differences == []
    assert found.cases >= at_least


def test_rankings_of_the_real_products_are_reproduced(webshop_reference, webshop_data):
    found = parity_webshop_catalog.compare_real_rankings(webshop_reference, str(webshop_data))
    assert found.differences == []
    assert found.cases == 218


def test_fixes_change_few_episodes_and_each_for_a_reason(webshop_reference):
    found = parity_webshop.compare_episodes(webshop_reference, compat="fixed")
    assert {line.split("_")[0] for line in found.differences} <= CHANGED
    assert found.counts["episodes"] > 20 * len(found.differences)


def test_the_builtin_tagger_agrees_with_the_recorded_one(webshop_reference):
    found = parity_webshop.compare_nouns(webshop_reference)
    assert len(found.differences) <= 0.01 * found.cases

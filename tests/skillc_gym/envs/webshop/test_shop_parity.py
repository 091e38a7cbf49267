from __future__ import annotations

import pytest

from benchmarks.parity.webshop import (
    compare_colors,
    compare_episodes,
    compare_fuzzy,
    compare_goals,
    compare_nouns,
    compare_rewards,
    read_cases,
)
from benchmarks.parity.webshop_catalog import (
    compare_loader,
    compare_products,
    compare_rankings,
    compare_real_rankings,
    compare_special_searches,
    compare_terms,
)
from skillc_gym.errors import MissingDataError


@pytest.mark.parametrize(
    ("compare", "at_least"),
    [
        (compare_colors, 1),
        (compare_fuzzy, 1000),
        (compare_rewards, 1000),
        (compare_goals, 3000),
        (compare_episodes, 2000),
        (compare_products, 500),
        (compare_loader, 40),
        (compare_terms, 2900),
        (compare_rankings, 300),
        (compare_special_searches, 7),
    ],
)
def test_recordings_of_upstream_are_reproduced(compare, at_least, webshop_reference):
    found = compare(webshop_reference)
    assert found.differences == []
    assert found.cases >= at_least


def test_rankings_of_the_real_products_are_reproduced(webshop_reference, webshop_data):
    found = compare_real_rankings(webshop_reference, str(webshop_data))
    assert found.differences == []
    assert found.cases == 218


def test_a_difference_is_told(webshop_reference, monkeypatch):
    monkeypatch.setattr("benchmarks.parity.webshop_catalog.analyze", str.split)
    assert len(compare_terms(webshop_reference).differences) > 1_000


def test_fixes_change_few_episodes_and_each_for_a_reason(webshop_reference):
    found = compare_episodes(webshop_reference, compat="fixed")
    assert {line.split("_")[0] for line in found.differences} <= {
        "script0",
        "script4",
        "script5",
        "script6",
        "script16",
        "script18",
        "rand12",
    }
    assert found.counts["episodes"] > 20 * len(found.differences)


def test_the_builtin_tagger_agrees_with_the_recorded_one(webshop_reference):
    found = compare_nouns(webshop_reference)
    assert len(found.differences) <= 0.01 * found.cases


def test_a_folder_without_recordings_is_named(tmp_path):
    with pytest.raises(MissingDataError, match=r"fuzz_cases\.jsonl"):
        read_cases(tmp_path, "fuzz_cases.jsonl")

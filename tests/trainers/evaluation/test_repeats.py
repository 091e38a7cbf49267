"""Several attempts per task: pass@k, rates over all pairs, intervals over tasks."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError
from trainers.evaluation import (
    ArmOutcome,
    PairedCounts,
    PairedOutcome,
    PairedReport,
    compare_reports,
    pass_at_k,
    pass_rates,
)


@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_the_share_of_the_draws_of_k_that_hold_a_success(case: tuple[int, int, int]) -> None:
    n, successes, k = case
    draws = list(itertools.combinations([i < successes for i in range(n)], k))
    assert pass_at_k(successes, n, k) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_pass_at_k_needs_enough_episodes() -> None:
    for arguments in ((1, 3, 4), (4, 3, 1), (1, 3, 0)):
        with pytest.raises(ConfigError, match="pass@k needs"):
            pass_at_k(*arguments)


def outcome(task: str, attempt: int, with_: bool, without: bool) -> PairedOutcome:
    return PairedOutcome(task, "heat", ArmOutcome(with_, float(with_), 3), ArmOutcome(without, 0.0, 3), attempt)


WON = {"a": [(True, True), (True, False)], "b": [(True, False), (False, False)]}
OUTCOMES = tuple(outcome(task, attempt, *WON[task][attempt]) for attempt in (0, 1) for task in WON)


def test_rates_are_over_all_pairs_and_intervals_over_tasks() -> None:
    report = PairedReport(OUTCOMES, 0, {})
    assert (report.attempts, report.tasks, report.overall.n) == (2, ("a", "b"), 2)
    assert (report.overall.sr_with, report.overall.sr_without, report.overall.gap) == (0.75, 0.25, 0.5)
    once = PairedCounts.of([o for o in OUTCOMES if o.attempt == 0])
    assert report.overall.sr_without_interval.high - report.overall.sr_without_interval.low >= 0.5
    assert once.n == report.overall.n
    repeated = PairedCounts.of(o for o in OUTCOMES for _ in range(50))
    assert report.overall.gap_interval.low < repeated.gap_interval.low


def test_pass_rates_grow_with_k_and_are_in_the_report() -> None:
    rates = pass_rates(OUTCOMES, 2)
    assert list(rates) == ["1", "2"]
    assert (rates["1"]["with"]["rate"], rates["2"]["with"]["rate"]) == (0.75, 1.0)
    assert (rates["1"]["without"]["rate"], rates["2"]["without"]["rate"]) == (0.25, 0.5)
    report = PairedReport(OUTCOMES, 0, {})
    written = json.loads(json.dumps(report.to_json()))
    assert written["pass_at"] == rates
    assert PairedReport.from_json(written) == report


def test_only_reports_with_as_many_attempts_are_compared() -> None:
    once = PairedReport(OUTCOMES[:2], 0, {})
    twice = PairedReport(OUTCOMES, 0, {})
    assert compare_reports(twice, twice, skill=True)["overall"].n == 2
    with pytest.raises(ConfigError, match="1 and 2 times"):
        compare_reports(once, twice, skill=True)

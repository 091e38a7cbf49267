"""The verdict on skills."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError
from skillc_lab.skills.effect import SkillTest
from trainers.evaluation import ArmOutcome, PairedOutcome, PairedReport


def arm(won: bool, tokens: int = 10) -> ArmOutcome:
    return ArmOutcome(won, float(won), 3, prompt_tokens=tokens, completion_tokens=5)


def report(both: int, with_: int, without: int, neither: int) -> PairedReport:
    wins = [(True, True)] * both + [(True, False)] * with_ + [(False, True)] * without + [(False, False)] * neither
    outcomes = (
        PairedOutcome(f"t/{n}", ("heat", "cool")[n % 2], arm(won, 30), arm(other))
        for n, (won, other) in enumerate(wins)
    )
    return PairedReport(tuple(outcomes), 0, {})


@pytest.mark.parametrize(
    ("counts", "margin", "verdict", "decided"),
    [
        ((10, 40, 0, 10), 0.05, "pass", True),
        ((10, 0, 40, 10), 0.05, "fail", True),
        ((10, 40, 0, 10), 0.6, "neutral", False),
        ((200, 1, 1, 200), 0.05, "neutral", True),
        ((2, 2, 1, 2), 0.05, "neutral", False),
        ((10, 40, 0, 10), 0.0, "pass", True),
    ],
)
def test_the_verdict_is_of_the_whole_interval(
    counts: tuple[int, int, int, int], margin: float, verdict: str, decided: bool
) -> None:
    overall = SkillTest(report(*counts), margin).overall
    assert (overall.verdict, overall.decided) == (verdict, decided)
    assert overall.words().startswith(verdict)
    assert ("undecided" in overall.words()) is not decided


@given(st.tuples(*[st.integers(0, 40)] * 4).filter(lambda counts: sum(counts) > 1), st.floats(0, 0.99))
def test_to_swap_the_conditions_turns_the_verdict_around(counts: tuple[int, int, int, int], margin: float) -> None:
    both, first, second, neither = counts
    one = SkillTest(report(*counts), margin).overall
    other = SkillTest(report(both, second, first, neither), margin).overall
    assert {"pass": "fail", "fail": "pass", "neutral": "neutral"}[one.verdict] == other.verdict
    assert one.detectable == other.detectable


def test_types_have_wider_intervals_and_tokens_their_means() -> None:
    test = SkillTest(report(10, 40, 0, 10), 0.05)
    heat = test.per_type["heat"]
    assert heat.interval.low < heat.counts.gap_interval.low
    assert (heat.tokens(True), heat.tokens(False)) == (35, 15)
    assert "pass" in test.table().splitlines()[-1]


@pytest.mark.parametrize("margin", [-0.1, 1, 5, float("nan")])
def test_a_margin_is_a_share(margin: float) -> None:
    with pytest.raises(ConfigError, match=r"such as 0\.05"):
        SkillTest(report(1, 1, 1, 1), margin)

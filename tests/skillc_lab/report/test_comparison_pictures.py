"""Methods side by side over seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillc_gym.errors import ConfigError
from skillc_lab.report import SeedRun, Series, mean_curve, save_comparison
from trainers.stats import mean_over_seeds


def seed_run(method: str, seed: int, steps: tuple[int, ...] = (0, 5, 10)) -> SeedRun:
    course = Series(list(steps), [0.1 * seed + 0.01 * step for step in steps])
    return SeedRun(method, seed, course, {"with": 0.5, "without": 0.1}, {"with": 0.6, "without": 0.4 + 0.1 * seed})


def test_the_mean_curve_has_students_interval_at_every_shared_step() -> None:
    curve = mean_curve([seed_run("skillc", 0), seed_run("skillc", 1), seed_run("skillc", 2, (0, 10))])
    assert [step for step, _ in curve] == [0, 10]
    found, expected = curve[1][1], mean_over_seeds([0.1, 0.2, 0.3])
    assert found.interval is not None
    assert expected.interval is not None
    assert (found.mean, found.interval.low) == pytest.approx((expected.mean, expected.interval.low))
    assert mean_curve([seed_run("grpo", 0)])[0][1].interval is None


def test_runs_are_read_from_the_record_of_a_demonstration() -> None:
    rates = {f"sr_{arm}_{when}": 0.25 for arm in ("with", "without") for when in ("before", "after")}
    validations = [{"step": 0, "overall_without": 0.2, "overall_with": 0.9}]
    found = SeedRun.of_record({"preset": "grpo", "seed": 3, "validations": validations, **rates})
    assert found == SeedRun("grpo", 3, Series([0], [0.2]), *[{"with": 0.25, "without": 0.25}] * 2)


def test_the_picture_shows_every_method(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra 'train'")
    runs = [seed_run(method, seed) for method in ("skillc", "grpo") for seed in (0, 1, 2)]
    picture = save_comparison(runs, tmp_path / "new" / "methods.png", heading="SkillC beside GRPO")
    assert picture.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ConfigError, match="got none"):
        save_comparison([], tmp_path / "methods.png")

"""Paired evaluation: panels, reports and their comparison."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from skillc_gym.errors import ConfigError
from skillc_gym.panels import panel_hash
from trainers.evaluation import PairedReport, compare_reports, paired_evaluation


@dataclass(frozen=True)
class Episode:
    task_id: str
    task_type: str
    condition: int
    won: float
    task_score: float
    turns: tuple[str, ...]
    cut: str = ""


@dataclass(frozen=True)
class Result:
    episode: Episode


@dataclass(frozen=True)
class Sampling:
    temperature: float = 0.4
    greedy: bool = False


@dataclass
class Player:
    """Solves with the skill what is listed, and without it what is listed."""

    with_: frozenset[str]
    without: frozenset[str]
    calls: list[tuple[list[int], int, int]]

    def collect(
        self, task_ids: Sequence[str], n_plus: Sequence[int], group_size: int, *, seed: int, sampling: object
    ) -> list[Result]:
        self.calls.append((list(n_plus), group_size, seed))
        results = []
        for task in task_ids:
            for condition, solved in ((1, self.with_), (0, self.without)):
                won = float(task in solved)
                kind = task.split("/")[0]
                results.append(Result(Episode(task, kind, condition, won, won, ("look",) * (5 - 2 * condition))))
        return results


def play(with_: Sequence[str], without: Sequence[str], tasks: Sequence[str]) -> PairedReport:
    return paired_evaluation(Player(frozenset(with_), frozenset(without), []), tasks, seed=3, sampling=Sampling())


TASKS = ["heat/0", "heat/1", "heat/2", "cool/0", "cool/1"]


def test_rates_gaps_and_counts() -> None:
    report = play(["heat/0", "heat/1", "cool/0"], ["heat/0", "cool/1"], TASKS)
    assert (report.overall.sr_with, report.overall.sr_without) == (0.6, 0.4)
    assert report.overall.gap == pytest.approx(0.2)
    heat = report.per_type["heat"]
    assert (heat.both, heat.only_with, heat.only_without, heat.neither) == (1, 1, 0, 1)
    assert report.sr_with == {"cool": 0.5, "heat": pytest.approx(2 / 3)}
    assert report.n == {"cool": 2, "heat": 3}
    assert heat.gap_interval.low < heat.gap < heat.gap_interval.high
    assert heat.sr_with_interval.low < heat.sr_with < heat.sr_with_interval.high
    assert all(error > 0 for error in report.gap_standard_error.values())
    assert [(o.with_skill.steps, o.without_skill.steps) for o in report.outcomes] == [(3, 5)] * 5
    assert len(report.episodes) == 10


def test_both_conditions_share_one_group_and_its_seed() -> None:
    player = Player(frozenset(), frozenset(), [])
    paired_evaluation(player, TASKS, seed=11, sampling=Sampling())
    assert player.calls == [([1] * 5, 2, 11)]


def test_reports_round_trip_through_json(tmp_path: Path) -> None:
    report = play(["heat/0", "heat/1", "cool/0"], ["heat/0"], TASKS)
    report.save(tmp_path / "report.json")
    loaded = PairedReport.load(tmp_path / "report.json")
    assert loaded == report
    assert loaded.to_json() == report.to_json()
    assert loaded.sampling == {"temperature": 0.4, "greedy": False}
    written = json.loads((tmp_path / "report.json").read_text())
    assert written["overall"]["gap_interval"] == [report.overall.gap_interval.low, report.overall.gap_interval.high]


def test_changed_or_foreign_reports_are_refused() -> None:
    data = play([], [], TASKS).to_json()
    data["outcomes"] = data["outcomes"][:-1]
    with pytest.raises(ConfigError, match="panel's hash"):
        PairedReport.from_json(data)
    with pytest.raises(ConfigError, match="no paired report"):
        PairedReport.from_json({"outcomes": [{}]})


def test_changes_pair_the_tasks() -> None:
    before, after = play(["heat/0"], [], TASKS), play(["heat/0"], ["heat/0", "heat/1", "heat/2"], TASKS)
    changes = compare_reports(before, after, skill=False)
    assert (changes["heat"].before, changes["heat"].after, changes["heat"].change) == (0.0, 1.0, 1.0)
    assert changes["heat"].interval.excludes(0.0)
    assert changes["cool"].change == 0.0
    assert changes["overall"].change == pytest.approx(0.6)
    assert compare_reports(before, after, skill=True)["overall"].change == 0.0
    with pytest.raises(ConfigError, match="different panels"):
        compare_reports(before, play([], [], TASKS[:3]), skill=False)


def test_the_hash_names_the_tasks_and_their_order() -> None:
    assert panel_hash(["a", "b"]) != panel_hash(["b", "a"])
    assert len(panel_hash(["a"])) == 64


def test_bad_panels_and_players_are_named() -> None:
    with pytest.raises(ConfigError, match="each task once"):
        play([], [], ["heat/0", "heat/0"])
    with pytest.raises(ConfigError, match="not empty"):
        play([], [], [])

    class Half(Player):
        def collect(self, *args: object, **kwargs: object) -> list[Result]:
            return super().collect(*args, **kwargs)[::2]  # type: ignore[arg-type]

    class Reversed(Player):
        def collect(self, *args: object, **kwargs: object) -> list[Result]:
            return super().collect(*args, **kwargs)[::-1]  # type: ignore[arg-type]

    with pytest.raises(ConfigError, match="Expected 10 episodes"):
        paired_evaluation(Half(frozenset(), frozenset(), []), TASKS, seed=0, sampling=Sampling())
    with pytest.raises(ConfigError, match="with the skill and then without"):
        paired_evaluation(Reversed(frozenset(), frozenset(), []), TASKS, seed=0, sampling=Sampling())

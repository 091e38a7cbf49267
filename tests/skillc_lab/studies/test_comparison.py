"""The arithmetic of a comparison: areas, differences, adjusted p-values, the table and the picture."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError, MissingDataError, TranscriptError
from skillc_lab.studies import (
    UNTRAINED,
    CellResult,
    ComparisonPlan,
    CurvePoint,
    TaskOutcome,
    Usage,
    area_difference,
    change,
    comparison_table,
    difference,
    draw_record,
    record,
    success,
    table,
)
from skillc_lab.studies.result import area_under_curve, by_env_steps, tokens_to_reach
from skillc_lab.studies.significance import area
from skillc_lab.studies.table import method_rows
from skillc_lab.tables import points
from trainers.config import TrainConfig


def cell(method: str, seed: int, won: list[bool], panel: str = "p", start: str = "") -> CellResult:
    outcomes = tuple(TaskOutcome(f"t{i:03d}", "kind", True, w, 1.0, float(w)) for i, w in enumerate(won))
    curve = (CurvePoint(0, 0.1, 0.9), CurvePoint(1000, sum(won) / len(won), 0.9, 10, 300, "01", "11"))
    return CellResult(start, method, seed, panel, outcomes, curve, Usage(1000, 5000, 300, 10, 0.5, 7.0))


def random_cells(method: str, rate: float, seeds: int = 4, tasks: int = 60, start: str = "") -> list[CellResult]:
    rng = np.random.default_rng(sum(map(ord, method)))
    return [cell(method, seed, [bool(x) for x in rng.random(tasks) < rate], start=start) for seed in range(seeds)]


CURVE = [CurvePoint(0, 0.0, 1.0), CurvePoint(100, 0.5, 1.0), CurvePoint(300, 0.5, 1.0), CurvePoint(400, 1.0, 1.0)]


def test_the_area_is_the_mean_height_of_the_broken_line():
    assert area_under_curve(CURVE, 400) == pytest.approx((25 + 100 + 75) / 400)
    assert area_under_curve(CURVE, 350) == pytest.approx((25 + 100 + 31.25) / 350)
    assert area_under_curve(CURVE, 800) == pytest.approx((200 + 400) / 800)
    with pytest.raises(ConfigError, match="positive budget"):
        area_under_curve(CURVE, 0)


@given(st.floats(0, 1), st.integers(1, 10_000))
def test_the_area_of_a_flat_line_is_its_height(height, budget):
    curve = [CurvePoint(0, height, 1.0), CurvePoint(1234, height, 1.0)]
    assert area_under_curve(curve, budget) == pytest.approx(height)


def test_the_first_validation_that_reaches_the_target_counts():
    assert tokens_to_reach(CURVE, 0.5) == 100
    assert tokens_to_reach(CURVE, 1.1) is None


def test_a_plain_gap_is_found_and_equal_methods_are_not_told_apart():
    strong, weak, same = random_cells("strong", 0.9), random_cells("weak", 0.3), random_cells("same", 0.3)
    found = difference(strong, weak)
    assert found.verdict(found.p_value) == "better"
    assert difference(weak, strong).verdict(found.p_value) == "worse"
    assert difference(weak, strong).mean == pytest.approx(-found.mean)
    level = difference(same, weak)
    assert level.verdict(level.p_value) == "no significant difference"


def test_noise_is_rarely_called_a_difference():
    rng = np.random.default_rng(0)
    false = 0
    for _ in range(200):
        a, b = ([cell(m, s, [bool(x) for x in rng.random(40) < 0.5]) for s in range(3)] for m in "ab")
        false += difference(a, b).p_value < 0.05
    assert false <= 14


def test_equal_outcomes_are_as_good_only_with_an_interval():
    one = [cell("a", 0, [True, False]), cell("a", 1, [True, False])]
    same = difference(one, [cell("b", 0, [True, False]), cell("b", 1, [True, False])])
    assert (same.mean, same.interval, same.verdict(1.0)) == (0.0, None, "no significant difference")
    many = [cell("a", s, [True] * 4000) for s in range(3)]
    near = [cell("b", s, [True] * 3990 + [False] * 10) for s in range(3)]
    assert difference(near, many).verdict(1.0) == "equivalent"


def test_both_sources_of_chance_have_an_interval_of_their_own():
    found = difference(random_cells("strong", 0.9), random_cells("weak", 0.3))
    intervals = (found.interval, found.over_seeds, found.over_tasks)
    widths = [each.high - each.low for each in intervals if each]
    assert len(widths) == 3
    assert widths[0] > 0.7 * max(widths[1:])
    alone = difference([cell("a", 0, [True, False, True])], [cell("b", 0, [False, False, True])])
    assert (alone.over_seeds, alone.over_tasks is None) == (None, False)


def test_one_seed_says_nothing_of_methods():
    strong, weak = random_cells("strong", 0.9), random_cells("weak", 0.3)
    alone = difference(strong[:1], weak[:1])
    assert (alone.p_value < 0.05, alone.verdict(alone.p_value)) == (True, "one seed")
    (_, row) = method_rows([*weak, *strong[:1]], "weak", 1000)
    assert row.against is not None
    assert (row.against.verdict, row.against.adjusted_p, row.without.interval) == ("one seed", 1.0, None)


def test_a_method_without_all_of_the_baselines_seeds_gets_no_verdict():
    strong, weak, other = random_cells("strong", 0.9), random_cells("weak", 0.3), random_cells("other", 0.9)
    rows = {row.method: row.against for row in method_rows([*weak, *strong, *other[:-1]], "weak", 1000)}
    assert rows["strong"] is not None
    assert rows["other"] is not None
    assert (rows["strong"].verdict, rows["other"].verdict) == ("better", "fewer seeds")
    assert rows["other"].adjusted_p == 1.0
    assert rows["strong"].adjusted_p == rows["strong"].difference.p_value  # of one method


def test_seeds_that_agree_by_luck_leave_the_noise_of_episodes():
    halves = [[True] * 20 + [False] * 20, [False] * 20 + [True] * 20, [True, False] * 20]
    level = success([cell("a", seed, won) for seed, won in enumerate(halves)], skill=False)
    assert level.mean == 0.5
    assert level.interval is not None
    assert level.interval.high - level.interval.low > 0.3


def test_good_replies_and_commands_stand_in_the_table_where_they_were_counted():
    actions = {"with": {"well_formed": 1.0, "admissible": 1.0}, "without": {"well_formed": 0.5, "admissible": 0.25}}
    counted = [replace(cell("a", seed, [True, False]), actions=actions) for seed in range(2)]
    assert CellResult.from_json(json.loads(json.dumps(counted[0].to_json()))) == counted[0]
    table = comparison_table(method_rows([*counted, cell("b", 0, [True, False])], "a", 1000)).markdown()
    assert "| well-formed, without | admissible, without |" in table
    assert "| 50.0 | 25.0 |" in table
    assert "well-formed" not in comparison_table(method_rows([cell("a", 0, [True])], "a", 1000)).markdown()


def test_areas_are_compared_task_by_task():
    def run(method: str, seed: int, won: str) -> CellResult:
        rate = won.count("1") / len(won)
        curve = (CurvePoint(0, 0.0, 1.0, 0, 0, "0" * len(won), ""), CurvePoint(1000, rate, 1.0, 9, 90, won, ""))
        return replace(cell(method, seed, [True]), curve=curve)

    first = [run("a", seed, "1111") for seed in range(2)]
    second = [run("b", seed, "1110") for seed in range(2)]
    found = area_difference(first, second, 1000)
    assert found.mean == pytest.approx(area(first, 1000).mean - area(second, 1000).mean) == pytest.approx(1 / 8)
    assert found.over_tasks is not None
    without_tasks = [replace(each, curve=tuple(replace(p, won_without="") for p in each.curve)) for each in first]
    assert area(without_tasks, 1000).mean == pytest.approx(area(first, 1000).mean)
    assert area_difference(without_tasks, second, 1000).mean == pytest.approx(found.mean)


def test_equivalence_is_tested_on_both_sides_and_adjusted_over_methods():
    base = [cell("base", s, [True] * 4000) for s in range(3)]
    near = [cell("near", s, [True] * 3900 + [False] * 100) for s in range(3)]
    found = difference(near, base)
    assert found.equivalence_p(0.05) < 0.05 < found.equivalence_p(0.02)
    assert found.verdict(1.0) == "equivalent"
    assert found.verdict(1.0, 0.2) == "no significant difference"


def test_a_seed_that_never_reaches_the_target_counts_in_the_median():
    slow, never = random_cells("slow", 1.0, 3), random_cells("never", 0.0, 3)
    curves = [
        replace(each, curve=(CurvePoint(0, 0.0, 1.0), CurvePoint(at, 0.7, 1.0)))
        for each, at in zip(slow, (100, 300, 1), strict=True)
    ]
    (row,) = method_rows([*curves[:2], replace(never[2], method="slow")], "slow", 1000)
    assert row.tokens_to_target == 300
    (row,) = method_rows(never, "never", 1000)
    assert row.tokens_to_target is None


def test_training_is_compared_with_its_start_in_both_conditions():
    before = cell(UNTRAINED, 0, [False] * 40)
    after = [cell("a", seed, [True] * 30 + [False] * 10) for seed in range(3)]
    assert change(after, before, skill=False).mean == pytest.approx(0.75)
    kept = change(after, before, skill=True)
    assert (kept.mean, kept.interval) == (0.0, None)


def test_areas_over_environment_steps_take_their_place():
    curve = [CurvePoint(0, 0.0, 1.0), CurvePoint(100, 1.0, 1.0, 1, 50)]
    assert [point.tokens for point in by_env_steps(curve)] == [0, 50]
    assert area_under_curve(by_env_steps(curve), 100) == pytest.approx(0.75)


def test_only_common_seeds_on_one_panel_are_compared():
    with pytest.raises(ConfigError, match="none in common"):
        difference([cell("a", 0, [True])], [cell("b", 1, [True])])
    with pytest.raises(ConfigError, match="one panel"):
        difference([cell("a", 0, [True])], [cell("b", 0, [True], panel="q")])


def test_the_table_has_a_row_per_method():
    cells = [*random_cells("grpo", 0.3), *random_cells("strong", 0.9)]
    before = cell(UNTRAINED, 0, [False] * 60)
    rows = method_rows(cells, "grpo", 1000, before)
    lines = comparison_table(rows, before).markdown().splitlines()
    assert len(lines) == 5
    assert lines[2].startswith("| (starting point) |")
    assert "(baseline)" in lines[3]
    assert ": better" in lines[4]
    json.dumps([row.to_json() for row in rows])
    with pytest.raises(ConfigError, match="'ppo' has no cells"):
        method_rows(cells, "ppo", 1000)


def test_what_acted_stands_beside_the_score_where_a_method_has_such_a_part():
    plain = random_cells("grpo", 0.3)
    acted = {"bank_uses": 10, "withdraws": True, "withdrawn_at": None, "teacher_part": None}
    own = [
        replace(each, acted={**acted, "withdrawn_at": 7 if each.seed else None}) for each in random_cells("mem", 0.5)
    ]
    rows = method_rows([*plain, *own], "grpo", 1000)
    heads, _, base, row = (line.split(" | ") for line in comparison_table(rows).markdown().splitlines())
    assert [head.strip(" |") for head in heads[-2:]] == ["bank uses", "skill withdrawn at update"]
    assert (row[-2], row[-1].strip(" |"), base[-1].strip(" |")) == ("10", "never, 7, 7, 7", "")
    assert rows[1].to_json()["bank_uses"] == [10, 10, 10, 10]
    assert "bank uses" not in comparison_table(method_rows(plain, "grpo", 1000)).markdown(), "an older record"


def test_intervals_end_where_rates_do():
    half = [cell("a", seed, [True] * 40 if seed else [False] * 40) for seed in range(3)]
    for found in (success(half, skill=False), area(half, 1000)):
        assert found.interval is not None
        assert 0 <= found.interval.low < found.interval.high <= 1
    lead = difference(half, [cell("b", seed, [False] * 40) for seed in range(3)]).interval
    assert lead is not None
    assert (lead.high, points(0.6, (-1.3, 1.4))) == (1.0, "+60.0 [-100, +100]")


def test_a_new_column_is_one_entry(monkeypatch):
    """It stands in Markdown, in HTML, in the starting point's row and in the record."""
    new = table.Column(
        "updates",
        lambda row: f"{row.mean(lambda cell: cell.usage.updates):.0f} of <many>",
        lambda row: {"updates": row.mean(lambda cell: cell.usage.updates)},
        lambda before: "none",
    )
    monkeypatch.setattr(table, "COLUMNS", (*table.COLUMNS[:3], new, *table.COLUMNS[3:]))
    rows = method_rows(random_cells("grpo", 0.3), "grpo", 1000)
    made = comparison_table(rows, cell(UNTRAINED, 0, [False] * 60))
    heads, _, start, row = (line.split(" | ") for line in made.markdown().splitlines())
    assert (heads[3], start[3], row[3]) == ("updates", "none", "10 of <many>")
    assert len(heads) == len(start) == len(row) == 15
    assert "<th>updates</th>" in made.html()
    assert "<td>10 of &lt;many&gt;</td>" in made.html()
    assert rows[0].to_json()["updates"] == 10


def test_a_table_is_drawn_from_its_record_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "provenance", lambda: {"git": None})
    results = [cell(UNTRAINED, 0, [False] * 60, start=start) for start in ("easy", "hard")]
    for start in ("easy", "hard"):
        results += [each for method in ("grpo", "ppo") for each in random_cells(method, 0.5, start=start)]
    config = TrainConfig(model="shipped", budget_tokens=1000)
    plan = ComparisonPlan(
        config, ("grpo", "ppo"), (0, 1, 2, 3), tmp_path, "test", None, {"easy": "x", "hard": "y"}, title="own"
    )
    draw_record(record.write_comparison(plan, results), tmp_path)
    pictures = ["own-easy.png", "own-hard.png", "own-map.png", "own-curves.png"]
    assert {path.name for path in tmp_path.iterdir()} == {*pictures, "own.json", "table.md"}
    read = record.read_record(tmp_path / "own.json")
    assert list(read.results) == results
    text = (tmp_path / "table.md").read_text()
    for name in [*pictures, "table.md"]:
        (tmp_path / name).unlink()
    assert [path.name for path in draw_record(read, tmp_path)] == ["table.md", *pictures]
    assert (tmp_path / "table.md").read_text() == text
    (tmp_path / "own.json").write_text("[]")
    with pytest.raises(TranscriptError, match="no record"):
        record.read_record(tmp_path / "own.json")
    with pytest.raises(MissingDataError, match="without --draw"):
        record.read_record(tmp_path / "none.json")


def test_a_cell_comes_back_from_json():
    own = cell("a", 0, [True, False])
    scored = replace(own, outcomes=(replace(own.outcomes[0], score_with=0.5), own.outcomes[1]))
    assert CellResult.from_json(json.loads(json.dumps(scored.to_json()))) == scored
    assert CellResult.from_json(json.loads(json.dumps(own.to_json()))) == own
    with pytest.raises(TranscriptError):
        CellResult.from_json({"method": "a"})

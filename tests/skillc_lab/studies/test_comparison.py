"""The arithmetic of a comparison: areas, differences, adjusted p-values, the table, the pictures, and regimes."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError, TranscriptError
from skillc_lab import studies
from skillc_lab.studies import UNTRAINED, CellResult, ComparisonRecord, CurvePoint, difference
from skillc_lab.studies.result import area_under_curve, by_env_steps
from skillc_lab.studies.significance import area
from skillc_lab.studies.table import method_rows
from skillc_lab.tables import points
from tests.skillc_lab.studies_of import TEXT, cell_of, plan_of


def cell(method: str, seed: int, won: list[bool]) -> CellResult:
    return cell_of(("", method, seed), won)


def random_cells(method: str, rate: float) -> list[CellResult]:
    rng = np.random.default_rng(sum(map(ord, method)))
    return [cell(method, seed, [bool(x) for x in rng.random(60) < rate]) for seed in range(4)]


CURVE = [CurvePoint(0, 0.0, 1.0), CurvePoint(100, 0.5, 1.0), CurvePoint(300, 0.5, 1.0), CurvePoint(400, 1.0, 1.0)]
START = cell(UNTRAINED, 0, [False] * 60)
STRONG, WEAK, SAME = random_cells("strong", 0.9), random_cells("weak", 0.3), random_cells("same", 0.3)


@pytest.mark.parametrize(
    ("budget", "area"),
    [(400, (25 + 100 + 75) / 400), (350, (25 + 100 + 31.25) / 350), (800, (200 + 400) / 800)],
)
def test_the_area_is_the_mean_height_of_the_broken_line(budget, area):
    assert area_under_curve(CURVE, budget) == pytest.approx(area)


@given(st.floats(0, 1), st.integers(1, 10_000))
def test_the_area_of_a_flat_line_is_its_height(height, budget):
    curve = [CurvePoint(0, height, 1.0), CurvePoint(1234, height, 1.0)]
    assert area_under_curve(curve, budget) == pytest.approx(height)
    with pytest.raises(ConfigError, match="positive budget"):
        area_under_curve(curve, 0)


def test_areas_over_environment_steps_take_their_place():
    curve = [CurvePoint(0, 0.0, 1.0), CurvePoint(100, 1.0, 1.0, 1, 50)]
    assert area_under_curve(by_env_steps(curve), 100) == pytest.approx(0.75)


def test_areas_are_compared_task_by_task():
    first, second = ([cell(m, s, [True] * 3 + [m == "a"]) for s in range(2)] for m in "ab")
    found = studies.area_difference(first, second, 100)
    assert found.mean == pytest.approx(area(first, 100).mean - area(second, 100).mean) == pytest.approx(1 / 8)
    assert found.over_tasks is not None
    without_tasks = [replace(each, curve=tuple(replace(p, won_without="") for p in each.curve)) for each in first]
    assert area(without_tasks, 100).mean == pytest.approx(area(first, 100).mean)
    assert studies.area_difference(without_tasks, second, 100).mean == pytest.approx(found.mean)


def test_a_seed_that_never_reaches_the_target_counts_in_the_median():
    def tokens(*reached: int | None) -> int | None:
        curves = [(CurvePoint(0, 0.0, 1.0), CurvePoint(at or 1, 0.7 if at else 0.0, 1.0)) for at in reached]
        cells = [replace(cell("slow", seed, [True]), curve=curve) for seed, curve in enumerate(curves)]
        return method_rows(cells, "slow", 1000)[0].tokens_to_target

    assert (tokens(100, 300, None), tokens(None, None, 100)) == (300, None)


def test_a_plain_gap_is_found_and_equal_methods_are_not_told_apart():
    found, turned, level = difference(STRONG, WEAK), difference(WEAK, STRONG), difference(SAME, WEAK)
    assert turned.mean == pytest.approx(-found.mean)
    verdicts = [each.verdict(each.p_value) for each in (found, turned, level)]
    assert verdicts == ["better", "worse", "no significant difference"]


def test_noise_is_rarely_called_a_difference():
    rng = np.random.default_rng(0)
    false = 0
    for _ in range(200):
        a, b = ([cell(m, s, [bool(x) for x in rng.random(40) < 0.5]) for s in range(3)] for m in "ab")
        false += difference(a, b).p_value < 0.05
    assert false <= 14


def test_equivalence_needs_enough_episodes_is_tested_on_both_sides_and_adjusted_over_methods():
    def ended(method: str, tasks: int, lost: int) -> list[CellResult]:
        return [cell(method, seed, [i >= lost for i in range(tasks)]) for seed in range(3)]

    few = difference(ended("a", 2, 1), ended("b", 2, 1))
    assert (few.mean, few.verdict(1.0)) == (0.0, "no significant difference")
    found = difference(ended("a", 4000, 100), ended("b", 4000, 0))
    assert found.equivalence_p(0.05) < 0.05 < found.equivalence_p(0.02)
    assert (found.verdict(1.0), found.verdict(1.0, 0.2)) == ("equivalent", "no significant difference")


def test_one_seed_or_fewer_than_the_baseline_has_get_no_verdict():
    alone = difference(STRONG[:1], WEAK[:1])
    assert (alone.p_value < 0.05, alone.verdict(alone.p_value)) == (True, "one seed")
    assert (alone.over_seeds, alone.over_tasks is None) == (None, False)
    few = [replace(each, method="few") for each in STRONG[:-1]]
    one = [replace(each, method="one") for each in STRONG[:1]]
    rows = {row.method: row for row in method_rows([*WEAK, *STRONG, *few, *one], "weak", 100)}
    against = {name: row.against for name, row in rows.items() if row.against}
    assert [found.verdict for found in against.values()] == ["better", "fewer seeds", "one seed"]
    assert against["few"].adjusted_p == against["one"].adjusted_p == 1.0
    assert against["strong"].adjusted_p == against["strong"].difference.p_value, "Holm's step over one method"
    assert rows["one"].without.interval is None


def test_training_is_compared_with_its_start_in_both_conditions():
    after = [cell("a", seed, [True] * 45 + [False] * 15) for seed in range(3)]
    assert studies.change(after, START, skill=False).mean == pytest.approx(0.75)
    kept = studies.change(after, START, skill=True)
    assert (kept.mean, kept.verdict(1.0)) == (0.0, "equivalent")


def test_only_common_seeds_on_one_panel_are_compared():
    with pytest.raises(ConfigError, match="none in common"):
        difference([cell("a", 0, [True])], [cell("b", 1, [True])])
    with pytest.raises(ConfigError, match="one panel"):
        difference([cell("a", 0, [True])], [replace(cell("b", 0, [True]), panel_sha256="q")])


def test_intervals_end_where_rates_do():
    half = [cell("a", seed, [bool(seed)] * 40) for seed in range(3)]
    for found in (studies.success(half, skill=False), area(half, 100)):
        assert 0 <= found.interval.low < found.interval.high <= 1
    lead = difference(half, [cell("b", seed, [False] * 40) for seed in range(3)]).interval
    assert (lead.high, points(0.6, (-1.3, 1.4))) == (1.0, "+60.0 [-100, +100]")


def lines(rows, before: CellResult | None = None) -> list[list[str]]:
    return [line.strip("| ").split(" | ") for line in studies.comparison_table(rows, before).markdown().splitlines()]


def test_the_table_has_a_row_per_method():
    _, _, start, weak, strong = lines(method_rows([*WEAK, *STRONG], "weak", 100, START), START)
    assert (start[0], weak[0], strong[0]) == ("(starting point)", "weak", "strong")
    assert "(baseline)" in weak
    assert any(": better" in cell for cell in strong)
    with pytest.raises(ConfigError, match="'ppo' has no cells"):
        method_rows(WEAK, "ppo", 100)


def test_what_was_counted_stands_beside_the_score():
    """Good replies and commands, and what a method's own parts did; older records have neither."""
    actions = {"without": {"well_formed": 0.5, "admissible": 0.25}}
    acted = {"bank_uses": 10, "withdraws": True, "withdrawn_at": None, "teacher_part": None}
    own = [replace(each, actions=actions, acted={**acted, "withdrawn_at": 7 if each.seed else None}) for each in STRONG]
    rows = method_rows([*WEAK, *own], "weak", 100)
    heads, _, base, row = lines(rows)
    assert heads[-4:] == ["well-formed, without", "admissible, without", "bank uses", "skill withdrawn at update"]
    assert row[-4:] == ["50.0", "25.0", "10", "never, 7, 7, 7"]
    own[0] = replace(own[0], acted={**own[0].acted, "withdrawn_types": {"heat": 3}})
    assert lines(method_rows([*WEAK, *own], "weak", 100))[3][-1] == "not of all types, 7, 7, 7"
    assert "10" not in base
    assert lines(method_rows(WEAK, "weak", 100))[0] == heads[:-4]


def test_a_cell_comes_back_from_json():
    own = cell("a", 0, [True, False])
    scored = replace(own, outcomes=(replace(own.outcomes[0], score_with=0.5), own.outcomes[1]), actions={"with": {}})
    assert CellResult.from_json({**own.to_json(), "skills": {"entries": 1}}) == own, "an older cell"
    for each in (own, scored):
        assert CellResult.from_json(json.loads(json.dumps(each.to_json()))) == each
    with pytest.raises(TranscriptError):
        CellResult.from_json({"method": "a"})


# Several studies side by side -----------------------------------------------------------------------------------------

REGIMES = TEXT.replace("shipped", "shipped, hard: shipped-hard").replace("ppo", "ppo, skillc, skill0")
WON = {"grpo": 16, "ppo": 16, "skillc": 36, "skill0": 4, UNTRAINED: 2}


@pytest.fixture
def several(tmp_path):
    """Four methods from the easy start, with one of them in one seed; three from the hard one."""
    places = [(start, UNTRAINED, 0) for start in ("easy", "hard")]
    places += [("easy", m, s) for m in ("grpo", "ppo", "skillc") for s in range(3)] + [("easy", "skill0", 0)]
    places += [("hard", m, s) for m in ("grpo", "skillc", "skill0") for s in range(3)]
    results = [cell_of(place, [(i + place[2]) % 40 < WON[place[1]] for i in range(40)]) for place in places]
    return studies.write_comparison(plan_of(tmp_path, REGIMES), results)


def test_every_starting_point_is_a_regime(several):
    easy, hard = studies.regimes_of([several])
    assert (easy.name, easy.seeds, hard.seeds) == ("alfworld, easy start", "1 to 3 seeds", "3 seeds")
    assert hard.row("ppo") is None
    verdicts = {row.method: row.against.verdict for row in easy.rows if row.against}
    assert (verdicts["skillc"], verdicts["skill0"]) == ("better", "one seed")
    with pytest.raises(ConfigError, match="no record has a cell"):
        studies.regimes_of([ComparisonRecord("empty", several.protocol, [])])
    other = ComparisonRecord("other", {**several.protocol, "methods": ["ppo"]}, several.results)
    with pytest.raises(ConfigError, match="grpo, ppo"):
        studies.regimes_of([several, other])

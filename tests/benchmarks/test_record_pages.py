"""What pages show of records, the pictures that are drawn from them, and tables over several studies."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jinja2
import pytest

from benchmarks import pages
from benchmarks.across_studies import main as across_studies
from benchmarks.across_studies import visible
from benchmarks.measuring import RECORDS
from benchmarks.pages import filled_in
from benchmarks.pictures import DRAWN, parameters_of
from benchmarks.pictures import main as draw
from skillc_gym.errors import ConfigError
from skillc_lab.studies import UNTRAINED, CellResult, Changed, read_record, read_run_file, regimes_of, write_comparison
from tests.skillc_lab.studies_of import METHODS, cell, won, written
from trainers.stats import Difference


def asking(*templates: str) -> str:
    """A page whose tables are not those of the records."""
    return "".join(f"# T\n\n<!--\n{template}\n-->\nold\n<!--/-->\n" for template in templates)


def test_a_page_is_filled_in_and_what_no_record_has_is_an_error():
    page = asking('{% set found = record("parity_alfworld") %}\n| {{ found.answers|f(",") }} |', "{{ found.games }}")
    made = filled_in(page)
    games = json.loads((RECORDS / "parity_alfworld.json").read_text(encoding="utf-8"))["games"]
    assert made.count("# T\n") == 2
    assert "-->\n\n| 383,378 |\n\n<!--/-->" in made
    assert f"-->\n\n{games}\n\n<!--/-->" in made
    assert filled_in(made) == made
    with pytest.raises(jinja2.UndefinedError):
        filled_in(asking('{{ record("fuzz").nothing }}'))
    with pytest.raises(ConfigError, match="nowhere"):
        filled_in(asking('{{ record("nowhere") }}'))


def test_stale_pages_are_named_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    page = tmp_path / "page.md"
    page.write_text(asking('{{ record("parity_alfworld").answers }}'), encoding="utf-8")
    assert pages.main(["--docs", str(tmp_path)]) == 1
    assert "stale" in capsys.readouterr().out
    assert "old" in page.read_text(encoding="utf-8")
    assert pages.main(["--docs", str(tmp_path), "--write"]) == 0
    assert "383378" in page.read_text(encoding="utf-8")
    assert pages.main(["--docs", str(tmp_path)]) == 0


def test_methods_with_one_changed_option_stand_in_the_order_of_its_values(tmp_path: Path):
    methods = ("skillc", "skillc:omega=0.8", "skillc:omega=0.2", "skillc:omega=0.1,correction_mask=success", "grpo")
    (regime,) = regimes_of([read_record(written(tmp_path, methods=methods))])
    ((option, points),) = parameters_of(regime).items()
    assert (option, [value for value, _ in points]) == ("omega", [0.2, 0.4, 0.8])
    assert [row.method for _, row in points] == ["skillc:omega=0.2", "skillc", "skillc:omega=0.8"]


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_pictures_are_drawn_from_their_records(tmp_path: Path, name: str):
    pytest.importorskip("matplotlib", reason="needs the train extra")
    assert draw([name, "--out", str(tmp_path)]) == 0
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000


@pytest.mark.parametrize("path", sorted(RECORDS.glob("*.json")), ids=lambda path: path.stem)
def test_records_are_whole(path: Path):
    assert json.loads(path.read_text(encoding="utf-8"))


# Tables over several studies: the recipe's criteria, gains by type, the paper's claims, other texts -------------------


def computed(tmp_path: Path, *words: str) -> Any:
    out = tmp_path / "table.json"
    assert across_studies([*words, "--out", str(out), "--allow-changes"]) == 0
    return json.loads(out.read_text())


def test_each_other_method_is_judged_by_both_measures(tmp_path: Path):
    (regime,) = computed(tmp_path, "criteria", str(written(tmp_path)))["regimes"]
    assert (regime["record"], regime["seeds"], regime["tokens"]) == ("own", [0, 1, 2], 100)
    ends = {name: found["end"] for name, found in regime["beside"].items()}
    assert ends["grpo"]["mean"] == pytest.approx(0.6, abs=0.05)
    assert {found["verdict"] for found in ends.values()} == {"better"}
    assert max(found["adjusted_p"] / found["p_value"] for found in ends.values()) == pytest.approx(2), "Holm's step"
    assert all(found["not_lower_p"] < 0.01 for found in ends.values())
    assert regime["with_skill_change"]["mean"] == 0
    assert {found["with_skill"]["mean"] for found in regime["beside"].values()} == {0}, "all do as well with it"


def test_a_pair_that_the_study_judges_keeps_its_verdict(tmp_path: Path):
    path = written(tmp_path, methods=(*METHODS, "rloo", "gigpo", "fixed_rho"))
    own = regimes_of([read_record(path)])[0].row("contrastive_relabelling")
    (regime,) = computed(tmp_path, "criteria", str(path))["regimes"]
    for measure, of_study in (("end", own.against), ("area", own.area_against)):
        found = regime["beside"]["grpo"][measure]
        assert (found["adjusted_p"], found["verdict"]) == (of_study.adjusted_p, of_study.verdict)
    assert own.against.adjusted_p > 2 * own.against.difference.p_value, "over more methods than stand in this table"


def test_a_type_that_the_method_alone_solves_gains_and_the_others_do_not(tmp_path: Path):
    wins = {UNTRAINED: (10, 0), "grpo": (12, 1), "skillc": (12, 11)}

    def both(method: str, seed: int) -> CellResult:
        own = cell(method, seed, [each for many in wins[method] for each in won(many, 0)])
        kinds = ["pick"] * 20 + ["heat"] * 20
        typed = (replace(each, task_type=kind) for each, kind in zip(own.outcomes, kinds, strict=True))
        return replace(own, outcomes=tuple(typed))

    cells = [both(UNTRAINED, 0), *(both(method, seed) for method in ("grpo", "skillc") for seed in range(3))]
    path = written(tmp_path, cells, ("grpo", "skillc"))
    heat, pick = computed(tmp_path, "gains", str(path), "--method", "skillc")["types"]
    assert (heat["task_type"], heat["tasks"], heat["seeds"]) == ("heat", 20, 3)
    assert (heat["without_before"], heat["with_before"], heat["mean"]) == pytest.approx((0.0, 0.75, 0.5))
    assert heat["interval"][0] > 0.2
    assert (pick["without_before"], pick["mean"]) == (0.5, 0.0)


@pytest.mark.parametrize("missing", [UNTRAINED, "contrastive_relabelling"])
@pytest.mark.parametrize("table", ["criteria", "gains"])
def test_a_record_that_lacks_what_a_table_needs_is_refused(tmp_path: Path, capsys, table: str, missing: str):
    whole = [cell(UNTRAINED, 0), *(cell(method, seed) for seed in range(3) for method in METHODS)]
    path = written(tmp_path, [each for each in whole if each.method != missing])
    assert across_studies([table, str(path)]) == 2
    assert "alfworld, hard start" in capsys.readouterr().err
    assert across_studies([table, str(tmp_path / "none.json")]) == 2


def test_each_claim_has_what_the_record_says_or_that_it_says_nothing(tmp_path: Path):
    cells = [cell(method, seed) for method in ("grpo", "skillc") for seed in range(3)]
    path = written(tmp_path, [*cells, cell("fixed_rho", 0)], ("grpo", "skillc", "fixed_rho"))
    claims = computed(tmp_path, "claims", str(path))["regimes"]["alfworld, hard start"]
    found = {claim["second"]: claim["found"] for claim in claims}
    assert found["grpo"]["mean"] == pytest.approx(-1 / 12)
    assert found["skill0"] is None
    assert (found["fixed_rho"]["seeds"], found["fixed_rho"]["verdict"]) == (1, "one seed")


def test_what_is_visible_grows_with_the_error_and_needs_two_seeds():
    assert visible(Difference(0.1, 0.02, 10, 3)) == pytest.approx(0.02 * (2.228 + 0.879), abs=1e-4)
    assert visible(Difference(0.1, 0.02, 10, 1)) is None


@pytest.fixture
def replayed(tmp_path: Path) -> tuple[Path, Path]:
    """A study's record and that of its policies shown another text, by which they lose everything."""
    path = written(tmp_path, methods=("grpo",))
    wrong = Changed(library="alfworld:wrong").plan(read_run_file(tmp_path / "own.yaml", tmp_path))
    wrong.folder.mkdir()
    cells = read_record(path).results
    lost = [
        replace(each, outcomes=tuple(replace(one, won_with=False, score_with=0.0) for one in each.outcomes))
        for each in cells
    ]
    write_comparison(wrong, lost)
    return path, wrong.folder / "own_alfworld.wrong.json"


def test_each_text_has_what_came_before_and_after(tmp_path: Path, replayed: tuple[Path, Path]):
    right, wrong = computed(tmp_path, "texts", *map(str, replayed))["starts"]["hard"]
    assert (right["shown"], wrong["shown"]) == ("the skill", "alfworld:wrong")
    assert (right["before"]["mean"], wrong["before"]["mean"]) == (0.75, 0.0)
    assert set(right["after"]) == {"grpo"}
    assert right["after"]["grpo"]["without"] == wrong["after"]["grpo"]["without"]
    assert right["after"]["grpo"]["change"]["mean"] == 0


def test_records_of_other_tasks_are_refused(tmp_path: Path, replayed: tuple[Path, Path], capsys):
    values = json.loads(replayed[1].read_text())
    (values["panels"]["q"],) = values["panels"].values()
    for each in values["cells"]:
        each["panel_sha256"] = "q"
    (tmp_path / "other.json").write_text(json.dumps(values))
    assert across_studies(["texts", str(replayed[0]), str(tmp_path / "other.json")]) == 2
    assert "2 panels" in capsys.readouterr().err

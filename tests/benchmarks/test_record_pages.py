"""Records of evaluations, what pages and pictures show of records, and tables over several studies."""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import jinja2
import pytest

from benchmarks import pages
from benchmarks.across_studies import STUDIED, visible
from benchmarks.across_studies import main as across_studies
from benchmarks.evaluations import main as evaluations
from benchmarks.measuring import RECORDS
from benchmarks.pages import evaluation_tables, filled_in
from benchmarks.pictures import DRAWN, parameters_of
from benchmarks.pictures import main as draw
from skillc_gym.errors import ConfigError
from skillc_lab.studies import (
    UNTRAINED,
    CellResult,
    Changed,
    read_record,
    read_run_file,
    regimes_of,
    with_method,
    write_comparison,
)
from tests.skillc_lab.report.synthetic_run import report, write_run
from tests.skillc_lab.studies_of import METHODS, cell, won, written
from trainers.config import TrainConfig
from trainers.evaluation import ArmOutcome, PairedOutcome, PairedReport
from trainers.stats import Difference
from trainers.tracking import weights_sha256


def table_of(command: Callable[[list[str]], int], tmp_path: Path, *words: str | Path) -> Any:
    """What a command writes."""
    out = tmp_path / "table.json"
    assert command([*map(str, words), "--out", str(out), "--allow-changes"]) == 0
    return json.loads(out.read_text())


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., None]:
    """A command refuses its words, and says why."""

    def check(said: str, command: Callable[[list[str]], int], *words: str | Path) -> None:
        assert command([*map(str, words)]) == 2
        assert said in capsys.readouterr().err

    return check


# Evaluations and courses ---------------------------------------------------------------------------------------------

GIT = {"revision": "a" * 40, "changed": False}
HEAT = "pick_heat_then_place_in_recep"


def write(path: Path, values: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values))


def evaluation(folder: Path, steps: list[int], **git: Any) -> Path:
    """An evaluation in which every task is won with the skill, in so many steps, and none without."""
    lost = ArmOutcome(won=False, score=0.0, steps=50, cut="steps")
    wins = [ArmOutcome(won=True, score=1.0, steps=taken) for taken in steps]
    outcomes = tuple(PairedOutcome(f"task-{number}", HEAT, arm, lost) for number, arm in enumerate(wins))
    config = TrainConfig(model=str(folder), env="alfworld", split="valid_unseen", max_episode_steps=50)
    write(folder / "report.json", PairedReport(outcomes, 0, {}).to_json())
    write(folder / "config.json", config.to_json())
    write(folder / "versions.json", {"git": {**GIT, **git}})
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def test_policies_are_told_by_step_limit_and_type(tmp_path: Path, refused, monkeypatch: pytest.MonkeyPatch):
    folder = evaluation(tmp_path / "a", [5, 20, 21, 40])
    write(folder / "evaluation.json", {"weights_sha256": "0" * 64})
    refused("evaluates other weights", evaluations, "policies", folder)
    write(folder / "evaluation.json", {"weights_sha256": weights_sha256(folder)})
    record = table_of(evaluations, tmp_path, "policies", folder)
    (found,) = record["evaluations"]
    assert [outcome["steps_with"] for outcome in found["report"]["outcomes"]] == [5, 20, 21, 40]
    assert len(found["weights_sha256"]) == 64
    monkeypatch.setattr("benchmarks.pages.record", lambda name: record)
    by_limit, by_type = (
        next(line for line in table.splitlines() if line.startswith("| a |")).split("|")
        for table in evaluation_tables("x").split("\n\n")
    )
    assert [cell.split()[0] for cell in by_limit[5:11]] == ["50.0", "75.0", "100.0", "0.0", "0.0", "0.0"]
    assert [cell.strip() for cell in by_type[3:-1]] == ["", "", "", "100 / 0", "", ""]


def test_agents_are_kept_with_their_tries(tmp_path: Path):
    folder = evaluation(tmp_path / "a", [5])
    write(folder / "trials.json", {"trials": 2})
    (found,) = table_of(evaluations, tmp_path, "agents", folder)["evaluations"]
    assert (found["env"], found["trials"], found["agent"]) == ("alfworld", {"trials": 2}, None)


@pytest.mark.parametrize("other", [{"changed": True}, {"revision": "b" * 40}])
def test_evaluations_of_several_revisions_or_with_changes_and_none_are_refused(tmp_path: Path, refused, other):
    folders = [evaluation(tmp_path / "a", [5]), evaluation(tmp_path / "b", [5], **other)]
    refused("revision", evaluations, "policies", *folders)
    refused("of an evaluation", evaluations, "agents", tmp_path)


def course(folder: Path, seed: int, method: str = "skillc") -> Path:
    card = {"parameters": 1000, "loss_held_out": [1.5, 0.25], "demonstrator_success": {}, "recipe": {"episodes": 12}}
    card["weights_sha256"] = "as its card says"
    write(folder / "start" / "policy_card.json", {**card, "versions": {"git": {**GIT, "revision": "b" * 40}}})
    (folder / "start" / "model.safetensors").write_bytes(b"weights")
    write_run(folder / "run", method, steps=12, seed=seed)
    for part, step, drawn in (("before", 0, 0), ("after", 180, seed)):
        write(folder / part / "report.json", report(step, seed=drawn).to_json())
    for part in ("before", "run", "after"):
        write(folder / part / "versions.json", {"git": GIT})
    return folder


def test_courses_hold_their_start_and_what_a_method_changed_over_seeds(tmp_path: Path, refused):
    folders = [course(tmp_path / str(seed), seed) for seed in (1, 2)]
    others = [course(tmp_path / name, 2, "grpo") for name in ("grpo-seed2", "grpo@1e-4-seed2")]
    record = table_of(evaluations, tmp_path, "courses", *folders, *others)
    before, *after = (report(step, seed) for step, seed in ((0, 0), (180, 1), (180, 2)))
    assert list(record["methods"]) == ["skillc", "grpo", "grpo@1e-4"]
    found, other, _ = record["methods"].values()
    gains = [each.overall.sr_without - before.overall.sr_without for each in after]
    assert found["change"]["without"]["mean"] == pytest.approx(sum(gains) / 2)
    assert found["change"]["without"]["interval"][0] > 0
    assert found["against_first"]["with"]["mean"] == 0.0
    assert [PairedReport.from_json(run["after"]) for run in found["runs"]] == after
    assert other["against_first"]["without"]["mean"] == 0.0  # seed 2 beside seed 2, where both came to the same
    assert [len(run["updates"]) for run in found["runs"]] == [12, 12]
    assert record["start"]["sha256"] == hashlib.sha256(b"weights").hexdigest()
    assert record["versions"]["git"] == {"revisions": ["a" * 40], "clean": True}
    (folders[0] / "start" / "model.safetensors").unlink()
    assert table_of(evaluations, tmp_path, "courses", folders[0])["start"]["sha256"] == "as its card says"
    (folders[0] / "after" / "report.json").unlink()
    refused("after", evaluations, "courses", folders[0])
    record = table_of(evaluations, tmp_path, "courses", folders[1], "--unevaluated", folders[0])
    assert (list(record["methods"]), record["unevaluated"]["1"]["seed"]) == (["skillc"], 1)


# Pages and pictures --------------------------------------------------------------------------------------------------


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
    unended = asking("{{ 1 }}").replace("<!--/-->", "")
    with pytest.raises(ConfigError, match=r"'\{\{ 1 \}\}' wants a line <!--/-->"):
        filled_in(unended + "\n" + asking("{{ 2 }}"))


def test_stale_pages_are_named_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    page = tmp_path / "page.md"
    page.write_text(asking('{{ record("parity_alfworld").answers }}'), encoding="utf-8")
    words = ["--docs", str(tmp_path)]
    assert pages.main(words) == 1
    assert "stale" in capsys.readouterr().out
    assert "old" in page.read_text(encoding="utf-8")
    assert (pages.main([*words, "--write"]), pages.main(words)) == (0, 0)
    assert "383378" in page.read_text(encoding="utf-8")


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


def test_records_are_whole():
    paths = sorted(RECORDS.glob("*.json"))
    assert paths
    assert [path.name for path in paths if not json.loads(path.read_text(encoding="utf-8"))] == []


def test_sections_name_revisions_of_their_records_and_what_is_only_declared_has_none():
    named = []
    for page in Path("docs/records").glob("*.md"):
        said = page.read_text(encoding="utf-8")
        for section in re.split("^## ", said, flags=re.MULTILINE):
            named += re.findall(r"revision ([0-9a-f]{6,}) without changes; record \[(\w+)\.json\]", section)
        assert [name for name in re.findall(r"it is declared \(`(\w+)\.yaml`", said) if _text_of(name)] == []
    assert len(named) > 40
    assert [(name, revision) for revision, name in named if revision not in _text_of(name)] == []


def _text_of(record: str) -> str:
    path = RECORDS / f"{record}.json"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


# Tables over several studies: the recipe's criteria, gains by type, the paper's claims, other texts -------------------


def test_each_other_method_is_judged_by_both_measures(tmp_path: Path):
    (regime,) = table_of(across_studies, tmp_path, "criteria", written(tmp_path))["regimes"]
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
    (regime,) = table_of(across_studies, tmp_path, "criteria", path)["regimes"]
    for measure, of_study in (("end", own.against), ("area", own.area_against)):
        found = regime["beside"]["grpo"][measure]
        assert (found["adjusted_p"], found["verdict"]) == (of_study.adjusted_p, of_study.verdict)
    assert own.against.adjusted_p > 2 * own.against.difference.p_value, "over more methods than stand in this table"


def lender(path: Path, change: Callable[[dict[str, Any]], object] = lambda values: None) -> Path:
    """A record like that of a path, changed, with the studied method's cells alone under another name."""
    values = json.loads(path.read_text())
    values["cells"] = [{**each, "method": "hot"} for each in values["cells"] if each["method"] == STUDIED]
    change(values)
    write(path.with_name("other.json"), values)
    return path.with_name("other.json")


def test_the_baseline_may_stand_in_another_record(tmp_path: Path):
    path = written(tmp_path)
    words = ("--beside", "grpo", "--baseline-from", lender(path), "hot")
    (found,) = table_of(across_studies, tmp_path, "criteria", path, *words)["regimes"]
    assert found["beside"]["grpo"]["end"]["mean"] == 0, "beside itself"
    regime = with_method(read_record(path), read_record(lender(path)), "hot", "grpo").regimes[0]
    assert regime.rows[0].method == "grpo", "the baseline stands first"
    assert found["beside"]["grpo"]["end"]["verdict"] == regime.row(STUDIED).against.verdict


def test_methods_of_another_record_stand_beside_those_of_a_record_under_their_own_names(tmp_path: Path):
    path = written(tmp_path)
    other = lender(path, lambda own: own["cells"].extend([{**each, "method": "hotter"} for each in own["cells"]]))
    words = ("--method", "grpo", "--beside", "hot", "hotter")
    words += ("--beside-from", other, "hot", "--beside-from", other, "hotter")
    (found,) = table_of(across_studies, tmp_path, "criteria", path, *words)["regimes"]
    assert found["beside"]["hot"]["end"]["mean"] == found["beside"]["hotter"]["end"]["mean"] != 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda values: values["protocol"]["settings"].update(budget_tokens=200), "differ in budget"),
        (lambda values: values["protocol"]["settings"].update(panel_seed=7), "validated on other tasks"),
        (lambda values: values["protocol"]["settings"].update(eval_temperature=2.0), "measured in other ways"),
        (lambda values: move_to_panel(values, "q"), "no cells of hot on the tasks"),
    ],
)
def test_records_of_another_protocol_lend_nothing(tmp_path: Path, refused, change, said):
    path = written(tmp_path)
    refused(said, across_studies, "criteria", path, "--baseline-from", lender(path, change), "hot")


def move_to_panel(values: dict[str, Any], name: str) -> None:
    """Says that a record's cells played other tasks."""
    (values["panels"][name],) = values["panels"].values()
    for each in values["cells"]:
        each["panel_sha256"] = name


def test_reading_counts_what_a_method_had_when_it_had_read_as_much_as_the_other(tmp_path: Path, refused):
    def run(method: str, seed: int, prompt_tokens: int) -> CellResult:
        own = cell(method, seed)
        return replace(own, usage=replace(own.usage, tokens_generated=100, prompt_tokens=prompt_tokens))

    cells = [cell(UNTRAINED, 0), *(run("grpo", seed, 100) for seed in range(3))]
    cells += [run("skillc", seed, 300) for seed in range(3)]
    path = written(tmp_path, cells, ("grpo", "skillc"))
    words = ("--method", "skillc", "--beside", "grpo")
    (found,) = table_of(across_studies, tmp_path, "reading", path, *words)["regimes"]
    start, end = (fmean(each.curve[place].without for each in cells[4:]) for place in (0, -1))
    assert (found["share_of_run"], found["seeds"]) == (0.5, [0, 1, 2])
    assert (found["validation_there"], found["validation_at_end"]) == pytest.approx(((start + end) / 2, end))
    theirs = fmean(each.curve[-1].without for each in cells[1:4])
    assert found["minus_others_end"]["mean"] == pytest.approx((start + end) / 2 - theirs)
    early, whole = start + (end - start) / 4, fmean(sum(p.without for p in each.curve) / 2 for each in cells[1:4])
    assert found["over_training"]["mean"] == pytest.approx(early - whole), "a straight line's mean is its middle"
    refused("Unknown method of these records 'sdar'", across_studies, "reading", path, "--method", "sdar")


def test_a_type_that_the_method_alone_solves_gains_and_the_others_do_not(tmp_path: Path, refused):
    wins = {UNTRAINED: (10, 0), "grpo": (12, 1), "skillc": (12, 11)}

    def both(method: str, seed: int) -> CellResult:
        own = cell(method, seed, [each for many in wins[method] for each in won(many, 0)])
        kinds = ["pick"] * 20 + ["heat"] * 20
        typed = (replace(each, task_type=kind) for each, kind in zip(own.outcomes, kinds, strict=True))
        return replace(own, outcomes=tuple(typed))

    cells = [both(UNTRAINED, 0), *(both(method, seed) for method in ("grpo", "skillc") for seed in range(3))]
    path = written(tmp_path, cells, ("grpo", "skillc"))
    heat, pick = table_of(across_studies, tmp_path, "gains", path, "--method", "skillc")["types"]
    assert (heat["task_type"], heat["tasks"], heat["seeds"]) == ("heat", 20, 3)
    assert (heat["without_before"], heat["with_before"], heat["mean"]) == pytest.approx((0.0, 0.75, 0.5))
    assert heat["interval"][0] > 0.2
    assert (pick["without_before"], pick["mean"]) == (0.5, 0.0)
    for types, points in ({"heat": 0.5, "pick": 0.0, "heat pick": 0.25}).items():
        words = ("--method", "skillc", "--beside", "grpo", "--types", *types.split())
        (regime,) = table_of(across_studies, tmp_path, "criteria", path, *words)["regimes"]
        assert regime["beside"]["grpo"]["end"]["mean"] == pytest.approx(points)
        assert "area" not in regime["beside"]["grpo"], "it is of training's types"
    refused("--types and --own-holm are of criteria", across_studies, "gains", path, "--types", "heat")


def test_a_declared_comparison_may_have_holm_of_its_own(tmp_path: Path):
    path = written(tmp_path)
    words = ("criteria", path, "--method", "contrastive_relabelling", "--beside", "grpo")
    (usual,), (own,) = (table_of(across_studies, tmp_path, *words, *more)["regimes"] for more in ((), ("--own-holm",)))
    first, second = usual["beside"]["grpo"]["end"], own["beside"]["grpo"]["end"]
    assert second["adjusted_p"] == second["p_value"] < first["adjusted_p"], "the study's table compares two with grpo"


@pytest.mark.parametrize("missing", [UNTRAINED, "contrastive_relabelling"])
@pytest.mark.parametrize("table", ["criteria", "gains"])
def test_a_record_that_lacks_what_a_table_needs_is_refused(tmp_path: Path, refused, table: str, missing: str):
    whole = [cell(UNTRAINED, 0), *(cell(method, seed) for seed in range(3) for method in METHODS)]
    path = written(tmp_path, [each for each in whole if each.method != missing])
    refused("alfworld, hard start", across_studies, table, path)
    refused("none.json", across_studies, table, tmp_path / "none.json")
    refused("Did you mean 'grpo'", across_studies, table, path, "--beside", "grop")


def test_each_claim_has_what_the_record_says_or_that_it_says_nothing(tmp_path: Path):
    cells = [cell(method, seed) for method in ("grpo", "skillc") for seed in range(3)]
    path = written(tmp_path, [*cells, cell("fixed_rho", 0)], ("grpo", "skillc", "fixed_rho"))
    claims = table_of(across_studies, tmp_path, "claims", path)["regimes"]["alfworld, hard start"]
    found = {claim["second"]: claim["found"] for claim in claims}
    assert found["grpo"]["mean"] == pytest.approx(-1 / 12)
    assert found["skill0"] is None
    assert (found["fixed_rho"]["seeds"], found["fixed_rho"]["verdict"]) == (1, "one seed")


def test_what_is_visible_grows_with_the_error_and_needs_two_seeds():
    assert visible(Difference(0.1, 0.02, 10, 3)) == pytest.approx(0.02 * (2.228 + 0.879), abs=1e-4)
    assert visible(Difference(0.1, 0.02, 10, 1)) is None


def test_each_text_has_what_came_before_and_after_and_records_of_other_tasks_are_refused(tmp_path: Path, refused):
    """A study, and its policies shown another text, by which they lose everything."""
    path = written(tmp_path, methods=("grpo",))
    wrong = Changed(library="alfworld:wrong").plan(read_run_file(tmp_path / "own.yaml", tmp_path))
    wrong.folder.mkdir()

    def lost(each: CellResult) -> CellResult:
        return replace(each, outcomes=tuple(replace(one, won_with=False, score_with=0.0) for one in each.outcomes))

    write_comparison(wrong, [lost(each) for each in read_record(path).results])
    replayed = wrong.folder / "own_alfworld.wrong.json"
    right, wrong = table_of(across_studies, tmp_path, "texts", path, replayed)["starts"]["hard"]
    assert (right["shown"], wrong["shown"]) == ("the skill", "alfworld:wrong")
    assert (right["before"]["mean"], wrong["before"]["mean"]) == (0.75, 0.0)
    assert set(right["after"]) == {"grpo"}
    assert right["after"]["grpo"]["without"] == wrong["after"]["grpo"]["without"]
    assert right["after"]["grpo"]["change"]["mean"] == 0
    values = json.loads(replayed.read_text())
    move_to_panel(values, "q")
    write(tmp_path / "other.json", values)
    refused("2 panels", across_studies, "texts", path, tmp_path / "other.json")

"""Skills' tests: the cases that a skill brings, hostile ones too, the verdict, and the files of results."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_library import SkillFileError
from skillc_lab.skills.effect import SkillTest
from skillc_lab.skills.evals import SkillEval, cases_of, next_iteration, read_evals, write_workspace
from skillc_lab.tables import mean_tokens
from trainers.evaluation import ArmOutcome, PairedOutcome, PairedReport


def arm(won: bool, tokens: int = 10, seconds: float | None = 2.0) -> ArmOutcome:
    return ArmOutcome(won, float(won), 3, prompt_tokens=tokens, completion_tokens=5, seconds=seconds)


def report(both: int, with_: int, without: int, neither: int, **how: Any) -> PairedReport:
    wins = [(True, True)] * both + [(True, False)] * with_ + [(False, True)] * without + [(False, False)] * neither
    outcomes = (
        PairedOutcome(f"t/{n}", ("heat", "cool")[n % 2], arm(won, 30, **how), arm(other, **how))
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
def test_the_verdict_is_of_the_whole_interval(counts, margin, verdict, decided):
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


def test_types_have_wider_intervals_and_tokens_their_means():
    test = SkillTest(report(10, 40, 0, 10), 0.05)
    heat = test.per_type["heat"]
    assert heat.interval.low < heat.counts.gap_interval.low
    assert heat.tokens == (35, 15)
    assert "pass" in test.table().splitlines()[-1]


def test_episodes_that_were_cut_at_once_count_with_no_tokens():
    played = report(2, 0, 0, 0)
    first, second = played.outcomes
    nothing = replace(first.with_skill, prompt_tokens=0, completion_tokens=0)
    assert mean_tokens([replace(first, with_skill=nothing), second], True) == 35 / 2
    assert mean_tokens([replace(first, with_skill=ArmOutcome(True, 1.0, 1))], True) is None


def test_the_files_lie_as_the_page_on_evaluation_has_them(tmp_path):
    played = report(1, 2, 0, 1)
    test = SkillTest(played, 0.05)
    write_workspace(test, cases_of(played, {}), tmp_path, {"library": "own"})
    heat = tmp_path / "eval-heat" / "with_skill"
    assert (heat / "outputs" / "transcripts.jsonl").exists()
    assert json.loads((heat / "timing.json").read_text()) == {"total_tokens": 70, "duration_ms": 4000}
    rates = {"passed": 2, "failed": 0, "total": 2, "pass_rate": 1.0}
    assert json.loads((heat / "grading.json").read_text())["summary"] == rates
    found = json.loads((tmp_path / "benchmark.json").read_text())
    assert found["run_summary"]["delta"] == {"pass_rate": 0.5, "time_seconds": 0.0, "tokens": 20.0}
    assert found["run_summary"]["with_skill"]["tokens"] == {"mean": 35.0, "stddev": 0.0}
    assert found["skill_test"]["per_type"].keys() == {"heat", "cool"}


def test_a_skills_own_cases_have_folders_of_their_own_and_keep_what_nobody_graded(tmp_path):
    played = report(1, 1, 0, 0, seconds=None)
    cases = cases_of(played, {SkillEval("heat-1", "t/0", expected_output="Hot.", assertions=("Is hot",)): ["t/0"]})
    write_workspace(SkillTest(played, 0.05), cases, tmp_path, {})
    graded = json.loads((tmp_path / "eval-heat-1" / "without_skill" / "grading.json").read_text())
    assert graded["not_graded"] == ["Is hot"]
    assert [(each["text"], each["passed"]) for each in graded["assertion_results"]] == [("t/0 is solved: Hot.", True)]
    assert json.loads((tmp_path / "eval-heat-1" / "with_skill" / "timing.json").read_text())["duration_ms"] is None
    assert not (tmp_path / "eval-cool").exists()


def test_the_next_iteration_is_the_first_without_results(tmp_path):
    (tmp_path / "iteration-1").mkdir()
    assert next_iteration(tmp_path).name == "iteration-1"
    (tmp_path / "iteration-1" / "benchmark.json").touch()
    assert next_iteration(tmp_path).name == "iteration-2"


# Cases that a skill brings --------------------------------------------------------------------------------------------

ONE = {"id": 1, "prompt": "Heat an egg.", "expected_output": "A hot egg.", "task_type": "heat", "assertions": ["Hot"]}


def written(folder: Path, content: str) -> Path:
    (folder / "evals").mkdir(parents=True)
    (folder / "evals" / "evals.json").write_text(content)
    return folder


def test_the_evals_of_a_skill_and_of_a_library_are_read(tmp_path):
    values = {"skill_name": "heat", "evals": [ONE, {"id": "b", "task_id": "test/1", "files": []}]}
    skill = written(tmp_path / "heat", json.dumps(values))
    expected = [SkillEval("heat-1", "", "heat", "A hot egg.", ("Hot",)), SkillEval("heat-b", "test/1")]
    assert read_evals(skill) == read_evals(tmp_path) == expected
    assert read_evals(tmp_path / "nowhere") == []


def test_cases_that_would_share_a_folder_are_refused(tmp_path):
    for skill, number in (("heat", "1-2"), ("heat-1", "2")):
        written(tmp_path / skill, evals(id=number))
    written(tmp_path / "twice", json.dumps({"evals": [ONE, ONE]}))
    for folder, name in ((tmp_path, "heat-1-2"), (tmp_path / "twice", "twice-1")):
        with pytest.raises(SkillFileError, match=f"two test cases would lie in the folder eval-{name}"):
            read_evals(folder)


def evals(**changes: Any) -> str:
    return json.dumps({"evals": [{**ONE, **changes}]})


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", "JSON|Expecting"),
        ("[" * 100_000, "nested too deep"),
        ("{}", 'list under "evals", got NoneType'),
        (json.dumps({"evals": [ONE] * 1_001}), "at most 1,000"),
        (evals(id="../../etc"), "letters, digits"),
        (evals(task_type=["heat"]), "task_type is a text; got list"),
        (evals(task_type=""), "--per-type 8"),
        (" " * 300_000, "longer than"),
    ],
)
def test_evals_that_are_none_are_refused_by_file(tmp_path: Path, content: str, fault: str) -> None:
    folder = written(tmp_path / "heat", content)
    with pytest.raises(SkillFileError, match=fault) as caught:
        read_evals(folder)
    assert str(folder / "evals" / "evals.json") in str(caught.value)


def test_links_are_not_followed_out_of_the_folder(tmp_path):
    secret = written(tmp_path / "secret", evals())
    for target in (secret / "evals" / "evals.json", tmp_path / "nowhere"):
        folder = tmp_path / f"to-{target.name}" / "heat"
        (folder / "evals").mkdir(parents=True)
        (folder / "evals" / "evals.json").symlink_to(target)
        with pytest.raises(SkillFileError, match="leads out of"):
            read_evals(folder)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*ONE, "evals", "task_id"]) | st.text(), inner),
)


@given(values=st.fixed_dictionaries({"evals": JSON}))
def test_whatever_a_file_holds_is_read_or_refused(values: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = written(tmp_path_factory.mktemp("evals") / "heat", json.dumps(values))
    try:
        found = read_evals(folder)
    except SkillFileError:
        return
    assert all(bool(each.task_id) != bool(each.task_type) for each in found)

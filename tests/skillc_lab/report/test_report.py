"""Figures and page of a run, from a simulated learner's records."""

import json
import os
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from synthetic_run import episode, metrics, report, write_run

from skillc_gym.episodes import write_jsonl
from skillc_gym.errors import ConfigError, MissingDataError
from skillc_lab.report import RunRecords, make_report, method_styles, plots, replay_page, tables
from skillc_lab.report.examples import choose_tasks, examples
from skillc_lab.report.records import Series, moving_mean, read_run
from skillc_lab.report.style import canvas
from trainers.config import TrainConfig
from trainers.evaluation import ArmOutcome, PairedOutcome, PairedReport
from trainers.tracking import write_json

imread = pytest.importorskip("matplotlib.image", reason="needs the extra 'report'").imread
Figure = pytest.importorskip("matplotlib.figure").Figure
PNG = b"\x89PNG\r\n\x1a\n"


class Outline(HTMLParser):
    """Checks that tags close, and collects what the page refers to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.open, self.sources, self.text = [], [], ""
        self.feed(page.read_text(encoding="utf-8"))
        assert self.open == []

    def handle_starttag(self, tag, attrs) -> None:
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.text += data


def text_of(*places, **asked) -> str:
    return Outline(make_report(*places, **asked).page).text


def evaluate(folder: Path, step: int) -> PairedReport:
    paired = report(step, seed=1)
    paired.save(folder / "report.json")
    write_jsonl(folder / "transcripts.jsonl", paired.episodes)
    return paired


def rates_of(*reports: PairedReport) -> str:
    """Success without the skill as pages have it."""
    return " → ".join(f"{100 * each.overall.sr_without:.1f}" for each in reports)


def test_a_full_report(tmp_path):
    run = write_run(tmp_path / "run", steps=60, data="generated")
    ends = rates_of(evaluate(run / "before", 0), evaluate(run / "after", 60))
    assert "in ALFWorld, generated tasks" in text_of(run, out=tmp_path / "untitled")
    made = make_report(run, title="A <run> & its report")
    by_step = {"overview", "success", "success_by_type", "gap", "gate", "active", "rollout_fraction", "advantages"}
    assert set(made.figures) == {*by_step, "before_after"}
    assert all(path.read_bytes().startswith(PNG) for path in made.figures.values())
    page = Outline(made.page)
    assert page.sources
    assert all(source.startswith("data:image/png;base64,") for source in page.sources)
    said = ["A <run> & its report", "cards and tables are of held-out tasks", f"{ends} %"]
    said += ["see a <b>bread 1</b>", "pick", "look", "clean", "heat", "cool", "pick2", "cut by the budget"]
    assert [words for words in said if words not in page.text] == []


def test_runs_are_compared_on_one_page(tmp_path):
    first, second = write_run(tmp_path / "a", "skillc", steps=20), write_run(tmp_path / "b", "grpo", steps=20)
    for folder in (first, second):
        start = evaluate(folder / "before", 0)
    trained = [evaluate(folder / "after", steps) for folder, steps in ((first, 180), (second, 60))]
    acted = {"bank_uses": 10**400, "relabelled_updates": 0.5, "withdrawn_at": None, "entries_added": "<b>"}
    write_json(first / "what_acted.json", acted)
    made = make_report(first, versus=[second])
    page = Outline(made.page).text
    assert "what its own parts didSkillCGRPOupdates with rows of its own, %50skill withdrawn at updatenever" in page
    assert "bank uses" not in page
    assert made.figures["beside"].read_bytes().startswith(PNG)
    assert "SkillC beside GRPO in " in page
    ends = [rates_of(each) for each in trained]
    assert "to {} % after SkillC and to {} % after GRPO".format(*ends) in page
    assert page.count("SkillC minus GRPO") == 1
    for paired in (trained[0], start):
        shares = paired.actions()["without"]
        assert f"{100 * shares['well_formed']:.0f} / {100 * shares['admissible']:.0f}" in page
    assert page.index("before training") < page.index("SkillC minus GRPO")
    (second / "after" / "report.json").unlink()
    assert "minus" not in tables.versus_table([read_run(first), read_run(second)]).html()


def test_runs_of_one_method_are_told_apart_and_what_differs_is_said(tmp_path):
    near, far = (write_run(tmp_path / name, "grpo", steps=20, seed=seed) for seed, name in enumerate(("near", "far")))
    assert "The same in all runs: environment, number of updates. Not the same: seed." in text_of(near, versus=[far])
    for folder in (near, far):
        evaluate(folder / "after", 20)
    page = text_of(near, versus=[far])
    assert "GRPO.1-near beside GRPO.2-far in ALFWorld" in page
    assert "GRPO.1-near minus GRPO.2-far" in page
    assert "The same in all runs: environment, tasks, number of updates. Not the same: seed." in page
    one, two = method_styles(["grpo.1-near", "grpo.2-far"]).values()
    assert (one.colour, one.linestyle != two.linestyle) == (two.colour, True)


def test_evaluations_of_other_tasks_are_refused_before_anything_is_drawn(tmp_path):
    paired = evaluate(tmp_path / "all", 0)
    few = replace(paired, outcomes=paired.outcomes[:20], episodes=())
    few.save(tmp_path / "few" / "report.json")
    first, second = (write_run(tmp_path / name, steps=3) for name in ("one", "two"))
    evaluate(first / "after", 0)
    few.save(second / "after" / "report.json")
    for place, asked in (
        (tmp_path / "all", {"before": tmp_path / "few", "after": tmp_path / "all"}),
        (first, {"versus": [second]}),
    ):
        with pytest.raises(ConfigError, match="different panels"):
            make_report(place, **asked)
    assert not list(tmp_path.glob("*/report"))


def test_a_run_without_evaluations_or_skills_has_a_report_elsewhere(tmp_path):
    made = make_report(write_run(tmp_path / "run", "grpo", steps=20), out=tmp_path / "elsewhere")
    assert made.page == tmp_path / "elsewhere" / "index.html"
    assert "before_after" not in made.figures
    text = Outline(made.page).text
    assert "no evaluation before and after" in text
    assert "No training rollout sees the skill" in text
    assert "retire" not in text


def test_a_report_writes_over_nobodys_pictures(tmp_path):
    run, out = write_run(tmp_path / "run", steps=5), tmp_path / "mine"
    out.mkdir()
    (out / "success.png").write_text("mine")
    with pytest.raises(ConfigError, match="holds something else"):
        make_report(run, out=out)
    (out / "index.html").write_text("<!DOCTYPE html>\n<html>my thesis")
    with pytest.raises(ConfigError, match="would be lost"):
        make_report(run, out=out)
    assert (out / "success.png").read_text() == "mine"
    assert len(list(out.iterdir())) == 2


def run_of(validations: dict[int, dict], updates: dict[int, dict] | None = None) -> RunRecords:
    """Records of validations and updates by their steps."""
    events = {"validation": validations, "train": updates or {}}
    records = [{"step": at, "event": name, **each} for name, found in events.items() for at, each in found.items()]
    return RunRecords.of(records, {})


def titled(draw: plots.Draw, run: RunRecords) -> str:
    """The title that a plot gets."""
    axes = Figure().subplots()
    draw(axes, run)
    return (axes.get_title() or axes.get_title(loc="left")).replace("\n", " ").replace("\N{NO-BREAK SPACE}", " ")


def test_the_gaps_title_is_of_what_was_measured_and_any_type_has_a_name(tmp_path):
    dollars = "from $5 {a} \\\\b to $10"
    gaps = {step: {"gap_smoothed": {dollars: 0.3 * gap}, "gap": {dollars: gap}} for step, gap in ((0, 0.9), (40, 0.4))}
    gaps[0] |= {"overall_with": 1.0, "overall_without": 0.1}
    gaps[40] |= {"overall_with": 0.9, "overall_without": 0.5}
    with canvas(tmp_path / "x.png", 5.0, 3.0) as figure:
        plots.draw_gap(axes := figure.subplots(), run_of(gaps))
        axes.legend()
    assert "With minus without: 90 → 40 points" in axes.get_title(loc="left")


def test_an_interrupted_run_still_has_a_report(tmp_path):
    run = write_run(tmp_path / "run", steps=3)
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "ev')
    evaluate(run / "before", 0)
    assert RunRecords.read(run).last_step == 3
    text, _, before = text_of(run).partition("Held-out tasks before training")
    assert "no evaluation after training yet" in text
    assert "pick2" in before
    assert "No type retired" in before


def test_an_evaluation_of_another_environment_or_start_is_not_what_came_before(tmp_path):
    run = write_run(tmp_path / "run", steps=3, model="shipped")
    evaluate(tmp_path / "before", 0)
    for said, match in (({"env": "coins"}, "was played in coins"), ({"weights_sha256": "0" * 64}, "other weights")):
        (tmp_path / "before" / "evaluation.json").write_text(json.dumps(said))
        with pytest.raises(ConfigError, match=match):
            make_report(run, before=tmp_path / "before")


def test_missing_files_are_named(tmp_path):
    with pytest.raises(MissingDataError, match=r"metrics\.jsonl or transcripts/ of a training run, or report\.json"):
        make_report(tmp_path)
    with pytest.raises(MissingDataError, match=r"report\.json"):
        make_report(write_run(tmp_path / "run", steps=5), before=tmp_path / "nowhere")


def test_a_skill_that_a_budget_withdrew_between_validations_has_retired():
    kinds = ["heat", "cool", "look"]
    validated = {
        0: {"active": kinds, "gap": dict.fromkeys(kinds)},
        2: {"active": kinds[1:], "retired": [{"type": "heat", "reason": "gap"}]},
        4: {"active": kinds[2:]},
        6: {"active": None},  # as damaged metrics have it
    }
    updates = {step: {"active": active} for step, active in enumerate((kinds, kinds, kinds[1:], kinds[2:]), 1)}
    run = run_of(validated, updates)
    assert run.retirements == {"heat": (2, "gap"), "cool": (3, "budget")}
    assert "2 of 3 task types" in titled(plots.draw_active, run)


def test_a_strangers_run_imports_nothing(tmp_path, monkeypatch):
    folder = write_run(tmp_path / "run", steps=5)
    config = json.loads((folder / "config.json").read_text())
    write_json(folder / "config.json", {**config, "env": "a_strangers_module:x/Y-v0"})
    (tmp_path / "a_strangers_module.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    assert make_report(folder).page.is_file()


KINDS = {"a": "heat", "b": "heat", "c": "cool"}


def test_the_tasks_that_show_most_come_first_types_take_turns_and_one_failed():
    before = [episode(t, k, z, won=bool(z)) for t, k in KINDS.items() for z in (1, 0)]
    after = [episode(t, k, z, won=t != "a" or bool(z)) for t, k in KINDS.items() for z in (1, 0)]
    assert choose_tasks(before, after, 3) == ("b", "c", "a")
    lost = [episode(t, k, z, won=t != "a") for t, k in KINDS.items() for z in (1, 0)]
    assert choose_tasks([], lost, 2) == ("b", "a")
    shown = [fold.summary.partition(" — ")[2] for fold in examples([], lost, 2)]
    assert shown == ["with the skill: solved; without: solved", "with the skill: failed; without: failed"]


def test_an_evaluation_alone_has_a_report(tmp_path):
    paired = evaluate(tmp_path, 30)
    made = make_report(tmp_path)
    assert set(made.figures) == {"outcome"}
    text = Outline(made.page).text
    assert "120 held-out tasks" in text
    assert f"{rates_of(paired)} %" in text
    write_json(tmp_path / "config.json", TrainConfig("somewhere", engine="choosing", learning_rate=1.5e-6).to_json())
    replace(paired, agent="react").save(tmp_path / "report.json")
    text = text_of(tmp_path)
    assert "Played by the agent react" in text
    assert "chooses among the possible commands" in text
    assert '"engine": "choosing"' in text
    assert "learning_rate" not in text, "it shows the settings that it played by"
    (tmp_path / "report.json").unlink()
    assert make_report(tmp_path).figures == {}


def test_a_page_says_how_many_replies_and_commands_were_good():
    arms = [ArmOutcome(won, float(won), 10, well_formed=4, admissible=9) for won in (True, False)]
    poor = PairedReport((PairedOutcome("t", "heat", *arms),), 0, {})
    assert "well-formed replies, % of turns | 1 | 40.0 | 40.0" in tables.measures(poor).markdown()
    assert "admissible commands, % of turns | 1 | 90.0 | 90.0" in tables.measures(poor).markdown()
    (css, said), *_ = tables.cut_notes(poor)
    assert (css, "Only 40 %" in said) == ("warn", True)


def test_a_moving_mean_is_over_steps_and_costs_no_more_for_many_lines():
    assert moving_mean(Series([1, 1, 2, 5], [1.0, 3.0, 5.0, 7.0]), 2).values == [2.0, 2.0, 3.0, 7.0]
    assert set(moving_mean(Series([1] * 200_000, [0.5] * 200_000), 10).values) == {0.5}


def test_a_step_of_a_run_is_replayed_whole(tmp_path):
    rollouts = [episode("a", "heat", z, won=bool(z)) for z in (1, 0)] + [episode("b", "cool", 0, won=True)]
    for name in ("train-000010", "validation-000020"):
        write_jsonl(tmp_path / "transcripts" / f"{name}.jsonl", rollouts)
    page = replay_page(tmp_path, 10)
    assert page == tmp_path / "report" / "replay-000010.html"
    text = Outline(page).text
    assert "Training rollouts of step 10" in text
    assert "3 episodes of 2 tasks, 2 of them solved." in text
    assert "Validation at step 20" in Outline(replay_page(tmp_path)).text
    with pytest.raises(ConfigError, match="step 11; there are some of 10, 20"):
        replay_page(tmp_path, 11)


def test_a_replay_writes_over_nobodys_page_and_into_no_pipe_or_link(tmp_path):
    write_jsonl(tmp_path / "own.jsonl", [episode("a", "heat", 1, won=True)])
    (tmp_path / "own.html").write_text("<!doctype html>mine")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for out, fault in ((None, "would be lost"), (tmp_path / "pipe", "no regular"), (tmp_path / "link", "no regular")):
        with pytest.raises(ConfigError, match=fault):
            replay_page(tmp_path / "own.jsonl", out=out)


@pytest.mark.parametrize(
    ("method", "shown"),
    [
        ("skillc", {"active", "gate", "rollout_fraction"}),
        ("grpo", set()),
    ],
)
def test_only_pictures_that_mean_something_for_the_method_are_drawn(method, shown):
    run = RunRecords.of(metrics(method, 60), {"method": method, "steps": 60})
    assert plots.plots_of(run).keys() & {"active", "gate", "rollout_fraction"} == shown
    assert run.retires == ("active" in shown)

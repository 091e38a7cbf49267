"""Tuning: the same settings for every method, one rule for the best, and halving that goes on where it stopped."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc_gym.errors import ConfigError, UnknownNameError
from skillc_lab.cli.main import main
from skillc_lab.studies import CellResult, ComparisonPlan, CurvePoint, cross, read_grid, read_run_file, tune
from skillc_lab.studies.tuning import TunedSetting, best_settings, rank_settings
from tests.skillc_lab.studies_of import cell_of
from tests.trainers.toys import toy_config

pytest.importorskip("trl", reason="needs the train extra")

from skillc_lab.commands import compare as command

GRID = {"learning_rate": [1e-3, 1e-2], "method_options.omega": [0.1, 0.2]}


def plan_of(toy_folder, out, methods=("grpo",), grid=None) -> ComparisonPlan:
    overrides = cross(methods, grid or {"learning_rate": [1e-3, 1e-2, 1e-1]})
    config = toy_config(toy_folder, steps=8, transcripts_every=0, budget_tokens=80)
    return ComparisonPlan(config, tuple(overrides), (0,), out, "test", 1, overrides=overrides, title="tuning")


def cell(label: str, seed: int, won: str, area: float) -> CellResult:
    curve = (CurvePoint(0, area, 0.0), CurvePoint(80, area, 0.0))
    return cell_of(("", label, seed), [mark == "1" for mark in won], curve=curve)


def test_every_method_gets_every_combination():
    found = cross(["skillc", "csca"], GRID)
    assert len(found) == 8
    expected = {"method": "skillc", "learning_rate": 0.01, "method_options": {"omega": 0.1}}
    assert found["skillc.learning_rate=0.01.omega=0.1"] == expected
    assert cross(["skillc"], {"method.omega": [0.1]}) == cross(["skillc"], {"method_options.omega": [0.1]})


def test_a_grid_is_read_from_options():
    found = read_grid({"temperature": "1,1.5", "task_sampling": "types", "steps": 4, "seed": [1, 2]})
    assert found == {"temperature": [1, 1.5], "task_sampling": ["types"], "steps": [4], "seed": [1, 2]}
    with pytest.raises(ConfigError, match=r"grid\.temperature"):
        read_grid({"temperature": ","})


def test_settings_are_ranked_by_the_end_and_the_way_there(toy_folder, tmp_path):
    plan = replace(plan_of(toy_folder, tmp_path), seeds=(0, 1))
    low, middle, high = plan.methods
    cells = [cell(low, 0, "11", 0.2), cell(low, 1, "10", 0.2), cell(middle, 0, "11", 0.6), cell(middle, 1, "11", 0.2)]
    ranked = rank_settings(plan, [*cells, cell(high, 0, "11", 1.0)])
    # One seed of the highest rate is missing: it is not ranked on the other alone.
    assert [(found.label, found.seeds) for found in ranked] == [(middle, 2), (low, 2)]
    assert ranked[0].score == pytest.approx((1.0 + 0.4) / 2)
    assert ranked[1].score == pytest.approx((0.75 + 0.2) / 2)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 1)), min_size=1), st.floats(0.01, 1))
def test_a_share_of_each_method_goes_on(scores, share):
    ranked = [TunedSetting(f"{m}{n}", m, 1, score, score, 0.0) for n, (m, score) in enumerate(scores)]
    ranked.sort(key=lambda found: (found.method, -found.score))
    kept = best_settings(ranked, share)
    by_method = {m: [found for found in ranked if found.method == m] for m in {m for m, _ in scores}}
    for own in by_method.values():
        labels = [found.label for found in own]
        count = sum(label in kept for label in labels)
        assert 1 <= count <= len(own)
        assert [label for label in labels if label in kept] == labels[:count]


def test_halving_runs_half_as_long_with_all_and_whole_with_the_better_half(toy_folder, tmp_path):
    plan = plan_of(toy_folder, tmp_path)
    notes: list[str] = []
    ranked = tune(plan, rounds=2, note=notes.append)
    first, second = (json.loads((tmp_path / name / "tuning.json").read_text()) for name in ("round1", "round2"))
    settings = [record["protocol"]["settings"] for record in (first, second)]
    assert [(own["budget_tokens"], own["steps"]) for own in settings] == [(40, 4), (80, 8)]
    assert len(first["protocol"]["methods"]) == 3
    assert sorted(second["protocol"]["methods"]) == sorted(found.label for found in ranked)
    assert len(ranked) == 2
    # A second call finds all runs done.
    again: list[str] = []
    assert tune(plan, rounds=2, note=again.append) == ranked
    assert len(again) == 2 < len(notes)


def test_the_command_names_the_best_setting_as_options(toy_folder, tmp_path, capsys, monkeypatch):
    # Another process would not know the toy.
    monkeypatch.setattr(command, "tune", lambda plan, **rest: tune(plan, **{**rest, "workers": 0}))
    config = toy_config(toy_folder, steps=2, transcripts_every=0, budget_tokens=20)
    given = "env model library chat require_think max_reply_tokens max_context group_size steps tasks_per_step "
    given += "panel_per_type budget_tokens"
    words = [f"{name}={getattr(config, name)}" for name in given.split()] + ["chat.role=agent"]
    options = ["grid.learning_rate=0.001,0.01", "--seeds", "0", "--held-out", "test", "--out", str(tmp_path / "t")]
    assert main(["tune", *words, *options]) == 0
    said = capsys.readouterr().out
    assert "Best of grpo: skillc train method=grpo learning_rate=0.0" in said
    assert len(json.loads((tmp_path / "t" / "tuning.json").read_text())["ranked"]) == 4
    assert main(["tune", *words]) == 2
    assert "grid.learning_rate" in capsys.readouterr().err
    assert main(["tune", *words, "grid.lerning_rate=1", *options[1:]]) == 2
    assert "learning_rate" in capsys.readouterr().err


def test_a_run_file_with_a_grid_is_all_of_its_settings(tmp_path):
    path = tmp_path / "grid.yaml"
    path.write_text(
        "starts: {easy: shipped}\nmethods: [grpo, skillc]\nbudget_tokens: 1000\nsteps: 4\nevaluate_every: 2\n"
        "grid: {learning_rate: [0.1, 0.01]}\n"
        "overrides: {skillc: {steps: 3}, grpo.entropy: {method: grpo+entropy, learning_rate: 0.1}}\n"
    )
    plan = read_run_file(path, tmp_path)
    assert len(plan.methods) == 5
    assert plan.methods[-1] == "grpo.entropy"
    by_label = {one.method: plan.training(one) for one in plan.cells}
    skillc = {label: config.steps for label, config in by_label.items() if config.method == "skillc"}
    assert skillc == {"skillc.learning_rate=0.1": 3, "skillc.learning_rate=0.01": 3}
    path.write_text(path.read_text().replace("learning_rate: [", "lerning_rate: ["))
    with pytest.raises(UnknownNameError, match="learning_rate"):
        read_run_file(path, tmp_path)

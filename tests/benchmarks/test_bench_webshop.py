"""The benchmarks of WebShop: that they run, label what is recorded, and find what they are to find."""

from __future__ import annotations

import argparse
import json

import pytest

from benchmarks import bench, bench_webshop, parity_webshop
from benchmarks.bench_webshop import walk
from benchmarks.measuring import Bench, Figure
from skillc_gym.envs.webshop import WebShopEnv
from skillc_gym.envs.webshop.catalog import open_catalog


@pytest.fixture(scope="module")
def env():
    return WebShopEnv(data="generated", generator={"size": 60})


def test_new_queries_are_never_remembered(env):
    searched = env._store._searched
    searched.cache_clear()
    walk(env, 600, query="new")
    assert searched.cache_info().hits == 0
    walk(env, 600, query="own")
    assert searched.cache_info().hits > 0


@pytest.mark.slow
def test_the_table_says_what_is_recorded(monkeypatch):
    monkeypatch.setattr(bench_webshop, "ENVIRONMENTS", 20)
    monkeypatch.setattr(bench_webshop, "SEARCHES", 20)
    folder = str(open_catalog("generated", size=60).folder)
    found = bench_webshop.measure(argparse.Namespace(webshop=folder, quick=True))
    assert "51 (recorded)" in found.table().markdown()
    assert "not in this run" in found.subject
    assert all(figure.ours > 0 for figure in found.figures)


def test_stand_ins_are_not_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bench, "RECORDS", tmp_path)
    parts = {"real": lambda _: Bench("S", []), "made": lambda _: Bench("S", [], stand_in=True)}
    monkeypatch.setattr(bench, "PARTS", parts)
    assert bench.main([]) == 0
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["bench_real.json"]
    assert "stand-ins" in capsys.readouterr().out


@pytest.mark.parametrize(("ours", "more", "status"), [(2.0, True, 0), (0.5, True, 1), (2.0, False, 1)])
def test_a_missed_goal_is_the_status(monkeypatch, ours, more, status):
    figure = Figure("f", ours, None, 1.0, more)
    monkeypatch.setattr(bench, "PARTS", {"one": lambda _: Bench("S", [figure])})
    assert bench.main(["--quick"]) == status


@pytest.mark.slow
def test_recordings_are_counted_and_fixes_explained(webshop_reference, webshop_data, tmp_path):
    out = tmp_path / "parity.json"
    words = ["--reference", str(webshop_reference), "--data", str(webshop_data), "--out", str(out), "--allow-changes"]
    assert parity_webshop.main(words) == 0
    record = json.loads(out.read_text())
    assert [compared["differences"] for compared in record["compared"][:-1]] == [[]] * 11
    assert set(record["all_fixes"]) == set().union(*record["fixes"].values())

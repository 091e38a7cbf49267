"""The benchmarks of WebShop: that they run, label what is recorded, and find what they are to find."""

from __future__ import annotations

import argparse
import json

import pytest

from benchmarks import bench, bench_webshop, bench_webshop_catalog
from benchmarks.bench_table import markdown
from benchmarks.shop_walks import environment_kilobytes, resets, walk
from skillc_gym.envs.webshop.catalog import open_catalog
from skillc_gym.envs.webshop.env import WebShopEnv


@pytest.fixture(scope="module")
def env():
    return WebShopEnv(data="generated", generator={"size": 60})


@pytest.mark.parametrize("query", ["own", "new"])
def test_walks_take_time_and_say_how_much(env, query):
    assert 100 < walk(env, 500, query=query) < 10_000_000


def test_new_queries_are_never_remembered(env):
    searched = env._store._searched
    searched.cache_clear()
    walk(env, 600, query="new")
    assert searched.cache_info().hits == 0
    walk(env, 600, query="own")
    assert searched.cache_info().hits > 0


def test_resets_and_environments_cost_something(env):
    assert 0 < resets(env, 50) < 100_000
    assert 0.1 < environment_kilobytes(env, 50) < 100


@pytest.mark.slow
def test_the_table_says_what_is_recorded(monkeypatch):
    monkeypatch.setattr(bench_webshop, "ENVIRONMENTS", 20)
    monkeypatch.setattr(bench_webshop, "SEARCHES", 20)
    folder = str(open_catalog("generated", size=60).folder)
    found = bench_webshop.measure(argparse.Namespace(webshop=folder, quick=True))
    text = markdown(found, "command", {})
    assert "51 (recorded)" in text
    assert "not in this run" in text
    assert all(figure["ours"] > 0 for figure in found.record()["figures"])


def test_stand_ins_are_not_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bench, "RESULTS", tmp_path / "results")
    stand_in = bench.Bench("T", "S", [], stand_in=True)
    real = bench.Bench("T", "S", [])
    monkeypatch.setattr(bench, "PARTS", {"real": lambda _: real, "made": lambda _: stand_in})
    monkeypatch.setattr("sys.argv", ["bench"])
    assert bench.main([]) == 0
    assert [path.name for path in sorted((tmp_path / "results").iterdir())] == ["bench_real.json", "bench_real.md"]
    assert "stand-ins" in capsys.readouterr().out


@pytest.mark.slow
def test_a_catalogue_is_built_and_measured(tmp_path):
    arguments = ["--sizes", "60", "--queries", "4", "--work", str(tmp_path / "work"), "--out", str(tmp_path / "found")]
    assert bench_webshop_catalog.main(arguments) == 0
    (result,) = json.loads((tmp_path / "found.json").read_text())["results"]
    assert set(bench_webshop_catalog.COLUMNS) <= set(result)
    assert "| steps/s |" in (tmp_path / "found.md").read_text()

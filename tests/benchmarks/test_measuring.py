"""What is measured: WebShop's speed, what an update costs, how plain pages are, and tests that do not look at all."""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import bench, bench_webshop, parity_webshop
from benchmarks.bench_webshop import walk
from benchmarks.measuring import Bench, Figure
from skillc_gym.envs.webshop import WebShopEnv
from skillc_gym.envs.webshop.catalog import open_catalog
from tests.trainers.conftest import toy_folder
from tests.trainers.toys import TOY_ID, toy_config

__all__ = ["toy_folder"]


@pytest.fixture(scope="module")
def env():
    return WebShopEnv(data="generated", generator={"size": 60})


def test_new_queries_are_never_remembered(env):
    searched = env._store._searched
    searched.cache_clear()
    walk(env, 600, new=True)
    assert searched.cache_info().hits == 0
    walk(env, 600)
    assert searched.cache_info().hits > 0


@pytest.mark.slow
def test_upstreams_figures_are_recorded_ones(monkeypatch):
    monkeypatch.setattr(bench_webshop, "ENVIRONMENTS", 20)
    monkeypatch.setattr(bench_webshop, "SEARCHES", 20)
    folder = str(open_catalog("generated", size=60).folder)
    found = bench_webshop.measure(argparse.Namespace(webshop=folder, quick=True))
    assert {figure.recorded for figure in found.figures if figure.upstream is not None} == {True}
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


# What an update costs, next to TRL's --------------------------------------------------------------------------------


def test_this_trainer_and_trls_update_on_all_rows(toy_folder: Path):
    pytest.importorskip("trl", reason="needs the train extra")
    from benchmarks.trl_throughput import GROUPS, OURS, measure

    # The process that plays ahead finds an environment by its module.
    named = {"env": f"tests.trainers.toys:{TOY_ID}", "steps": 3, "micro_batches": 2}
    config = toy_config(toy_folder, kl_coef=0.0, transcripts_every=0, validate_every=99, **named)
    record = measure(config)
    assert record["rows"] == config.tasks_per_step * config.group_size
    assert set(record["sides"]) == {*OURS, "trl"}
    for side in record["sides"].values():
        assert len(side["tokens"]) == len(side["learning"]["seconds"]) == 2
        assert 0 < side["whole"]["tokens_per_second"] < side["learning"]["tokens_per_second"]
    assert record["sides"]["trl"]["learning"]["ratio"] == 1.0
    # TRL learns from the rows of the first side, of which the same teach.
    assert set(record["groups"]) == {*GROUPS, "trl"}
    assert record["groups"]["trl"]["tokens"] == record["groups"]["skillc, all groups"]["tokens"]


# How plain pages are -------------------------------------------------------------------------------------------------

PAGE = """# A title of five words

Success rose to 85.2 %, e.g. in houses [80, 90]. It [did](there.md) so with `--steps 40 --seed 3`.

```bash
nobody 1 2 3 [1, 2]
```

| a | b |
|---|---|
| 12 [10, 14] | to the letter |

- One point of 3
<!-- board:start -->
many words made
<!-- board:end -->
<!--
{{ settings() }}
-->

many words more
<!--/-->
"""


@pytest.fixture
def plain():
    pytest.importorskip("markdown", reason="needs the docs extra")
    from benchmarks import plain_words

    return plain_words


def test_prose_is_measured_without_code_and_tables(plain):
    page = plain.measured("a.md", PAGE)
    assert page.intervals == 1
    assert page.sentence == pytest.approx((10 + 5 + 4) / 3)
    assert page.jargon == ("to the letter",)
    assert page.words == len(PAGE.split("<!--", maxsplit=1)[0].split())


@pytest.mark.parametrize(
    ("limit", "changed"),
    [
        ("words of README", {"words": 801}),
        ("words a sentence", {"sentence": 28}),
        ("intervals outside tables", {"intervals": 11}),
        ("words of our own", {"jargon": ("nobody",) * 9}),
    ],
)
def test_a_page_that_passes_a_limit_is_named_and_pages_are_counted_together(plain, limit, changed):
    page = plain.PlainPage("README.md", words=700, sentence=12.0, intervals=0, jargon=())
    assert not plain.passed([page])
    (said,) = plain.passed([replace(page, **changed)])
    assert said.startswith(f"{limit}, at most")
    assert "README.md" in said
    long = replace(page, name="docs/a.md", words=15_000)
    assert plain.passed([replace(long, words=1), long, long]) == ["words in all, at most 22,000: docs 30,000"]

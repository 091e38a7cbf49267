from __future__ import annotations

import json

import pytest

from benchmarks import measure_shopper, odd_actions, parity_webshop
from skillc_gym.envs.webshop.catalog import open_catalog
from skillc_lab.cli.main import main as skillc


@pytest.fixture(scope="module")
def catalog():
    return str(open_catalog("generated", size=60).folder)


def test_the_shopper_is_reported_by_split(catalog, tmp_path, capsys):
    out = tmp_path / "new" / "shopper.json"
    assert measure_shopper.main(["--data", catalog, "--tasks", "20", "--out", str(out)]) == 0
    report = json.loads(out.read_text())
    assert report["synthetic test"]["tasks"] == 20
    assert 0.5 < report["synthetic test"]["mean_score"] <= 1.0
    assert all(task_id.startswith("synthetic/") for task_id in report["synthetic test"]["unreachable"])
    assert "synthetic test: tasks 20" in capsys.readouterr().out


@pytest.mark.parametrize("compat", ["fixed", "upstream"])
def test_odd_actions_end_well(catalog, capsys, compat):
    assert odd_actions.main(["--data", catalog, "--actions", "3000", "--compat", compat]) == 0
    assert "3,000 actions, no exception" in capsys.readouterr().out


@pytest.mark.slow
def test_recordings_are_counted_and_fixes_explained(webshop_reference, webshop_data, capsys, tmp_path):
    arguments = ["--reference", str(webshop_reference), "--data", str(webshop_data)]
    assert parity_webshop.main([*arguments, "--out", str(tmp_path / "parity")]) == 0
    assert "0 differ for no fix" in capsys.readouterr().out
    record = json.loads((tmp_path / "parity.json").read_text())
    assert [compared["differences"] for compared in record["compared"][:-1]] == [[]] * 11
    assert set(record["all_fixes"]) == set().union(*record["fixes"].values())
    assert "| rewards |" in (tmp_path / "parity.md").read_text()


def test_missing_data_is_a_sentence(tmp_path, capsys):
    for command in (measure_shopper, odd_actions):
        assert command.main(["--data", str(tmp_path / "none")]) == 2
        assert "none" in capsys.readouterr().err


def test_nouns_are_tagged_beforehand(catalog, capsys):
    assert skillc(["tag-nouns", catalog, "--tagger", "builtin"]) == 0
    assert "60 products, tagger builtin-1" in capsys.readouterr().out

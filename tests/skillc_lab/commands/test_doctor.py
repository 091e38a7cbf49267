"""The doctor says what is there, what is missing and what mends it; only what was asked for by name makes it fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillc_lab.cli import extras
from skillc_lab.cli.main import main as skillc
from skillc_lab.commands import doctor
from skillc_lab.commands.doctor import DoctorOptions, examine


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    monkeypatch.delenv("WEBSHOP_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def without(monkeypatch: pytest.MonkeyPatch, *absent: str) -> None:
    """Makes packages seem not to be installed."""
    find = extras.version_of
    for module in (extras, doctor):
        monkeypatch.setattr(module, "version_of", lambda name: None if name in absent else find(name))


def test_generated_tasks_always_play_and_missing_data_names_what_fetches_it(capsys: Any) -> None:
    assert skillc(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "ok  alfworld, generated" in said
    assert "ok  webshop, generated" in said
    assert "ALFWORLD_DATA" in said
    assert "WEBSHOP_DATA" in said


def test_it_works_without_any_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "torch", "transformers", "trl", "vllm")
    found = {finding.name: finding for finding in examine(DoctorOptions(env="alfworld", data="generated"))}
    absent = found["extras that are not installed"]
    assert absent.status == "missing"
    assert "train (torch, transformers, trl: train, evaluate" in absent.found
    assert "vllm (vllm: engine=vllm)" in absent.found
    assert "pip install -e '.[NAME]'" in absent.remedy
    assert [name for name in found if "extra" in name and found[name].status == "missing"] == [absent.name]
    assert found["alfworld, generated"].status == "ok"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["env=alfworld", "data=nowhere"], "nowhere"),
        (["env=webshop", "data=nowhere"], "nowhere"),
        (["env=CartPole-v1"], "no task_ids"),
        (["env=coins", "data=generated", 'env.generator={"shortest": 0}'], "shortest"),
        (["engine=nope"], "'nope'"),
        (["env=alfworld", "data=generated", "model=./nomodel"], "nomodel"),
        (["env=tests.trainers.toys:skillc-tests/Toy-v0", "model=./nomodel"], "nomodel"),
        (["engine=vllm"], "skillc-gym[vllm]"),
    ],
)
def test_what_is_asked_for_and_not_there_fails(
    words: list[str], says: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    pytest.importorskip("torch", reason="needs the train extra")
    without(monkeypatch, "vllm")
    assert skillc(["doctor", "--json", *words]) == 2
    missing = [each for each in json.loads(capsys.readouterr().out) if each["asked"] and each["status"] == "missing"]
    assert len(missing) == 1
    assert says in missing[0]["found"]


@pytest.mark.parametrize(("typed", "near"), [("alfwrld", "'alfworld'"), ("skillc/ALFWorld-v1", "'skillc/ALFWorld-v0'")])
def test_an_environment_that_is_not_there_names_the_nearest(typed: str, near: str, capsys: Any) -> None:
    assert skillc(["doctor", "--env", typed]) == 2
    assert f"Did you mean {near}" in capsys.readouterr().err


def test_a_models_context_is_held_against_episodes() -> None:
    pytest.importorskip("transformers", reason="needs the train extra")
    small: dict[str, Any] = {"env_options": {"generator": {"games_per_type": 1}}}
    asked = DoctorOptions("alfworld", "generated", "shipped", max_context=512, **small)
    (found,) = [finding for finding in examine(asked) if finding.section == "model"]
    assert found.status == "note"
    assert "20 steps" in found.found, "the policy's own limit, as commands play it"
    assert "form=window:5" in found.remedy
    own, roomy = (DoctorOptions("alfworld", model="shipped", form=form, **small) for form in (None, "window:2"))
    (found,) = [finding for finding in examine(own) if finding.section == "model"]
    assert (found.status, "max_context is 2,048" in found.found) == ("ok", True)
    assert [finding.status for finding in examine(roomy) if finding.section == "model"] == ["ok"]


def test_extras_are_those_that_the_package_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = extras.declared_extras()
    assert set(extras.PURPOSES) <= set(declared)
    assert declared["vllm"] == ("vllm",)
    assert declared["report"] == ("matplotlib",)
    assert "rich" in declared["openai"]
    requirements = ["numpy>=1", "torch<3,>=2; extra == 'train'", 'skillc-gym[train]; extra == "vllm"']
    requirements.append("vllm; extra == 'vllm'")
    monkeypatch.setattr(extras, "checkout", lambda: None)
    monkeypatch.setattr(extras.metadata, "requires", lambda _: requirements)
    extras.declared_extras.cache_clear()
    try:
        assert extras.declared_extras() == {"train": ("torch",), "vllm": ("vllm",)}
    finally:
        extras.declared_extras.cache_clear()

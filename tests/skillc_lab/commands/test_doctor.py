"""The doctor: only what was asked for by name makes it fail; commands on a Ray cluster, a stand-in or a local one."""

import json
import shutil
import sys
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from skillc_gym.errors import ConfigError, MissingExtraError
from skillc_lab.cli import extras
from skillc_lab.cli.main import main as skillc
from skillc_lab.commands import doctor
from skillc_lab.commands.doctor import DoctorOptions, Finding, examine
from skillc_lab.commands.fan_out import FanOutOptions, Outcome, fan_out, read_commands
from trainers.tracking import write_json


@pytest.fixture(autouse=True)
def no_data(monkeypatch, tmp_path):
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    monkeypatch.delenv("WEBSHOP_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def without(monkeypatch, *absent: str) -> None:
    """Makes packages seem not to be installed."""
    find = extras.version_of
    for module in (extras, doctor):
        monkeypatch.setattr(module, "version_of", lambda name: None if name in absent else find(name))


def test_generated_tasks_always_play_and_missing_data_names_what_fetches_it(says):
    said = says("doctor")
    for words in ("ok  alfworld, generated", "ok  webshop, generated", "ALFWORLD_DATA", "WEBSHOP_DATA"):
        assert words in said


def test_it_works_without_any_extra(monkeypatch):
    without(monkeypatch, "torch", "transformers", "trl", "vllm")
    found = {finding.name: finding for finding in examine(DoctorOptions(env="alfworld", data="generated"))}
    absent = found["extras that are not installed"]
    assert "train (torch, transformers, trl: train, evaluate" in absent.found
    assert "vllm (vllm: engine=vllm)" in absent.found
    assert "pip install -e '.[NAME]'" in absent.remedy
    assert [name for name in found if "extra" in name and found[name].status == "missing"] == [absent.name]
    assert found["alfworld, generated"].status == "ok"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["env=alfworld", "data=nowhere"], "nowhere"),
        (["env=CartPole-v1"], "no task_ids"),
        (["env=coins", "data=generated", 'env.generator={"shortest": 0}'], "shortest"),
        (["engine=nope"], "'nope'"),
        (["env=alfworld", "data=generated", "model=./nomodel"], "nomodel"),
        (["engine=vllm"], "skillc-gym[vllm]"),
    ],
)
def test_what_is_asked_for_and_not_there_fails(words, named, monkeypatch, capsys):
    pytest.importorskip("torch", reason="needs the train extra")
    without(monkeypatch, "vllm")
    assert skillc(["doctor", "--json", *words]) == 2
    missing = [each for each in json.loads(capsys.readouterr().out) if each["asked"] and each["status"] == "missing"]
    assert len(missing) == 1
    assert named in missing[0]["found"]


def test_a_models_context_is_held_against_episodes():
    pytest.importorskip("transformers", reason="needs the train extra")

    def found(**more: Any) -> Finding:
        asked = DoctorOptions("alfworld", model="shipped", env_options={"generator": {"games_per_type": 1}}, **more)
        (one,) = [finding for finding in examine(asked) if finding.section == "model"]
        return one

    short, own = found(data="generated", max_context=512), found()
    assert short.status == "note"
    assert "20 steps" in short.found, "the policy's own limit, as commands play it"
    assert "form=window:5" in short.remedy
    assert (own.status, "max_context is 2,048" in own.found) == ("ok", True)
    assert found(form="window:2").status == "ok"


@pytest.mark.parametrize(
    ("template", "fault"),
    [(None, "no chat template"), ("{{ raise_exception('no system') if messages[0].role == 'system' }}", "no system")],
)
def test_a_template_that_training_refuses_is_told(template, fault, tmp_path):
    pytest.importorskip("transformers", reason="needs the train extra")
    model = shutil.copytree(str(resources.files("trainers.warmstart") / "checkpoint"), tmp_path / "model")
    settings = json.loads((model / "tokenizer_config.json").read_text())
    write_json(model / "tokenizer_config.json", {**settings, "chat_template": template})
    asked = DoctorOptions("alfworld", model=str(model), data="generated")
    (found,) = [finding for finding in examine(asked) if finding.section == "model"]
    assert (found.status, found.asked) == ("missing", True)
    assert fault in found.found


def test_extras_are_those_that_the_package_declares(monkeypatch):
    assert set(extras.PURPOSES) <= set(extras.declared_extras())
    requirements = ["numpy>=1", "torch<3,>=2; extra == 'train'", 'skillc-gym[train]; extra == "vllm"']
    requirements.append("vllm; extra == 'vllm'")
    monkeypatch.setattr(extras, "checkout", lambda: None)
    monkeypatch.setattr(extras.metadata, "requires", lambda _: requirements)
    assert extras.declared_extras.__wrapped__() == {"train": ("torch",), "vllm": ("vllm",)}


# On a Ray cluster -----------------------------------------------------------------------------------------------------

COMMANDS = "# two\nskillc play --help\n\nmake-games --count 'no number'  # wrong\n"


class LostError(Exception):
    """A machine that is gone."""


@pytest.fixture
def ray(monkeypatch):
    """Runs tasks one after the other, the last one first; loses those whose words say so."""

    def get(ready: Any) -> Outcome:
        (words, _) = ready
        if "lost" in words:
            raise LostError("the node died")
        return Outcome(tuple(words), 2 if "model=wrong" in words else 0, "said so", 1.0, "here")

    fake = Mock(get=get, exceptions=SimpleNamespace(RayError=LostError))
    fake.remote.return_value = lambda function: SimpleNamespace(remote=lambda *given: (tuple(given[0]), given[1]))
    fake.wait = lambda waiting, num_returns: (waiting[-1:], waiting[:-1])
    monkeypatch.setitem(sys.modules, "ray", fake)
    return fake


def test_a_file_is_read_like_a_shell():
    assert read_commands(COMMANDS) == [("play", "--help"), ("make-games", "--count", "no number")]
    (words,) = read_commands("evaluate model=runs/try#2/policy '#x' \"#y\" \\#z seed=3 # note")
    assert words == ("evaluate", "model=runs/try#2/policy", "#x", "#y", "#z", "seed=3")
    with pytest.raises(ConfigError, match="Line 1 is no command"):
        read_commands("evaluate 'open # note")
    with pytest.raises(ConfigError, match="no command in the file"):
        read_commands("# nothing\n")


def test_outcomes_come_in_the_commands_order_and_lost_machines_are_told(ray, capsys):
    commands = [("a",), ("evaluate", "model=wrong"), ("lost",)]
    found = fan_out(commands, FanOutOptions(Path("f"), cpus=2, gpus=0.5, retries=1))
    assert [(each.words, each.status) for each in found] == list(zip(commands, [0, 2, -1], strict=True))
    lines = [line.partition(",")[0] for line in capsys.readouterr().err.splitlines()]
    assert lines == ["failed (-1)", "    the node died", "failed (2) on here", "    said so", "done on here"]
    ray.init.assert_called_once_with(address="auto", log_to_driver=False)
    ray.remote.assert_called_once_with(num_cpus=2, num_gpus=0.5, max_retries=1)
    ray.shutdown.assert_called_once_with()


def test_the_command_says_how_many_failed(ray, tmp_path, says):
    file = tmp_path / "commands.txt"
    file.write_text("evaluate model=a\nevaluate model=wrong\n")
    assert "1 of 2 commands succeeded." in says("tools fan-out", file, status=1)
    file.write_text("evalaute model=a\n")
    assert "evaluate" in says("tools fan-out", file, status=2)


def test_without_ray_or_cluster_the_remedy_is_named(monkeypatch, ray):
    ray.init.side_effect = ConnectionError("Could not find any running Ray instance.")
    with pytest.raises(ConfigError, match="ray start --head"):
        fan_out([("a",)], FanOutOptions(Path("f")))
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"skillc-gym\[ray\]"):
        fan_out([("a",)], FanOutOptions(Path("f")))


@pytest.mark.slow
def test_a_local_cluster_runs_commands():
    pytest.importorskip("ray", reason="needs the extra 'ray'")
    try:
        found = fan_out(read_commands(COMMANDS), FanOutOptions(Path("f"), address="local"))
    except ConfigError as error:
        pytest.skip(f"no local cluster starts here: {error}")
    assert [outcome.status for outcome in found] == [0, 2]
    assert "usage" in found[0].said
    assert found[0].machine

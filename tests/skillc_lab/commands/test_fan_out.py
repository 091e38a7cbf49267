"""Commands on a Ray cluster: on a stand-in everywhere, on a local cluster where Ray is installed."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from skillc_gym.errors import ConfigError, MissingExtraError
from skillc_lab.cli.main import main as skillc
from skillc_lab.commands.fan_out import FanOutOptions, Outcome, fan_out, read_commands

COMMANDS = "# two\nskillc play --help\n\nmake-games --count 'no number'  # wrong\n"


class LostError(Exception):
    """A machine that is gone."""


class FakeRay(ModuleType):
    """Runs tasks one after the other, the last one first; loses those whose words say so."""

    def __init__(self) -> None:
        super().__init__("ray")
        self.calls: list[Any] = []
        self.exceptions = type("exceptions", (), {"RayError": LostError})

    def init(self, **options: Any) -> None:
        self.calls.append(options["address"])

    def remote(self, **options: Any) -> Any:
        self.calls.append(options)
        return lambda function: type("Task", (), {"remote": staticmethod(lambda *given: (function, *map(str, given)))})

    def wait(self, waiting: list[Any], num_returns: int) -> Any:
        return waiting[-1:], waiting[:-1]

    def get(self, ready: Any) -> Outcome:
        function, words, _ = ready
        if "lost" in words:
            raise LostError("the node died")
        assert function.__name__ == "run_one"
        return Outcome((words,), 2 if "wrong" in words else 0, "said so", 1.0, "here")

    def shutdown(self) -> None:
        self.calls.append("shutdown")


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    fake = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", fake)
    return fake


def test_a_file_is_read_like_a_shell() -> None:
    assert read_commands(COMMANDS) == [("play", "--help"), ("make-games", "--count", "no number")]
    with pytest.raises(ConfigError, match="Line 1 is no command"):
        read_commands("evaluate 'open")
    with pytest.raises(ConfigError, match="no command in the file"):
        read_commands("# nothing\n")


def test_outcomes_come_in_the_commands_order_and_lost_machines_are_told(ray: FakeRay, capsys: Any) -> None:
    found = fan_out([("a",), ("wrong",), ("lost",)], FanOutOptions(Path("f"), cpus=2, gpus=0.5, retries=1))
    assert [each.status for each in found] == [0, 2, -1]
    lines = [line.partition(",")[0] for line in capsys.readouterr().err.splitlines()]
    assert lines == ["failed (-1)", "    the node died", "failed (2) on here", "    said so", "done on here"]
    assert found[2].said == "the node died"
    assert ray.calls == ["auto", {"num_cpus": 2, "num_gpus": 0.5, "max_retries": 1}, "shutdown"]


def test_the_command_says_what_failed(ray: FakeRay, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "commands.txt"
    file.write_text("evaluate model=a\nevaluate model=wrong\n")
    assert skillc(["tools", "fan-out", str(file)]) == 1
    captured = capsys.readouterr()
    assert "1 of 2 commands succeeded." in captured.out
    assert "failed (2) on here" in captured.err
    file.write_text("evalaute model=a\n")
    assert skillc(["tools", "fan-out", str(file)]) == 2
    assert "evaluate" in capsys.readouterr().err
    assert skillc(["tools", "fan-out", str(tmp_path / "none")]) == 2
    assert skillc(["tools", "fan-out", str(file), "--cpus", "0"]) == 2
    assert "cpus must be positive" in capsys.readouterr().err


def test_without_ray_or_cluster_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch, ray: FakeRay) -> None:
    def nobody(**_: Any) -> None:
        raise ConnectionError("Could not find any running Ray instance.")

    monkeypatch.setattr(ray, "init", nobody)
    with pytest.raises(ConfigError, match="ray start --head"):
        fan_out([("a",)], FanOutOptions(Path("f")))
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"skillc-gym\[ray\]"):
        fan_out([("a",)], FanOutOptions(Path("f")))


@pytest.mark.slow
def test_a_local_cluster_runs_commands() -> None:
    pytest.importorskip("ray", reason="needs the extra 'ray'")
    try:
        found = fan_out(read_commands(COMMANDS), FanOutOptions(Path("f"), address="local"))
    except ConfigError as error:
        pytest.skip(f"no local cluster starts here: {error}")
    assert [outcome.status for outcome in found] == [0, 2]
    assert "usage" in found[0].said
    assert found[0].machine

"""The fuzzer's own pieces, driven by a source of numbers instead of atheris; the real runs are by hand."""

from __future__ import annotations

import json
import random

import pytest

from benchmarks.fuzz.__main__ import CORPUS, kept_inputs, main, read_report
from benchmarks.fuzz.games import FIELDS, packed, read_archive, step_checked
from benchmarks.fuzz.target import GENERATOR, NAMES, bounded, load
from skillc_gym.envs.alfworld.data import open_games
from skillc_gym.envs.alfworld.engine import World


class Numbers:
    """What atheris.FuzzedDataProvider offers, from a seeded generator."""

    def __init__(self, data: bytes) -> None:
        self._random = random.Random(data)
        self._left = 40

    def ConsumeIntInRange(self, low: int, high: int) -> int:
        self._left -= 1
        return self._random.randint(low, high)

    def ConsumeBool(self) -> bool:
        return self._random.random() < 0.3

    def ConsumeUnicode(self, count: int) -> str:
        self._left -= 1
        return "".join(chr(self._random.choice([10, 32, 40, 92, 0xE9, 0xD800, 0x1F600])) for _ in range(count))

    ConsumeUnicodeNoSurrogates = ConsumeUnicode

    def ConsumeBytes(self, count: int) -> bytes:
        self._left -= 1
        return self._random.randbytes(count)

    def remaining_bytes(self) -> int:
        return self._left


class FakeAtheris:
    FuzzedDataProvider = Numbers


@pytest.mark.parametrize("name", NAMES)
def test_targets_survive_what_is_thrown_at_them(name: str):
    target = load(name).make(FakeAtheris)
    for seed in range(150):
        target(str(seed).encode())


@pytest.mark.parametrize("name", [path.stem for path in sorted(CORPUS.glob("*.json"))])
def test_inputs_that_are_kept_break_nothing(name: str):
    run = bounded(load(name).make(pytest.importorskip("atheris", reason="needs the fuzz extra")))
    for content in kept_inputs(name):
        run(content)


def test_an_input_that_takes_too_long_is_a_finding(monkeypatch):
    monkeypatch.setattr("benchmarks.fuzz.target.SECONDS_PER_INPUT", 0.0)
    with pytest.raises(AssertionError, match="an input took"):
        bounded(lambda data: None)(b"")


def test_archives_are_whole_before_they_are_changed(tmp_path):
    games = open_games("generated", split="train", generator=GENERATOR)
    raws = [(task_id, games.raw(task_id)) for task_id in games.task_ids[:2]]
    for content in packed(raws):
        assert [name for name, _ in read_archive(tmp_path, content)] == [name for name, _ in raws]


REPORT = """
#1677   DONE   cov: 1223 ft: 2097 corp: 37/139b lim: 6 exec/s: 40 rss: 80Mb
stat::number_of_executed_units: 1677
stat::average_exec_per_sec:     40
stat::new_units_added:          39
stat::slowest_unit_time_sec:    2
stat::peak_rss_mb:              80
"""
FOUND = """
 === Uncaught Python exception: ===
KeyError: 'x'
==7== ERROR: libFuzzer: deadly signal
"""


def test_a_report_is_read():
    assert read_report(REPORT) == {
        "runs": 1677,
        "runs_per_second": 40,
        "slowest_run_seconds": 2,
        "peak_megabytes": 80,
        "branches_reached": 1223,
        "inputs_kept": 37,
        "findings": [],
    }
    assert read_report(FOUND)["findings"] == ["KeyError: 'x'", "deadly signal"]
    assert read_report("")["runs"] is None


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_real_fuzzer_runs(tmp_path, name):
    pytest.importorskip("atheris", reason="needs the fuzz extra")
    # Forked from the process of the tests, whose own memory counts.
    assert main([name, "--seconds", "2", "--memory", "8192", "--out", str(tmp_path)]) == 0
    entry = json.loads((tmp_path / "fuzz.json").read_text())[name]
    assert entry["runs"] > 10
    assert entry["branches_reached"] > 100
    assert entry["findings"] == []


def test_the_stepper_notices_a_wrong_answer(monkeypatch):
    games = open_games("generated", split="train")
    world = World(games.load(games.task_ids[0]))
    world.reset()
    step_checked(world, "look")
    monkeypatch.setattr(World, "step", lambda self, command: ("Well.", False))
    with pytest.raises(AssertionError):
        step_checked(world, "nonsense")


def test_every_field_of_a_game_file_is_fuzzed():
    games = open_games("generated", split="train")
    assert set(games.raw(games.task_ids[0])) == set(FIELDS)

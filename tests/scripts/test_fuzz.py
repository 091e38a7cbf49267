"""The fuzzer's own pieces, driven by a source of numbers instead of atheris; the real runs are by hand."""

from __future__ import annotations

import random

import pytest

from scripts.fuzz import FIELDS, TARGETS, step_checked
from skillc_gym.alfworld.games import open_games
from skillc_gym.alfworld.world import World


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

    def remaining_bytes(self) -> int:
        return self._left


class FakeAtheris:
    FuzzedDataProvider = Numbers


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_targets_survive_what_is_thrown_at_them(name: str):
    target = TARGETS[name](FakeAtheris)
    for seed in range(150):
        target(str(seed).encode())


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

"""Game content for the ALFWorld tests: generated where there is no real data."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from odd_houses import odd_house, write_folder

from skillc_gym.envs.alfworld.data.games import open_games
from skillc_gym.envs.alfworld.engine import textworld
from skillc_gym.envs.alfworld.engine.game import Game
from skillc_gym.envs.alfworld.engine.textworld import UpstreamProcess
from skillc_gym.errors import MissingExtraError


@pytest.fixture(scope="session")
def template() -> dict[str, Any]:
    """The content of some game, for its domain and its grammar."""
    games = open_games("generated", split="valid_seen", generator={"size": "small"})
    return games.raw(games.task_ids[0])


@pytest.fixture(scope="session")
def house(template):
    """Makes a small odd house by seed: (content, parsed game)."""
    task = "valid_seen/pick_and_place_simple-Mug-None-Cabinet-1/trial_{0}"

    def make(seed: int, **options: Any) -> tuple[dict[str, Any], Game]:
        raw = odd_house(seed, template, **options)
        return raw, Game.parse(task.format(seed), raw)

    return make


@pytest.fixture(scope="session")
def folder(template, tmp_path_factory) -> Path:
    """A folder of twelve small games in upstream's layout, in two splits."""
    return write_folder(tmp_path_factory.mktemp("games"), template)


@pytest.fixture(scope="session")
def upstream() -> Iterator[UpstreamProcess]:
    """Upstream that remembers what it parses; skips the test where it is not installed."""
    try:
        process = UpstreamProcess(cached=True)
    except MissingExtraError as error:
        pytest.skip(str(error))
    yield process
    process.close()


@pytest.fixture
def quick(upstream, monkeypatch):
    """Environments whose upstream remembers what it parses."""
    monkeypatch.setattr(textworld, "UpstreamProcess", functools.partial(UpstreamProcess, cached=True))

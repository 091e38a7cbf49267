"""Names to objects: what is no name is said in a sentence, whatever it looks like."""

from __future__ import annotations

import pytest

from skillc_gym.envs.registry import described_env, env_spec
from skillc_gym.errors import ConfigError, UnknownNameError
from skillc_lab.agents import AGENTS
from trainers.base import load_object


@pytest.mark.parametrize(
    "name", [":", ":NAME", "json:", ".json:NAME", "..:NAME", "json.:NAME", "json:NAME", "no_such:X"]
)
def test_what_is_no_module_and_name_is_refused(name: str):
    with pytest.raises(ConfigError, match="written module:NAME"):
        AGENTS.get(name)


def test_an_object_is_found_by_module_and_name():
    assert load_object("json:dumps", "thing").__name__ == "dumps"


@pytest.mark.parametrize("name", [".json:x", "..:x", "no_such_module:x"])
def test_an_environments_module_is_refused_in_the_same_way(name: str):
    with pytest.raises(ConfigError, match=r"written module:id|cannot be imported"):
        env_spec(name)


def test_some_need_a_description():
    assert described_env("coins") is env_spec("skillc/CoinCollector-v0")
    with pytest.raises(UnknownNameError, match="Did you mean 'coins'"):
        described_env("coin")

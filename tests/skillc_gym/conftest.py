"""A toy environment and a library for it; tests below this folder may import ``toy_env``."""

from __future__ import annotations

import pytest
from toy_env import ToyEnv, write_skills


@pytest.fixture
def toy():
    return ToyEnv()


@pytest.fixture(scope="session")
def toy_library(tmp_path_factory):
    return write_skills(tmp_path_factory.mktemp("skills"))

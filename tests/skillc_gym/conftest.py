"""A toy environment and a library for it; tests below this folder may import ``toy_env``."""

import gymnasium
import pytest
from toy_env import ToyEnv, write_skills


@pytest.fixture
def toy():
    return ToyEnv()


@pytest.fixture(scope="session")
def toy_library(tmp_path_factory):
    return write_skills(tmp_path_factory.mktemp("skills"))


@pytest.fixture
def toy_id():
    """The toy under an id of Gymnasium's, with nine steps."""
    gymnasium.register(id="SkillcTest/Toy-v0", entry_point="toy_env:ToyEnv", max_episode_steps=9)
    yield "SkillcTest/Toy-v0"
    del gymnasium.registry["SkillcTest/Toy-v0"]

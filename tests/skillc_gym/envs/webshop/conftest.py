"""The small shop, and the recordings of upstream; tests of this folder may import ``small_shop``."""

import pytest
from small_shop import SmallShop

from skillc_gym.envs.webshop.env import WebShopEnv


@pytest.fixture(scope="session")
def shop():
    return SmallShop()


@pytest.fixture
def env(shop):
    return WebShopEnv(data=shop)

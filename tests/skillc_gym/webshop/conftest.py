"""The small shop, and the recordings of upstream; tests of this folder may import ``small_shop``."""

from __future__ import annotations

import pytest
from small_shop import SmallShop

from skillc_gym.webshop.env import WebShopEnv


@pytest.fixture(scope="session")
def shop():
    return SmallShop()


@pytest.fixture
def env(shop):
    return WebShopEnv(data=shop)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Catalogues are built in a folder of this run, not in the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKILLC_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield

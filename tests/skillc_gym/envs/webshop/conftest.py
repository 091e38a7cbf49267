"""The small shop, and the recordings of upstream; tests of this folder may import ``small_shop``."""

import pytest
from small_shop import SHOP, SmallShop

from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.errors import SkillCError


@pytest.fixture(scope="session")
def shop():
    return SmallShop()


@pytest.fixture
def env(shop):
    return WebShopEnv(data=shop)


@pytest.fixture(scope="session")
def chromium():
    """Keeps one Chromium for all tests, which environments with ``browsers=1`` share; skips where there is none."""
    for package in ("selenium", "starlette", "jinja2", "uvicorn", "PIL"):
        pytest.importorskip(package, reason="needs the extra browser")
    from skillc_gym.envs.webshop.browser.env import WebShopBrowserEnv

    try:
        env = WebShopBrowserEnv(data=SHOP, browsers=1)
    except SkillCError as error:
        pytest.skip(str(error))
    env.reset(seed=0)
    yield env
    env.close()


@pytest.fixture
def make_env(chromium):
    """Makes environments that share the session's browser, and closes them."""
    from skillc_gym.envs.webshop.browser.env import WebShopBrowserEnv

    made = []

    def make(**options):
        made.append(WebShopBrowserEnv(**{"data": SHOP, "browsers": 1, **options}))
        return made[-1]

    yield make
    for env in made:
        env.close()

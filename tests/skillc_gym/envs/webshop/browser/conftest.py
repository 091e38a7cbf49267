"""One Chromium for all tests of the session, a tab each; tests that need it are skipped where there is none."""

import pytest
from small_shop import SHOP

from skillc_gym.errors import SkillCError


@pytest.fixture(scope="session")
def chromium():
    """Keeps the browser that environments with ``browsers=1`` share."""
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

"""A browser asked directly: scripts, promises, addresses."""

import json
import shutil

import pytest

from skillc_gym.envs.webshop.browser.chromium import Browser, PageMovedError
from skillc_gym.envs.webshop.browser.launch import BROWSERS, SHELLS, BrowserSettings
from skillc_gym.envs.webshop.site.server import address_of_socket, bound_socket
from skillc_gym.errors import EngineError


@pytest.fixture(scope="module", params=[SHELLS, BROWSERS], ids=["shell", "browser"])
def browser(chromium, request):
    """Both kinds of browser, where both are there."""
    named = next(filter(shutil.which, request.param), None)
    if named is None:
        pytest.skip(f"none of {', '.join(request.param)} is installed")
    browser = Browser(BrowserSettings(browser=named, pictures=False, timeout=20))
    yield browser
    browser.close()


@pytest.fixture
def tab(browser):
    handle = browser.tab()
    assert browser.go(handle, "about:blank") == ""
    yield handle
    browser.close_tab(handle)


@pytest.mark.parametrize("value", ["\u2028 </script> \ud800 😀 \x00", {"a": [1, None, True]}, [], "`${1}`'\"\\"])
def test_values_go_there_and_come_back(browser, tab, value):
    found = browser.script(tab, "return [arguments.length, JSON.stringify(arguments[0]), arguments[0]]", value)
    assert (found[0], json.loads(found[1]), found[2]) == (1, value, value)


def test_promises_are_waited_for_and_failing_scripts_are_errors(browser, tab):
    assert browser.script(tab, "return new Promise((kept) => setTimeout(() => kept(7), 20))") == 7
    assert browser.script(tab, "") is None
    for script in ("return nothing.at.all", "return Promise.reject(new Error('nothing'))"):
        with pytest.raises(EngineError, match="nothing"):
            browser.script(tab, script)


def test_a_page_that_is_left_takes_its_promises_with_it(browser, tab):
    leave = "setTimeout(() => { location.href = 'about:blank?next' }, 50)"
    with pytest.raises(PageMovedError):
        browser.script(tab, f"{leave}; return new Promise(() => 0)")


def test_no_address_is_dropped_however_fast_they_come(browser, tab):
    assert browser.script(tab, "for (let i = 0; i < 400; i++) location.hash = i; return location.hash") == "#399"


def test_nothing_is_drawn_where_nobody_looks(browser, tab):
    if browser.driver.capabilities["browserName"] != "chrome-headless-shell":
        pytest.skip("needs Chromium's headless shell")
    drawn = "new Promise((drawn) => requestAnimationFrame(() => drawn('drawn')))"
    waited = "new Promise((kept) => setTimeout(() => kept('not drawn'), 200))"
    assert browser.script(tab, f"return Promise.race([{drawn}, {waited}])") == "not drawn"


def test_the_last_tab_may_be_closed(browser):
    for _ in range(2):
        handle = browser.tab()
        assert browser.script(handle, "return 1 + 1") == 2
        browser.close_tab(handle)


def test_nobody_answers_where_there_is_no_site(browser, tab):
    with bound_socket("127.0.0.1", 0) as listener:
        address = address_of_socket(listener)
    assert "ERR_CONNECTION_REFUSED" in browser.go(tab, address)
    assert "ERR_NAME_NOT_RESOLVED" in browser.go(tab, "http://elsewhere.example/")

"""The environment in a browser: modes, copies, what happens when something dies; and a browser asked directly."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from unittest.mock import MagicMock, patch

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from small_shop import RUG, SHOP, SmallShop, play, process

from skillc_gym.envs.webshop.browser import tabs
from skillc_gym.envs.webshop.browser.chromium import Browser, PageMovedError
from skillc_gym.envs.webshop.browser.launch import BROWSERS, SHELLS, BrowserSettings
from skillc_gym.envs.webshop.browser.tabs import BrowserPool, SiteLostError, Tab
from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.envs.webshop.site.app import Site
from skillc_gym.envs.webshop.site.server import ThreadedSite, address_of_socket, bound_socket, open_site
from skillc_gym.errors import ConfigError, EngineError, MissingDataError, UnknownNameError
from skillc_gym.testing import TextEnvContract
from skillc_gym.vector import PairedVectorEnv


def members(group):
    """The processes of a group that are alive."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found[int(place.name)] = (place / "stat").read_text().rpartition(")")[2].split()
    return [number for number, fields in found.items() if int(fields[2]) == group and fields[0] != "Z"]


def gone(group, seconds=10):
    deadline = time.monotonic() + seconds
    while members(group) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not members(group)


@pytest.mark.slow
@pytest.mark.usefixtures("chromium")
class TestContract(TextEnvContract):
    walk_length = 4
    seeds = (0, 7)
    garbage = ("", "xyzzy", "\n", "é€😀", "x" * 1000, "click[é]")

    def make_env(self):
        options = {"data": SHOP, "transport": "swap", "browsers": 1, "disable_env_checker": True}
        return gymnasium.make("skillc/WebShopBrowser-v0", **options)

    def test_gymnasium_accepts_it(self):
        env = self.make_env()
        check_env(env, skip_render_check=True)  # one of the modes needs a screen
        env.close()


def browser_of(env):
    return env.unwrapped._tab._browser


def group_of(env):
    """The process group of the driver and of all its browser's processes."""
    return browser_of(env)._processes.driver.pid


def said_by(env):
    """What the browser has logged since it was last asked."""
    found = browser_of(env).driver.execute("getLog", {"type": "browser"})
    return [entry["message"] for entry in found["value"]]


def test_a_tab_whose_document_has_no_root_yet_is_led_to_the_page(make_env):
    env = make_env(transport="swap")
    first = env.reset(seed=0)
    env.unwrapped._tab.ask("document.documentElement.remove(); return ''")
    assert env.reset(seed=0) == first
    assert env.reset(options={"session": 3}) == env.reset(options={"task_id": "synthetic/3"})


def test_pictures_show_the_page_however_late_its_files_come(make_env, monkeypatch):
    at_once = Site.__call__

    async def late(self, scope, receive, send):
        await asyncio.sleep(0.4 if scope["path"].endswith(".svg") else 0)
        await at_once(self, scope, receive, send)

    monkeypatch.setattr(Site, "__call__", late)
    env = make_env(observation_mode="text_screenshot", render_mode="rgb_array", viewport=(400, 300), transport="swap")
    first, _ = env.reset(seed=0)
    after, *_ = env.step(RUG[0])
    assert first in env.observation_space
    assert after["screenshot"].shape == (300, 400, 3)
    assert (first["screenshot"] != after["screenshot"]).any()
    time.sleep(0.6)
    assert np.array_equal(env.render(), after["screenshot"])
    assert "Total results" in after["text"]
    env.close()
    with pytest.raises(gymnasium.error.ResetNeeded):  # and no browser is started for it
        env.unwrapped.render()


@pytest.mark.parametrize("transport", ["served", "swap"])
def test_moments_are_those_of_the_text_environment(make_env, transport):
    env, native = make_env(transport=transport), WebShopEnv(data=SHOP)
    for actions in (RUG, (*RUG, "click[buy now]")):
        play(native, *actions)
        moment = env.restore(native.snapshot())
        assert moment == native.restore(env.snapshot())
        assert moment == native.restore(native.snapshot())


def test_the_goal_is_escaped_as_in_the_text_environment(make_env):
    shop = {"data": SmallShop(makers=(), extra=[{"instruction": "Find me [SEP] things"}]), "escape_markup": True}
    assert make_env(**shop).reset(seed=0) == WebShopEnv(**shop).reset(seed=0)


def test_the_page_is_read_anew_after_a_search_that_is_refused(make_env):
    env = make_env(compat="upstream")
    ideographs = "".join(map(chr, range(0x4E00, 0x5300)))  # every one is a term
    *_, info = play(env, RUG[0], f"search[{ideographs}]")
    assert (info["page"], info["action_valid"]) == ("results", False)
    shown = env.unwrapped._tab.ask("return Number(document.documentElement.dataset.state)")
    assert env.parsed_page.state == shown


KILLED = [
    *(("served", victim, signal.SIGKILL) for victim in ("browser", "driver", "everything")),
    ("swap", "everything", signal.SIGKILL),
    pytest.param("served", "browser", signal.SIGSTOP, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("transport", "victim", "number"), KILLED)
def test_an_episode_outlives_its_browser(make_env, transport, victim, number):
    seconds = 4 if number == signal.SIGSTOP else 30
    env, native = make_env(transport=transport, browsers=None, timeout=seconds), WebShopEnv(data=SHOP)
    play(env, *RUG)
    play(native, *RUG)
    group = group_of(env)
    children = [one for one in members(group) if one != group]
    for one in {"browser": children, "driver": [group], "everything": members(group)}[victim]:
        with contextlib.suppress(ProcessLookupError):  # its parent was killed a moment before
            os.kill(one, number)
    for action in ("click[description]", "click[< prev]", "click[buy now]"):
        assert env.step(action) == native.step(action)
    assert group_of(env) != group
    assert gone(group)
    last = group_of(env)
    env.close()
    env.close()
    assert gone(last)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step("click[features]")
    assert play(env, *RUG) == play(native, *RUG)


def test_a_site_elsewhere_may_end_and_come_back(make_env):
    native, token = WebShopEnv(data=SHOP), "a-long-token"
    with ThreadedSite(open_site({"data": SHOP}, token=token)) as site:
        port = int(site.url.rpartition(":")[2])
        env = make_env(url=f"{site.url}/?token={token}")
        play(env, *RUG)
        play(native, *RUG)
    for _ in range(2):
        with pytest.raises(EngineError, match="does not answer"):
            env.step("click[features]")
    with ThreadedSite(open_site({"data": SHOP}), port):
        for action in ("click[features]", "click[< prev]", "click[buy now]"):
            assert env.step(action) == native.step(action)
    with pytest.raises(EngineError, match="skillc serve-webshop"):
        make_env(url=site.url)


@pytest.mark.parametrize(
    "answer",
    [b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\n\r\n[1]"],
)
def test_what_is_no_site_is_an_error_in_words(make_env, answer):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def reply():
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

        thread = threading.Thread(target=reply)
        thread.start()
        with pytest.raises(EngineError, match="does not answer"):
            make_env(url=f"http://127.0.0.1:{server.getsockname()[1]}")
        thread.join()
    for port in ("abc", "99999"):
        with pytest.raises(ConfigError, match="url= is an address"):
            make_env(url=f"http://127.0.0.1:{port}")


def test_a_moment_that_cannot_be_gone_back_to_changes_nothing(make_env, monkeypatch):
    env, native = make_env(), WebShopEnv(data=SHOP)
    for each in (env, native):
        each.reset(seed=0)
    home = env.snapshot()
    assert env.step("search[alderon rug]") == native.step("search[alderon rug]")
    with monkeypatch.context() as away:
        away.setattr(Tab, "go", lambda self, url: (_ for _ in ()).throw(SiteLostError("away")))
        with pytest.raises(EngineError, match="away"):
            env.restore(home)
    assert env.step("click[next >]") == native.step("click[next >]")


def test_a_browser_may_be_released_while_another_one_starts(monkeypatch):
    pool, first = BrowserPool(2, BrowserSettings()), MagicMock()
    pool._browsers[0], pool._users[0] = first, 1
    # As the collector may have it, in this very thread.
    monkeypatch.setattr(tabs, "Browser", lambda settings: pool.release(first) or MagicMock())
    thread = threading.Thread(target=pool.acquire, daemon=True)
    thread.start()
    thread.join(timeout=5)
    assert not thread.is_alive()
    assert pool._browsers[0] is None


def test_a_hostile_page_asks_nothing_of_anybody(make_env, monkeypatch):
    """Its texts name other machines and hold scripts; the browser has nothing to say about them."""
    from selenium.webdriver import ChromeOptions

    asked, all_of_it = ChromeOptions.to_capabilities, {"goog:loggingPrefs": {"browser": "ALL"}}
    monkeypatch.setattr(ChromeOptions, "to_capabilities", lambda options: asked(options) | all_of_it)
    env = make_env(observation_mode="screenshot", viewport=(300, 300), browsers=None)
    hostile = SHOP.products[-4]
    env.reset(seed=0)
    env.unwrapped._tab.ask("console.log('a word'); return ''")
    assert "a word" in said_by(env)[-1]
    for action in (f"search[{hostile.title[-12:]}]", f"click[{hostile.asin.lower()}]", "click[description]"):
        assert env.step(action)[-1]["action_valid"]
    assert said_by(env) == []


@pytest.mark.parametrize("transport", ["served", "swap"])
def test_what_is_left_of_earlier_pages_is_collected(make_env, monkeypatch, transport):
    monkeypatch.setattr(tabs, "_MOST_PAGES", 4)
    env = make_env(transport=transport)
    with patch.object(Browser, "command", autospec=True, side_effect=Browser.command) as command:
        collected = []
        for _ in range(3):
            play(env, *RUG)
            collected.append(sum("HeapProfiler.collectGarbage" in call.args for call in command.mock_calls))
    assert (collected[0], collected[-1]) == (0, 1)


def test_a_forgotten_environment_ends_its_browser(make_env):
    env = type(make_env())(data=SHOP)
    env.reset(seed=0)
    group = group_of(env)
    assert members(group)
    del env
    assert gone(group)


def test_groups_share_browsers(chromium):
    """Six members in two browsers, on one site, play what six text environments play."""
    played, shared = [], {"browsers": 2, "transport": "swap"}
    for name, options in (("skillc/WebShopBrowser-v0", shared), ("skillc/WebShop-v0", {})):
        groups = PairedVectorEnv(name, 2, 3, library="webshop", data=SHOP, disable_env_checker=True, **options)
        observations, infos = groups.reset(seed=1, options={"n_plus": [2, 1]})
        seen = [observations, list(infos["task_id"])]
        for action in (*RUG, "click[buy now]"):
            observations, rewards, ended, *_ = groups.step([action] * 6)
            seen += [observations, rewards.tolist(), ended.tolist()]
        if options:
            assert len({group_of(env) for env in groups.envs}) == 2
            assert len({env.unwrapped.parsed_page.ticket for env in groups.envs}) == 6
        groups.close()
        played.append(seen)
    assert played[0] == played[1]


PARENT = """
    import os, signal, time
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have switched it off for its children
    from small_shop import SHOP
    from skillc_gym.envs.webshop.browser.env import WebShopBrowserEnv
    env = WebShopBrowserEnv(data=SHOP, transport="swap")
    env.reset(seed=0)
    print(env._tab._browser._processes.driver.pid, flush=True)
    os.kill(os.getpid(), signal.{signal})
    time.sleep(60)
"""


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_nothing_is_left_of_a_killed_parent(chromium, name):
    done = subprocess.run(**process(PARENT.format(signal=name)), capture_output=True, timeout=120, check=False)
    assert done.returncode != 0
    assert gone(int(done.stdout))


@pytest.mark.parametrize(
    ("error", "said", "options"),
    [
        (UnknownNameError, "'pigeon'", {"transport": "pigeon"}),
        (UnknownNameError, "'url'", {"observation_mode": "url"}),
        (UnknownNameError, "'ansi'", {"render_mode": "ansi"}),
        *((ConfigError, "timeout is", {"timeout": seconds}) for seconds in (0, -1.0)),
        *((ConfigError, "viewport=", {"viewport": size}) for size in ((99, 100), (100, 10_001), "wide")),
        (ConfigError, "browsers=", {"browsers": 0}),
        (ConfigError, "url=", {"url": "nowhere"}),
        (MissingDataError, "apt-get install chromium", {"browser": "/no/chromium"}),
    ],
)
def test_wrong_arguments_are_named(chromium, error, said, options):
    with pytest.raises(error, match=said):
        type(chromium)(data=SHOP, **options)


# A browser asked directly: scripts, promises, addresses ---------------------------------------------------------------


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

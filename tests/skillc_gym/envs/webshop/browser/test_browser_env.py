"""The environment in a browser: modes, copies, and what happens when something dies."""

import asyncio
import contextlib
import copy
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hostile_shop import SHOP
from small_shop import RUG, SmallShop, play

from skillc_gym.envs.webshop.browser import tabs
from skillc_gym.envs.webshop.browser.chromium import Browser
from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.envs.webshop.site.app import Site
from skillc_gym.envs.webshop.site.server import ThreadedSite, open_site
from skillc_gym.errors import ConfigError, EngineError, MissingDataError, UnknownNameError
from skillc_gym.testing import TextEnvContract
from skillc_gym.vector import PairedVectorEnv

ROOT = Path(__file__).resolve().parents[5]


def members(group):
    """The processes of a group that are alive."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found[int(place.name)] = (place / "stat").read_text().rpartition(")")[2].split()
    return [number for number, fields in found.items() if int(fields[2]) == group and fields[0] != "Z"]


def send(process, number):
    """A signal to a process that may have ended by itself: its parent was killed a moment before."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


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


def test_a_tab_whose_document_has_no_root_yet_is_led_to_the_page(make_env):
    env = make_env(transport="swap")
    first, _ = env.reset(seed=0)
    env.unwrapped._tab.ask("document.documentElement.remove(); return ''")
    again, _ = env.reset(seed=0)
    assert again == first
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


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_go_on_in_the_middle(make_env, copied):
    env = make_env(transport="swap")
    play(env, *RUG)
    other = copied(env)
    assert other.step("click[features]") == env.step("click[features]")
    other.step("click[< prev]")
    assert (env.address[:8], other.address[:5]) == ("details?", "item?")
    other.close()


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
    assert make_env(**shop).reset(seed=0)[1]["goal"] == WebShopEnv(**shop).reset(seed=0)[1]["goal"]


def test_the_page_is_read_anew_after_a_search_that_is_refused(make_env):
    env = make_env(compat="upstream")
    ideographs = "".join(map(chr, range(0x4E00, 0x5300)))  # every one is a term
    *_, info = play(env, RUG[0], f"search[{ideographs}]")
    assert (info["page"], info["action_valid"]) == ("results", False)
    shown = env.unwrapped._tab.ask("return Number(document.documentElement.dataset.state)")
    assert env.parsed_page.state == shown


KILLED = [("served", "browser"), ("served", "driver"), ("served", "everything"), ("swap", "everything")]


@pytest.mark.parametrize(("transport", "victim"), KILLED)
def test_an_episode_outlives_its_browser(make_env, transport, victim):
    env, native = make_env(transport=transport, browsers=None), WebShopEnv(data=SHOP)
    play(env, *RUG)
    play(native, *RUG)
    group = browser_of(env).process_group
    children = [process for process in members(group) if process != group]
    for process in {"browser": children, "driver": [group], "everything": members(group)}[victim]:
        send(process, signal.SIGKILL)
    for action in ("click[description]", "click[< prev]", "click[buy now]"):
        assert env.step(action) == native.step(action)
    assert browser_of(env).process_group != group
    assert gone(group)
    last = browser_of(env).process_group
    env.close()
    env.close()
    assert gone(last)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step("click[features]")
    assert play(env, *RUG) == play(native, *RUG)


@pytest.mark.slow
def test_a_browser_that_hangs_is_replaced(make_env):
    env, native = make_env(browsers=None, timeout=4), WebShopEnv(data=SHOP)
    play(env, *RUG)
    play(native, *RUG)
    group = browser_of(env).process_group
    for process in members(group):
        if process != group:
            send(process, signal.SIGSTOP)
    assert env.step("click[features]") == native.step("click[features]")
    assert browser_of(env).process_group != group
    assert gone(group)


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
        with pytest.raises(ConfigError, match="another shop: prices"):
            make_env(url=site.url, seed_prices=3)
    with pytest.raises(EngineError, match="skillc serve-webshop"):
        make_env(url=site.url)


def test_a_hostile_page_asks_nothing_of_anybody(make_env):
    """Its texts name other machines and hold scripts; the browser has nothing to say about them."""
    env = make_env(observation_mode="screenshot", viewport=(300, 300))
    hostile = SHOP.products[-4]
    env.reset(seed=0)
    browser_of(env).log()
    for action in (f"search[{hostile.title[-12:]}]", f"click[{hostile.asin.lower()}]", "click[description]"):
        assert env.step(action)[-1]["action_valid"]
    assert browser_of(env).log() == []


@pytest.mark.parametrize("transport", ["served", "swap"])
def test_what_is_left_of_earlier_pages_is_collected(make_env, monkeypatch, transport):
    commands = []
    command = Browser.command
    monkeypatch.setattr(tabs, "_MOST_PAGES", 4)

    def spy(self, handle, name, **sent):
        commands.append(name)
        return command(self, handle, name, **sent)

    monkeypatch.setattr(Browser, "command", spy)
    env = make_env(transport=transport)
    play(env, *RUG)
    assert "HeapProfiler.collectGarbage" not in commands
    play(env, *RUG)
    play(env, *RUG)
    assert commands.count("HeapProfiler.collectGarbage") == 1


def test_a_forgotten_environment_ends_its_browser(make_env):
    env = type(make_env())(data=SHOP)
    env.reset(seed=0)
    group = browser_of(env).process_group
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
            assert len({browser_of(env).process_group for env in groups.envs}) == 2
            assert len({env.unwrapped.parsed_page.ticket for env in groups.envs}) == 6
        groups.close()
        played.append(seen)
    assert played[0] == played[1]


PARENT = """
    import os, signal, sys, time
    sys.path[:0] = {path!r}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have switched it off for its children
    from hostile_shop import SHOP
    from skillc_gym.envs.webshop.browser.env import WebShopBrowserEnv
    env = WebShopBrowserEnv(data=SHOP, transport="swap")
    env.reset(seed=0)
    print(env._tab._browser.process_group, flush=True)
    os.kill(os.getpid(), signal.{signal})
    time.sleep(60)
"""


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_nothing_is_left_of_a_killed_parent(chromium, name):
    here = Path(__file__).parent
    program = [sys.executable, "-c", textwrap.dedent(PARENT.format(path=[str(here), str(here.parent)], signal=name))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(program, capture_output=True, text=True, env=environment, timeout=120, check=False)
    assert done.returncode != 0
    assert gone(int(done.stdout))


WRONG = {
    "'pigeon'": (UnknownNameError, {"transport": "pigeon"}),
    "'url'": (UnknownNameError, {"observation_mode": "url"}),
    "'ansi'": (UnknownNameError, {"render_mode": "ansi"}),
    "'dev'": (UnknownNameError, {"split": "dev"}),
    "viewport": (ConfigError, {"viewport": (1, 1)}),
    "viewport=": (ConfigError, {"viewport": "wide"}),
    "browsers=": (ConfigError, {"browsers": 0}),
    "url=": (ConfigError, {"url": "nowhere"}),
    "apt-get install chromium": (MissingDataError, {"browser": "/no/chromium"}),
}


@pytest.mark.parametrize("said", WRONG)
def test_wrong_arguments_are_named(chromium, said):
    error, options = WRONG[said]
    with pytest.raises(error, match=said):
        type(chromium)(data=SHOP, **options)

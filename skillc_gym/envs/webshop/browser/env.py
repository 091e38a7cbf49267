"""WebShop in a real browser as a Gymnasium environment."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any
from weakref import finalize

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict
from numpy.typing import NDArray

from skillc_gym.envs.base import Info, Outcome, Snapshot, TextTaskEnv, rendered, require_render_mode, reset_needed
from skillc_gym.envs.webshop.browser.chromium import BrowserLostError
from skillc_gym.envs.webshop.browser.launch import BrowserSettings
from skillc_gym.envs.webshop.browser.parsed_page import ParsedPage
from skillc_gym.envs.webshop.browser.tabs import BrowserPool, NoSuchPageError, Tab, shared_pool
from skillc_gym.envs.webshop.browser.transports import (
    TRANSPORTS,
    RemoteSite,
    Served,
    ShopSite,
    Swapped,
    Transport,
    local_site,
)
from skillc_gym.envs.webshop.env import ShopState, WebShopEnv
from skillc_gym.envs.webshop.shop.pages import MAX_ACTION, read_action
from skillc_gym.envs.webshop.site.front import ShopFront
from skillc_gym.errors import ConfigError, require_name
from skillc_gym.spaces import Unicode

OBSERVATION_MODES = ("text", "text_rich", "html", "screenshot", "text_screenshot")
HOME_ADDRESS = "home"


class WebShopBrowserEnv(TextTaskEnv):
    """WebShop's episodes played in a real Chromium on the shop's own site.

    Actions, texts, infos, rewards, tasks and snapshots are those of ``skillc/WebShop-v0``; here they are read off the
    page in the browser. An episode's state is the address of its page: a browser that dies is replaced, and the
    episode continues from there. A pickled or copied environment starts a browser of its own at that address.

    Args:
        transport: "served" loads every page from the site and clicks with the mouse; "swap" exchanges pages within the
            browser, to the same answers, several times faster.
        url: A site that runs already (``skillc serve-webshop``) with the same shop, with its ``?token=...`` if it has
            one; by default a site is run in this process, for all environments with the same shop.
        observation_mode: "text", "text_rich", "html", "screenshot" (uint8 of shape (height, width, 3)) or
            "text_screenshot" (a dict of "text" and "screenshot").
        render_mode: "rgb_array" for pictures of the page, "human" to watch in a window, None for neither.
        viewport: Width and height of the page that is seen, in pixels.
        browsers: The number of browsers that all environments of this process with such settings share, a tab each;
            None for a browser of its own.
        browser: Chromium's program; found in PATH by default.
        driver: ChromeDriver's program; found in PATH by default.
        timeout: Seconds after which a browser that does not answer is replaced.
        **shop: The arguments of `skillc_gym.envs.webshop.env.WebShopEnv`: data, goals, split, compat and the rest.

    Raises:
        MissingDataError: There is no Chromium, no ChromeDriver or no catalogue.
        MissingExtraError: The extra "browser" is not installed.
        ConfigError: The site at ``url`` shows another shop.
        EngineError: The site does not answer, or no browser starts.

    Examples:
        >>> env = gymnasium.make("skillc/WebShopBrowser-v0", data="generated")   # doctest: +SKIP
        >>> observation, info = env.reset(seed=0)                                # doctest: +SKIP
        >>> observation, reward, bought, cut, info = env.step("search[red rug]") # doctest: +SKIP
    """

    metadata = rendered("rgb_array", "human", fps=2)

    def __init__(
        self,
        *,
        transport: str = "served",
        url: str | None = None,
        observation_mode: str = "text",
        render_mode: str | None = None,
        viewport: tuple[int, int] = (1024, 1280),
        browsers: int | None = None,
        browser: str | None = None,
        driver: str | None = None,
        timeout: float = 30.0,
        **shop: Any,
    ) -> None:
        require_name("observation mode", observation_mode, OBSERVATION_MODES)
        require_render_mode(render_mode, self.metadata)
        require_name("transport", transport, TRANSPORTS)
        if not 0 < timeout < math.inf:
            raise ConfigError(f"timeout is a number of seconds above 0, got {timeout!r}")
        # Its episode is the site's, which moves it about; here it is asked about tasks and rules only.
        self.core = WebShopEnv(**shop, observation_mode="url")
        self._site: ShopSite = local_site(self.core) if url is None else RemoteSite(url, ShopFront(self.core))
        pictures = render_mode is not None or "screenshot" in observation_mode
        self._settings = BrowserSettings(
            browser, driver, *_size(viewport), render_mode == "human", pictures, timeout, self._site.host
        )
        self._settings.programs()
        self._pool = BrowserPool(1, self._settings) if browsers is None else shared_pool(browsers, self._settings)
        self._shared = browsers is not None
        self._text_space: Any = self.core.observation_space
        self.observation_space = _space(observation_mode, self._settings, self._text_space)
        self.action_space = Unicode(MAX_ACTION)
        self.observation_mode, self.render_mode, self.transport = observation_mode, render_mode, transport
        self.goals = self.core.goals
        self._tab = Tab(self._pool, html=observation_mode == "html")
        finalize(self, self._tab.release)
        self._episode_transport: Transport | None = None
        self._task, self._address = 0, HOME_ADDRESS
        self._parsed: ParsedPage | None = None

    @property
    def task_ids(self) -> tuple[str, ...]:
        """The ids of all tasks of the split, sorted."""
        return self.core.task_ids

    def task_type_of(self, task_id: str) -> str:
        """The task type of one of the split's tasks, as `WebShopEnv.task_type_of` has it."""
        return self.core.task_type_of(task_id)

    def best_score(self, task_id: str) -> float:
        """Returns the score of buying a task's own product with exactly the options asked for."""
        return self.core.best_score(task_id)

    def identify(self, task_ids: Iterable[str]) -> Info:
        """Returns what identifies these tasks besides their names: catalogue, prices, goals, noun tagger, rules."""
        return self.core.identify(task_ids)

    @property
    def concurrent_steps(self) -> int:
        """How many such environments a vector may step at once: one per browser."""
        return self._pool.size if self._shared else os.cpu_count() or 1

    @property
    def address(self) -> str:
        """The address of the page within the episode."""
        return self._address

    @property
    def parsed_page(self) -> ParsedPage:
        """What stands on the page in the browser."""
        if self._parsed is None:
            self._open(self._address)
        assert self._parsed is not None
        return self._parsed

    def named_by_id(self, options: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Returns reset options in which ``task_id`` names the goal, as `WebShopEnv.named_by_id` does."""
        return self.core.named_by_id(options)

    def render(self) -> Any:
        """Returns a picture of the page: uint8 of shape (height, width, 3); None unless render_mode is "rgb_array"."""
        if self.render_mode != "rgb_array":
            return None
        if not self._task_id:
            raise reset_needed()
        return self._picture()

    def restore(self, snapshot: Snapshot) -> tuple[str, Info]:
        """Goes back to a snapshot, of this environment or of a ``skillc/WebShop-v0`` with the same shop."""
        _, info = super().restore(snapshot)
        self._observation = self._observe()
        return self._observation, info

    def close(self) -> None:
        """Ends the browser, or closes the tab in one that is shared. A later reset starts again."""
        self._tab.release()
        self._task_id = ""

    def _draw(self) -> str:
        return self.goals.task_id(self.core.draw_goal(self.np_random))

    def _start(self, task_id: str) -> Any:
        self._begin(task_id)
        self._open(HOME_ADDRESS)
        return self._observe()

    def _act(self, action: str) -> Outcome:
        parsed, fixed = self.parsed_page, self.core.fixes
        if parsed.kind == "done" and fixed.purchase_ends:
            return self._observation, 0.0, True, False
        after = self._done_in_browser(parsed, action)
        if after is None:
            return self._observation, 0.0, False, False
        self._parsed, self._address = after, after.address
        bought = after.kind == "done"
        return self._observe(), after.score or 0.0 if bought else 0.0, bought, True

    def _done_in_browser(self, parsed: ParsedPage, action: str) -> ParsedPage | None:
        """Carries out an action; None if it is not possible."""
        fixes = self.core.fixes
        find = partial(parsed.control, last_group=not fixes.every_group)
        asked = read_action(action, brackets=fixes.bracketed_values, is_there=lambda label: find(label) is not None)
        if asked is None:
            return None
        name, argument = asked
        if name == "search" and not parsed.searchable:
            return None
        if name == "search":
            after = self._ask(lambda transport, tab, now: transport.search(tab, now, argument))
            if after is None and self.transport == "served":
                self._parsed = None  # the site has answered with the page once more, under another number
            return after
        number = find(argument)
        return None if number is None else self._ask(lambda transport, tab, now: transport.click(tab, now, number))

    def _commands(self) -> list[str]:
        return self.parsed_page.actions

    def _score(self) -> float:
        return self.parsed_page.score or 0.0

    def _state(self) -> ShopState:
        front = self._site.front
        page = front.page_at(self._address)
        assert page is not None
        return front.state(self._task, page)

    def _restore_state(self, state: ShopState) -> None:
        before = self._address
        try:
            self._open(self._site.front.address(state.page))
        except BaseException:
            self._address = before
            raise

    def _return_to(self, task_id: str, state: ShopState) -> None:
        self._begin(task_id)
        self._restore_state(state)

    def _separate(self) -> None:
        if not self._shared:
            self._pool = BrowserPool(1, self._settings)
        self._tab = Tab(self._pool, html=self.observation_mode == "html")
        finalize(self, self._tab.release)
        self._episode_transport, self._parsed = None, None

    def _info(self) -> Info:
        info, parsed = super()._info(), self.parsed_page
        # What the page of a purchase does not say of its score, the shop in this process does.
        reward = self._state().reward if parsed.kind == "done" else None
        return {
            **info,
            "available_actions": info["admissible_commands"],
            "has_search_bar": parsed.kind == "index",
            "clickables": parsed.clickables,
            "page": parsed.kind,
            "selected_options": parsed.selected,
            "query_cut": parsed.facts["query_cut"],
            "noun_tagger": self.core.tagger.id,
            **({} if reward is None else reward.parts()),
        }

    def _begin(self, task_id: str) -> None:
        self._task = self.goals.index(task_id)
        self.goal = self.core.shown_goal(self._task).instruction
        self._episode_transport = None

    def _open(self, address: str) -> None:
        self._parsed = None
        self._address = address
        self._parsed = self._ask(lambda transport, tab, now: now)
        assert self._parsed is not None

    def _ask(self, work: Callable[[Transport, Tab, ParsedPage], ParsedPage | None]) -> ParsedPage | None:
        """Does something on the episode's page; in a new browser, from the same address, if the old one is lost."""
        for attempt in (1, 2):
            try:
                return work(*self._at_page())
            except BrowserLostError:
                self._parsed = None
                self._tab.restart()
                if attempt == 2:
                    raise
            except BaseException:
                self._parsed = None  # it is unknown which page the browser shows now
                raise
        return None

    def _at_page(self) -> tuple[Transport, Tab, ParsedPage]:
        """The transport, a tab and what stands there, the page being that of the episode's address."""
        if self._parsed is None:
            try:
                self._parsed = self._transport().open(self._tab, self._address)
            except NoSuchPageError:
                self._episode_transport = None  # the site has been restarted and knows no earlier episode
                self._parsed = self._transport().open(self._tab, self._address)
        return self._transport(), self._tab, self._parsed

    def _transport(self) -> Transport:
        if self._episode_transport is None:
            episode = self._site.episode(self._task)
            served = self.transport == "served"
            self._episode_transport = (
                Served(episode) if served else Swapped(episode, self._site.front, self._task, self.np_random)
            )
        return self._episode_transport

    def _observe(self) -> Any:
        if self.observation_mode == "screenshot":
            return self._picture()
        if self.observation_mode == "text_screenshot":
            return {"text": self._text("text"), "screenshot": self._picture()}
        return self._text(self.observation_mode)

    def _text(self, mode: str) -> str:
        return self.parsed_page.observation(mode)[: self._text_space.max_length]

    def _picture(self) -> NDArray[np.uint8]:
        taken: list[NDArray[np.uint8]] = []

        def take(transport: Transport, tab: Tab, now: ParsedPage) -> ParsedPage:
            taken.append(tab.screenshot())
            return now

        self._ask(take)
        return taken[-1]


def _size(viewport: tuple[int, int]) -> tuple[int, int]:
    try:
        width, height = (int(length) for length in viewport)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"viewport= is (width, height) in pixels, got {viewport!r}.") from error
    if not (100 <= width <= 10_000 and 100 <= height <= 10_000):
        raise ConfigError(f"viewport= is (width, height), each from 100 to 10,000 pixels, got {viewport!r}.")
    return width, height


def _space(mode: str, settings: BrowserSettings, text: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
    picture = Box(0, 255, (settings.height, settings.width, 3), np.uint8)
    return {"screenshot": picture, "text_screenshot": Dict({"text": text, "screenshot": picture})}.get(mode, text)

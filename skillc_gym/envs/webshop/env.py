"""WebShop as a Gymnasium environment."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skillc_gym.envs.base import Info, Outcome, Snapshot, TextTaskEnv, rendered, require_render_mode, reset_needed
from skillc_gym.envs.webshop.catalog.catalog import escape_marks
from skillc_gym.envs.webshop.catalog.generate import GENERATOR_OPTIONS
from skillc_gym.envs.webshop.catalog.image_features import FEATURES, ImageFeatures
from skillc_gym.envs.webshop.catalog.opening import Source, open_catalog
from skillc_gym.envs.webshop.goals.goals import Goal
from skillc_gym.envs.webshop.goals.nouns import NounTagger, nouns_of
from skillc_gym.envs.webshop.goals.nouns import noun_tagger as find_tagger
from skillc_gym.envs.webshop.goals.reward import Reward, score
from skillc_gym.envs.webshop.goals.tables import open_goals
from skillc_gym.envs.webshop.shop import nodes
from skillc_gym.envs.webshop.shop.compat import Fixes, fixes, goal_of_session, read_upstream
from skillc_gym.envs.webshop.shop.nodes import SEPARATOR, View, instruction_nodes
from skillc_gym.envs.webshop.shop.pages import HOME, MAX_ACTION, Page
from skillc_gym.envs.webshop.shop.store import open_store
from skillc_gym.envs.webshop.spec import TASK_TYPE
from skillc_gym.errors import ConfigError, require_name
from skillc_gym.pages import text_picture
from skillc_gym.spaces import Unicode
from skillc_gym.values import require_switch

OBSERVATION_MODES = ("text", "text_rich", "html", "url")
MAX_OBSERVATION = 1 << 20
_UPSTREAM_ACTION, _UPSTREAM_OBSERVATION = 1 << 18, 1 << 26
"""Upstream searches for words of any length; a search for so many takes seconds, and HTML repeats them in ten links."""


class ShopState(NamedTuple):
    """Where a customer is: the page, and the reward of the purchase that led there, if any."""

    page: Page
    reward: Reward | None


class WebShopEnv(TextTaskEnv):
    """Shopping by text: search, browse, choose options and buy what an instruction asks for.

    Actions are ``search[words]`` and ``click[label]``. Anything else, and a click on what is not there, changes
    nothing, costs a step and is never an error. The reward is the purchase's score in [0, 1], else 0.0; a purchase
    terminates.

    ``info`` always has: task_id, task_type ("shopping"), goal (the instruction), available_actions and the same list as
    admissible_commands (``search[<query>]`` where there is a search bar; ``click[...]``), has_search_bar and clickables
    as upstream lists them, page ("index", "results", "item", "sub" or "done"), selected_options (``group: value``),
    won (1.0 for a score of exactly 1), task_score, action_valid (False for what changed nothing; True at reset),
    query_cut (whether the query had too many terms) and noun_tagger (its id). A purchase adds r_type, r_att, r_price,
    r_option (if the goal has options), their weights w_att, w_option, w_price, and query_match, category_match,
    title_score.

    Args:
        data: A folder made by ``skillc tools make-catalog`` or with upstream's files, a mapping with their paths,
            "generated", a catalogue that is open already, or None for the default place.
        goals: "synthetic" or "human".
        split: "all", "train", "valid" or "test".
        observation_mode: "text", "text_rich", "html" or "url".
        noun_tagger: As in `skillc_gym.envs.webshop.goals.nouns.noun_tagger`; None for the built-in one.
        compat: "fixed", or "upstream" for its defects as well; `skillc_gym.envs.webshop.shop.compat.Fixes` lists them.
        seed_prices: Seeds the prices hidden behind ranges and the goals' highest prices.
        show_attributes: Whether products have a tab "Attributes".
        escape_markup: Whether marks of a page in the products' own text (``[SEP]``, ``[button]``) are written in round
            brackets, so that no title can draw a button. Upstream shows them as they are.
        generator: Options of the generator, with data="generated" only.
        goal_order: "upstream" for its shuffle of the goals (seed 233), or "verl-agent" for that one's (seed 42), in
            which an index names another task and "train" begins at goal 500 ("valid" and "test" are both the goals
            before it), or "verl-agent:1000:128" for the goals of "train" or "test" that its vector of that seed and
            so many groups draws, or "products" to keep a product's goals together: the split "test" then asks for
            products that "train" never asks for.
        image_features: An ``.npz`` file of the features of products' pictures, for `get_image`.
        render_mode: "ansi" or "html" to draw the page, "rgb_array" for its text as a picture; None otherwise.
        **upstream: Arguments under upstream's names (human_goals, num_products, show_attrs, ...), which are taken for
            ours or answered with what replaces them.

    Raises:
        UnknownNameError: If a split, mode or other name does not exist.
        MissingDataError: If there is no catalogue; the message says where it looked and what to do.

    Examples:
        >>> env = gymnasium.make("skillc/WebShop-v0", data="generated")          # doctest: +SKIP
        >>> observation, info = env.reset(seed=0)                                # doctest: +SKIP
        >>> observation, reward, bought, cut, info = env.step("search[red rug]") # doctest: +SKIP
    """

    metadata = rendered("ansi", "html", "rgb_array")

    def __init__(
        self,
        *,
        data: Source = None,
        goals: str = "synthetic",
        split: str = "all",
        observation_mode: str = "text",
        noun_tagger: str | NounTagger | Callable[[str], Sequence[str]] | None = None,
        compat: str | Fixes = "fixed",
        seed_prices: int = 0,
        show_attributes: bool = False,
        escape_markup: bool = False,
        generator: Mapping[str, Any] | None = None,
        goal_order: str = "upstream",
        image_features: str | os.PathLike[str] | None = None,
        render_mode: str | None = None,
        **upstream: Any,
    ) -> None:
        theirs = read_upstream(upstream)
        if goals == "human" and theirs.get("goals") == "synthetic":
            raise ConfigError("goals='human' and human_goals=False contradict each other; leave one of them out.")
        if show_attributes and theirs.get("show_attributes") is False:
            raise ConfigError("show_attributes=True and show_attrs=False contradict each other; leave one of them out.")
        goals, show_attributes = theirs.get("goals", goals), theirs.get("show_attributes", show_attributes)
        require_name("observation mode", observation_mode, OBSERVATION_MODES)
        self.render_mode = require_render_mode(render_mode, self.metadata)
        self.show_attributes = require_switch("show_attributes", show_attributes)
        self.escape_markup = require_switch("escape_markup", escape_markup)
        if generator is not None and not isinstance(generator, Mapping):
            raise ConfigError(f"generator= is a dictionary such as {{'size': 1000}}; got {generator!r}.")
        if generator and data != "generated":
            raise ConfigError(f"generator={dict(generator)} needs data='generated'; got data={data!r}.")
        for name in generator or ():
            require_name("option of the generator", name, GENERATOR_OPTIONS)
        self.catalog = open_catalog(data, num_products=theirs.get("num_products"), **(generator or {}))
        self.fixes = fixes(compat)
        self.goals = open_goals(self.catalog, kind=goals, split=split, seed=seed_prices, order=goal_order)
        self.tagger = find_tagger(noun_tagger)
        self.tagger.nouns("red rug")  # what gives no nouns is refused here, and not at a purchase
        self._nouns = nouns_of(self.catalog, self.tagger)
        self._longest = MAX_OBSERVATION if self.fixes.long_queries else _UPSTREAM_OBSERVATION
        self.observation_space = Unicode(self._longest)
        self.action_space = Unicode(MAX_ACTION if self.fixes.long_queries else _UPSTREAM_ACTION)
        self.observation_mode = observation_mode
        self._store = open_store(self.catalog, self.fixes, self.show_attributes, self.escape_markup)
        self._images = None if image_features is None else ImageFeatures(image_features)
        self._goal: Goal | None = None
        self._head, self._page, self._body = "", HOME, self._store.body(HOME)
        self._reward: Reward | None = None

    @property
    def task_ids(self) -> tuple[str, ...]:
        """The ids of all tasks of the split, sorted."""
        return self.goals.task_ids

    def task_type_of(self, task_id: str) -> str:
        """The task type of one of the split's tasks, of which there is one; UnknownNameError for any other id."""
        self.goals.index(task_id)
        return TASK_TYPE

    def named_by_id(self, options: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Returns reset options in which ``task_id`` names the goal; upstream's ``{"session": 3}`` is goal 3."""
        return goal_of_session(options, self.goals.kind)

    def get_instruction_text(self) -> str:
        """Returns the instruction as upstream's method of this name does; on the last page, too, where that raises."""
        label = "Instruction: " if self._page.kind == "index" else "Instruction:"
        return f"{label}{self._playing().instruction}"

    def get_available_actions(self) -> dict[str, Any]:
        """Returns what upstream's method of this name does: has_search_bar and clickables."""
        return {"has_search_bar": self._page.kind == "index", "clickables": list(self._body.clickables)}

    def get_image(self) -> NDArray[np.float32]:
        """Returns the features of the picture of a product's page: float32 of shape (512,), zeros on all others."""
        product = self._store.product(self._page)
        if self._images is None or product is None or self._page.kind != "item":
            return np.zeros(FEATURES, np.float32)
        return self._images.of(product.main_image)

    def render(self) -> Any:
        """Returns the page: text with marks, HTML, or the text as a picture, uint8 of shape (720, 960, 3)."""
        if self.render_mode is None:
            return None
        if self.render_mode == "html":
            return nodes.page_document(self.fragment())
        text = self._rich(self._playing())
        return text_picture(text) if self.render_mode == "rgb_array" else text

    def restore(self, snapshot: Snapshot) -> tuple[str, Info]:
        """Goes back to a snapshot, and returns the page in this environment's ``observation_mode``, and the info."""
        _, info = super().restore(snapshot)
        self._observation = self._observe()
        return self._observation, info

    @property
    def url(self) -> str:
        """The address upstream's site would show."""
        return self._store.url(self._page, str(self._playing().index))

    @property
    def address(self) -> str:
        """The address of the page on the suite's own site, within an episode."""
        return self._store.address(self._page)

    def fragment(self, *, person: bool = False) -> str:
        """Returns the page as HTML, with relative addresses, without what stands around it.

        For a ``person``, prices and scores are written as people do, and buttons that lead nowhere are left out.
        """
        goal, page, store = self._playing(), self._page, self._store
        listings = store.listings(page) if page.kind == "results" else ()
        link = partial(store.link, page, generator=self.np_random)
        view = View(store.product(page), listings, link, store.clicked(page, self.url), person)
        return nodes.page_fragment(page, store.nodes(page), goal.instruction, view)

    def best_score(self, task_id: str) -> float:
        """Returns the score of buying a task's own product with exactly the options asked for.

        It is below 1 for the tasks whose options can never count; another product may still reach 1.
        """
        goal = self.goals.goal(self.goals.index(task_id))
        options = tuple(("", option) if isinstance(option, str) else option for option in goal.options)
        pairs = tuple((f"{place} {name}", value) for place, (name, value) in enumerate(options))
        own = int(self.goals.table.product[goal.index])
        return self.rate(goal, Page("done", product=own, options=pairs)).total

    def identify(self, task_ids: Iterable[str]) -> Info:
        """Returns what identifies these tasks besides their names: catalogue, prices, goals, noun tagger, rules."""
        goals = "".join(f"{self.goals.goal(self.goals.index(task_id))!r}\n" for task_id in task_ids)
        prices = hashlib.sha256()
        for one in self.goals.prices():
            prices.update(np.ascontiguousarray(one, dtype="<f8").tobytes())
        upstream_defects = sorted(name for name, mended in asdict(self.fixes).items() if not mended)
        return {
            "catalogue_sha256": self.catalog.sha256,
            "prices_sha256": prices.hexdigest(),
            "goals_sha256": hashlib.sha256(goals.encode("utf-8", "surrogatepass")).hexdigest(),
            "noun_tagger": self.tagger.id,
            "unmended": upstream_defects,  # under the name that the hashes of panels have known since the first record
        }

    def draw_goal(self, generator: np.random.Generator) -> int:
        """Draws a goal of the split by the rules in force; returns its index."""
        return self.goals.draw(generator, skewed=not self.fixes.fair_draws)

    def shown_goal(self, index: int) -> Goal:
        """Returns a goal as its pages show it: without marks in its instruction where ``escape_markup`` is on."""
        goal = self.goals.goal(index)
        return replace(goal, instruction=escape_marks(goal.instruction)) if self.escape_markup else goal

    def _draw(self) -> str:
        return self.goals.task_id(self.draw_goal(self.np_random))

    def _start(self, task_id: str) -> str:
        task = int(task_id.rpartition("/")[2])
        if self._goal is None or self._goal.index != task:
            self._goal = self.shown_goal(task)
            self.goal = self._goal.instruction
            self._head = nodes.page_text(instruction_nodes("Instruction:", self._goal.instruction)) + SEPARATOR
        self._reward = None
        self._go(HOME)
        return self._observe()

    def _act(self, action: str) -> Outcome:
        goal = self._playing()
        ended = self._page.kind == "done" and self.fixes.purchase_ends
        page = None if ended else self._store.act(self._page, action, self.np_random)
        gained, bought = 0.0, False
        if page is not None:
            self._reward = None
            if page.kind == "done":
                self._reward = self.rate(goal, page)
                gained, bought = self._reward.total, True
                page = page._replace(reward=gained)
            self._go(page)
        return self._observe(), gained, bought or ended, page is not None

    def _state(self) -> ShopState:
        return ShopState(self._page, self._reward)

    def _restore_state(self, state: ShopState) -> None:
        self._reward = state.reward
        self._go(state.page)

    def _separate(self) -> None:
        self._goal = self._reward = None
        self._go(HOME)

    def _go(self, page: Page) -> None:
        self._page, self._body = page, self._store.body(page)

    def rate(self, goal: Goal, page: Page) -> Reward:
        """Scores buying what a page shows, with the options chosen there, against a goal."""
        product, chosen = self.catalog.product(page.product), [value for _, value in page.options]
        own = int(self.goals.table.product[goal.index])
        nouns = {"goal_nouns": self._nouns(own), "product_nouns": self._nouns(page.product)}
        return score(goal, product, chosen, self.goals.price(goal, page.product), **nouns)

    def _observe(self) -> str:
        return self._shown()[: self._longest]

    def _shown(self) -> str:
        kind = self._page.kind
        if self.observation_mode == "text":
            if kind == "index":
                return f"WebShop{SEPARATOR}{self._head}{self._body.text}"
            return self._body.text if kind == "done" else self._head + self._body.text
        if self.observation_mode == "url":
            return self.url
        goal = self._playing()
        return self._rich(goal) if self.observation_mode == "text_rich" else nodes.page_document(self.fragment())

    def _rich(self, goal: Goal) -> str:
        found = self._store.nodes(self._page)
        if self._page.kind == "index":
            found = nodes.index_nodes(goal.instruction)
        elif self._page.kind != "done":
            found = [*instruction_nodes("Instruction:", goal.instruction), *found]
        return nodes.rich_text(found, self._store.clicked(self._page, self.url))

    def _playing(self) -> Goal:
        if self._goal is None:
            raise reset_needed()
        return self._goal

    def _commands(self) -> list[str]:
        actions = self._body.actions
        return ["search[<query>]", *actions] if self._page.kind == "index" else list(actions)

    def _score(self) -> float:
        return 0.0 if self._reward is None else self._reward.total

    def _info(self) -> Info:
        page, body, score, actions = self._page, self._body, self._score(), self._commands()
        # The base's entries too, in one literal: this is a fifth of a step.
        info: Info = {
            "task_id": self._task_id,
            "task_type": TASK_TYPE,
            "goal": self.goal,
            "admissible_commands": actions,
            "won": 1.0 if score == 1.0 else 0.0,
            "task_score": score,
            "action_valid": self._action_valid,
            "available_actions": actions,
            "has_search_bar": page.kind == "index",
            "clickables": list(body.clickables),
            "page": page.kind,
            "selected_options": [f"{group}: {value}" for group, value in page.options] if page.options else [],
            "query_cut": page.cut,
            "noun_tagger": self.tagger.id,
        }
        if self._reward is not None:
            info.update(self._reward.parts())
        return info

"""WebShop as a Gymnasium environment."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import gymnasium
from gymnasium.error import ResetNeeded

from skillc_gym.envs.webshop.catalog.catalog import Catalog
from skillc_gym.envs.webshop.goals.goal_sets import open_goals
from skillc_gym.envs.webshop.goals.goals import Goal
from skillc_gym.envs.webshop.goals.nouns import NounTagger
from skillc_gym.envs.webshop.goals.nouns import noun_tagger as find_tagger
from skillc_gym.envs.webshop.goals.reward import Reward, score
from skillc_gym.envs.webshop.shop import nodes
from skillc_gym.envs.webshop.shop.compat import Fixes, fixes
from skillc_gym.envs.webshop.shop.html import View, page_document, page_fragment
from skillc_gym.envs.webshop.shop.pages import HOME, Page
from skillc_gym.envs.webshop.shop.sharing import find_catalog, open_nouns, open_store
from skillc_gym.envs.webshop.spec import TASK_TYPE
from skillc_gym.errors import ConfigError, unknown_name
from skillc_gym.spaces import Unicode

__all__ = ["OBSERVATION_MODES", "TASK_TYPE", "Snapshot", "WebShopEnv"]

OBSERVATION_MODES = ("text", "text_rich", "html", "url")
MAX_OBSERVATION = 1 << 20
MAX_ACTION = 4_096

Info = dict[str, Any]


class Snapshot(NamedTuple):
    """An environment's moment: the task, the page and the last action. Small, immutable and picklable.

    The step count of a `TimeLimit` and the random generator that chooses tasks are not part of it.
    """

    task: int
    page: Page
    action: str | None
    action_valid: bool
    reward: Reward | None


class WebShopEnv(gymnasium.Env[str, str]):
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
        data: A folder made by ``scripts/make_catalog.py`` or with upstream's files, a mapping with their paths,
            "generated", a catalogue that is open already, or None for the default place.
        goals: "synthetic" or "human".
        split: "all", "train", "valid" or "test".
        observation_mode: "text", "text_rich", "html" or "url".
        noun_tagger: As in `skillc_gym.envs.webshop.goals.nouns.noun_tagger`; None for the built-in one.
        compat: "fixed", or "upstream" for its defects as well; `skillc_gym.envs.webshop.shop.compat.FIXES` lists them.
        seed_prices: Seeds the prices hidden behind ranges and the goals' highest prices.
        show_attributes: Whether products have a tab "Attributes".
        generator: Options of the generator, with data="generated" only.
        render_mode: "ansi" or "html" to draw the page; None otherwise.

    Raises:
        UnknownNameError: If a split, mode or other name does not exist.
        MissingDataError: If there is no catalogue; the message says where it looked and what to do.

    Example:
        >>> env = gymnasium.make("skillc/WebShop-v0", data="generated")          # doctest: +SKIP
        >>> observation, info = env.reset(seed=0)                                # doctest: +SKIP
        >>> observation, reward, bought, cut, info = env.step("search[red rug]") # doctest: +SKIP
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "html"], "render_fps": 4}  # type: ignore[misc]

    def __init__(
        self,
        *,
        data: str | os.PathLike[str] | Mapping[str, Any] | Catalog | None = None,
        goals: str = "synthetic",
        split: str = "all",
        observation_mode: str = "text",
        noun_tagger: str | NounTagger | Callable[[str], Sequence[str]] | None = None,
        compat: str | Fixes = "fixed",
        seed_prices: int = 0,
        show_attributes: bool = False,
        generator: Mapping[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        if observation_mode not in OBSERVATION_MODES:
            raise unknown_name("observation mode", observation_mode, OBSERVATION_MODES)
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise unknown_name("render mode", render_mode, self.metadata["render_modes"], "Leave it out for none.")
        if generator and data != "generated":
            raise ConfigError(f"generator={dict(generator)} needs data='generated'; got data={data!r}.")
        self.catalog = find_catalog(data, generator or {})
        self.fixes = fixes(compat)
        self.goals = open_goals(self.catalog, kind=goals, split=split, seed=seed_prices)
        self.tagger = find_tagger(noun_tagger)
        self._nouns = open_nouns(self.catalog, self.tagger)
        self.observation_space = Unicode(MAX_OBSERVATION)
        self.action_space = Unicode(MAX_ACTION)
        self.observation_mode, self.render_mode = observation_mode, render_mode
        self.show_attributes = show_attributes
        self._store = open_store(self.catalog, self.fixes, show_attributes)
        self._goal: Goal | None = None
        self._head, self._page, self._body = "", HOME, self._store.body(HOME)
        self._action: str | None = None
        self._action_valid = True
        self._reward: Reward | None = None

    def twin(self) -> WebShopEnv:
        """Returns another environment on the same catalogue and goals; it is not reset yet."""
        twin = copy.copy(self)
        twin._goal, twin._np_random, twin._np_random_seed = None, None, None
        return twin

    @property
    def task_ids(self) -> tuple[str, ...]:
        """The ids of all tasks of the split, sorted."""
        return self.goals.task_ids

    def task_type_of(self, task_id: str) -> str:
        """The task type of one of the split's tasks: there is one only.

        Raises:
            UnknownNameError: If the task id is not one of `task_ids`.
        """
        self.goals.index(task_id)
        return TASK_TYPE

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, Info]:
        """Starts a task.

        Args:
            seed: Seeds the choice of tasks.
            options: ``{"task_id": ...}`` names the task; without it, one is drawn by the goals' weights.

        Raises:
            UnknownNameError: If the task id is not one of `task_ids`.
            ConfigError: If there is an option that is not known here.
        """
        super().reset(seed=seed)
        task_id = _task_option(options)
        if task_id is None:
            task = self.goals.draw(self.np_random, skewed=not self.fixes.fair_draws)
        else:
            task = self.goals.index(task_id)
        self._begin(task)
        self._action, self._action_valid, self._reward = None, True, None
        self._go(HOME)
        return self._observe(), self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, Info]:
        """Carries out an action.

        Args:
            action: ``search[words]`` or ``click[label]``; anything else changes nothing.

        Returns:
            observation, reward (a purchase's score, else 0.0), terminated, truncated (always False), info.
        """
        goal = self._playing()
        self._action = action if isinstance(action, str) else ""
        ended = self._page.kind == "done" and self.fixes.purchase_ends
        page = None if ended else self._store.act(self._page, self._action, self.np_random)
        self._action_valid = page is not None
        gained, bought = 0.0, False
        if page is not None:
            self._reward = None
            if page.kind == "done":
                self._reward = self._score(goal, page)
                gained, bought = self._reward.total, True
                page = page._replace(reward=gained)
            self._go(page)
        return self._observe(), gained, bought or ended, False, self._info()

    def render(self) -> str | None:
        """Returns the page in the mode of `render_mode`: text with marks, or HTML."""
        if self.render_mode is None:
            return None
        goal = self._playing()
        return page_document(self.fragment()) if self.render_mode == "html" else self._rich(goal)

    def snapshot(self) -> Snapshot:
        """Returns the moment, to come back to with `restore`, in this environment or another one on the same goals."""
        return Snapshot(self._playing().index, self._page, self._action, self._action_valid, self._reward)

    def restore(self, snapshot: Snapshot) -> tuple[str, Info]:
        """Goes back to a snapshot.

        Returns:
            The observation and the info of that moment.
        """
        self._begin(snapshot.task)
        _, page, self._action, self._action_valid, self._reward = snapshot
        self._go(page)
        return self._observe(), self._info()

    @property
    def url(self) -> str:
        """The address upstream's site would show."""
        return self._store.url(self._page, str(self._playing().index))

    def fragment(self) -> str:
        """Returns the page as HTML without what stands around it; its links are relative addresses of pages."""
        goal, page, store = self._playing(), self._page, self._store
        view = View(
            product=store.product(page),
            listings=store.listings(page) if page.kind == "results" else (),
            link=lambda listing: store.link(page, listing, self.np_random),
            clicked=store.clicked(page, self.url),
        )
        return page_fragment(page, store.nodes(page), goal.instruction, view)

    def best_score(self, task_id: str) -> float:
        """Returns the score of buying a task's own product with exactly the options asked for.

        It is below 1 for the tasks whose options can never count; another product may still reach 1.
        """
        goal = self.goals.goal(self.goals.index(task_id))
        options = tuple(("", option) if isinstance(option, str) else option for option in goal.options)
        pairs = tuple((f"{place} {name}", value) for place, (name, value) in enumerate(options))
        own = int(self.goals.table.product[goal.index])
        return self._score(goal, Page("done", product=own, options=pairs)).total

    def _begin(self, task: int) -> None:
        if self._goal is None or self._goal.index != task:
            self._goal = self.goals.goal(task)
            self._head = nodes.text(nodes.instruction_nodes("Instruction:", self._goal.instruction)) + nodes.SEPARATOR

    def _go(self, page: Page) -> None:
        self._page, self._body = page, self._store.body(page)

    def _score(self, goal: Goal, page: Page) -> Reward:
        product = self.catalog.product(page.product)
        return score(
            goal,
            product,
            [value for _, value in page.options],
            float(self.goals.table.prices[page.product]),
            goal_nouns=self._nouns(int(self.goals.table.product[goal.index])),
            product_nouns=self._nouns(page.product),
        )

    def _observe(self) -> str:
        kind = self._page.kind
        if self.observation_mode == "text":
            if kind == "index":
                return f"WebShop{nodes.SEPARATOR}{self._head}{self._body.text}"
            return self._body.text if kind == "done" else self._head + self._body.text
        if self.observation_mode == "url":
            return self.url
        goal = self._playing()
        return self._rich(goal) if self.observation_mode == "text_rich" else page_document(self.fragment())

    def _rich(self, goal: Goal) -> str:
        found = self._store.nodes(self._page)
        if self._page.kind == "index":
            found = nodes.index_nodes(goal.instruction)
        elif self._page.kind != "done":
            found = [*nodes.instruction_nodes("Instruction:", goal.instruction), *found]
        return nodes.rich(found, self._store.clicked(self._page, self.url))

    def _playing(self) -> Goal:
        if self._goal is None:
            raise ResetNeeded("No task is being played: call reset() first.")
        return self._goal

    def _info(self) -> Info:
        goal, page, body = self._playing(), self._page, self._body
        index = page.kind == "index"
        actions = ["search[<query>]", *body.actions] if index else list(body.actions)
        total = 0.0 if self._reward is None else self._reward.total
        info: Info = {
            "task_id": self.goals.task_id(goal.index),
            "task_type": TASK_TYPE,
            "goal": goal.instruction,
            "available_actions": actions,
            "admissible_commands": actions,
            "has_search_bar": index,
            "clickables": list(body.clickables),
            "page": page.kind,
            "selected_options": [f"{group}: {value}" for group, value in page.options],
            "won": float(total == 1.0),
            "task_score": total,
            "action_valid": self._action_valid,
            "query_cut": page.cut,
            "noun_tagger": self.tagger.id,
        }
        if self._reward is not None:
            info.update(self._reward.parts())
        return info


def _task_option(options: Mapping[str, Any] | None) -> str | None:
    options = options or {}
    for name in options:
        if name not in ("task_id", "skill"):
            raise ConfigError(f"Unknown reset option {name!r}; this environment knows 'task_id'.")
    if options.get("skill"):
        raise ConfigError("The option 'skill' needs an environment wrapped in skillc_gym.wrappers.SkillInjection.")
    task_id = options.get("task_id")
    if task_id is not None and not isinstance(task_id, str):
        raise ConfigError(f"The option 'task_id' is a string such as env.unwrapped.task_ids[0]; got {task_id!r}.")
    return task_id

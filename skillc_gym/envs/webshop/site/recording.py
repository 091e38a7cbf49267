"""Keeping what people do as demonstrations, in the same lines as agents' episodes."""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple

from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.envs.webshop.shop.pages import HOME, Page
from skillc_gym.envs.webshop.site.front import ShopFront
from skillc_gym.episodes import Episode, EpisodeRecorder
from skillc_gym.errors import ConfigError

__all__ = ["Recording"]

logger = logging.getLogger(__name__)
_MOST_OPEN = 10_000


class _Step(NamedTuple):
    before: str
    action: str
    after: str


class Recording:
    """Follows people through the shop and writes down every episode that ends with a purchase.

    Whoever goes back and on from there has taken back what came in between, so that a recorded episode is the path that
    led to the purchase. It is played once more in the text environment, whose observations are what is kept.

    Args:
        path: The file, to which a line is added per episode; its folder is made.
        front: The shop.
        core: A text environment of the same shop, in the mode "text".

    Raises:
        ConfigError: The file cannot be written.
    """

    def __init__(self, path: Path, front: ShopFront, core: WebShopEnv) -> None:
        self._path, self._front, self._core = path, front, core
        self._open: OrderedDict[str, list[_Step]] = OrderedDict()
        self._written: set[str] = set()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.open("a", encoding="ascii").close()
        except OSError as error:
            raise ConfigError(f"Demonstrations cannot be kept in {path} ({error}); choose another file.") from error

    def note(self, ticket: str, task: int, before: Page, action: str, after: Page) -> None:
        """Takes down a step.

        Args:
            ticket: The episode.
            task: The index of its goal.
            before: Where the person was.
            action: What the person did, as an agent would say it.
            after: Where that led.
        """
        if ticket in self._written or self._front.act(task, before, action) != after:
            return
        step = _Step(self._front.address(before), action, self._front.address(after))
        steps = self._steps_to(ticket, step.before)
        if steps is None:
            return
        self._open[ticket] = [*steps, step]
        self._open.move_to_end(ticket)
        if len(self._open) > _MOST_OPEN:
            self._open.popitem(last=False)
        if after.kind == "done":
            self._write(ticket, task)

    def note_visit(self, ticket: str, task: int, before: Page, after: Page) -> None:
        """Takes down a visit of a product by its link."""
        if before.kind == "results" and after.kind == "item":
            self.note(ticket, task, before, f"click[{self._front.asin(after).lower()}]", after)

    def _steps_to(self, ticket: str, address: str) -> list[_Step] | None:
        """The steps that led to a page, None if nobody saw how it was reached."""
        steps = self._open.get(ticket, [])
        for place in range(len(steps), 0, -1):
            if steps[place - 1].after == address:
                return steps[:place]
        return [] if address == self._front.address(HOME) else None

    def _write(self, ticket: str, task: int) -> None:
        episode = self._played([step.action for step in self._open.pop(ticket)], task)
        self._written.add(ticket)
        with self._path.open("a", encoding="ascii") as file:
            file.write(json.dumps(episode.to_dict()) + "\n")
        logger.info("kept a demonstration of %s, score %.2f", episode.task_id, episode.task_score)

    def _played(self, actions: list[str], task: int) -> Episode:
        observation, info = self._core.reset(seed=0, options={"task_id": self._core.goals.task_id(task)})
        recorder = EpisodeRecorder(observation, info)
        for action in actions:
            recorder.add(action, self._core.step(action))
        return recorder.episode()

"""Episodes on the site: what people do is kept as demonstrations, and what agents did is shown step by step."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from skillc_gym.envs.webshop.env import WebShopEnv
from skillc_gym.envs.webshop.shop.pages import HOME, Page
from skillc_gym.envs.webshop.site.front import ShopFront
from skillc_gym.episodes import Episode, EpisodeRecorder
from skillc_gym.errors import ConfigError, SkillCError

logger = logging.getLogger(__name__)
_MOST_OPEN, _LONGEST = 1_000, 1 << 17
"""How many episodes are followed at once, and how many letters of addresses of each."""
_SIDES = 2


class _Step(NamedTuple):
    before: str
    action: str
    after: str


class Recording:
    """Follows people through the shop and writes down every episode that ends with a purchase, one line of JSON each.

    Going back and continuing from there takes back what came in between: a recorded episode is the path that led to the
    purchase. It is played once more in the text environment ``core``, whose observations are kept. The file holds
    ``limit`` bytes at most; the log says what was left out. ConfigError if it is full already or cannot be written.
    """

    def __init__(self, path: Path, front: ShopFront, core: WebShopEnv, *, limit: int = 64 << 20) -> None:
        self._path, self._front, self._core, self._limit = path, front, core, limit
        self._open: OrderedDict[str, list[_Step] | None] = OrderedDict()  # None for one that has been written
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.open("a", encoding="ascii").close()
        except OSError as error:
            raise ConfigError(f"Demonstrations cannot be kept in {path} ({error}); choose another file.") from error
        if path.stat().st_size >= limit:
            raise ConfigError(f"{path} holds {limit >> 20} MiB already: choose another file, or raise --record-limit.")

    def note(self, ticket: str, task: int, before: Page, action: str, after: Page) -> None:
        """Takes down a step of an episode: what the person did, as an agent would say it, where, and where that led."""
        step = _Step(self._front.address(before), action, self._front.address(after))
        said = self._front.act(task, before, action) == after
        steps = self._steps_to(ticket, step.before) if said else None
        if steps is None or sum(len(one.after) for one in steps) > _LONGEST:
            if after.kind == "done" and self._open.get(ticket, []) is not None:
                logger.warning("a purchase is not kept: a step that led to it cannot be said as an action, or is long")
            return
        self._open[ticket] = [*steps, step]
        self._open.move_to_end(ticket)
        if len(self._open) > _MOST_OPEN:
            self._open.popitem(last=False)
        if after.kind == "done":
            self._write(ticket, task, [*steps, step])

    def _steps_to(self, ticket: str, address: str) -> list[_Step] | None:
        """The steps that led to a page, None if it is not known how it was reached."""
        steps = self._open.get(ticket, [])
        if steps is None:
            return None
        for place in range(len(steps), 0, -1):
            if steps[place - 1].after == address:
                return steps[:place]
        return [] if address == self._front.address(HOME) else None

    def _write(self, ticket: str, task: int, steps: list[_Step]) -> None:
        self._open[ticket] = None
        episode = self._played([step.action for step in steps], task)
        line = json.dumps(episode.to_dict()) + "\n"
        size = self._path.stat().st_size if self._path.is_file() else 0
        if size + len(line) > self._limit:
            logger.warning("%s is full: what people do is no longer kept", self._path)
            return
        try:
            with self._path.open("a", encoding="ascii") as file:
                file.write(line)
        except OSError as error:  # nobody's purchase fails by it
            logger.warning("a demonstration could not be kept in %s: %s", self._path, error)
            with contextlib.suppress(OSError):
                os.truncate(self._path, size)  # half a line would take the next one with it
            return
        logger.info("kept a demonstration of %s, score %.2f", episode.task_id, episode.task_score)

    def _played(self, actions: list[str], task: int) -> Episode:
        observation, info = self._core.reset(seed=0, options={"task_id": self._core.goals.task_id(task)})
        recorder = EpisodeRecorder(observation, info)
        for action in actions:
            self._core.np_random = np.random.default_rng(task)  # as the site draws upstream's random results
            recorder.add(action, self._core.step(action))
        return recorder.episode()


@dataclass(frozen=True)
class Replay:
    """An episode, the index of its goal, and the addresses of the page before each action and of the last one."""

    episode: Episode
    task: int
    addresses: tuple[str, ...]

    def moment(self, step: int, ticket: str) -> dict[str, Any]:
        """What a template needs to show the page after so many actions; after the last one the episode stands still."""
        place = min(step, len(self.episode.turns))
        turn = self.episode.turns[place] if place < len(self.episode.turns) else None
        shown = {"condition": "with skill" if self.episode.condition else "without skill", "turn": turn}
        return {**shown, "episode": self.episode, "place": place, "ticket": ticket, "address": self.addresses[place]}


def replay_rows(episodes: Sequence[Episode], front: ShopFront) -> list[list[Replay]]:
    """Lays recorded episodes of a task side by side, two in a row; ConfigError if they are of another shop."""
    tasks: dict[str, list[Replay]] = {}
    for episode in episodes:
        tasks.setdefault(episode.task_id, []).append(_replay(episode, front))
    return [row for replays in tasks.values() for row in _side_by_side(replays)]


def _side_by_side(replays: list[Replay]) -> list[list[Replay]]:
    """Pairs episodes with the skill with those without it; what is left over stands alone."""
    on = [replay for replay in replays if replay.episode.condition]
    off = [replay for replay in replays if not replay.episode.condition]
    pairs = [[with_skill, without] for with_skill, without in zip(on, off, strict=False)]
    left = (on if len(on) > len(off) else off)[len(pairs) :]
    return pairs + [left[start : start + _SIDES] for start in range(0, len(left), _SIDES)]


def _replay(episode: Episode, front: ShopFront) -> Replay:
    try:
        task = front.goals.index(episode.task_id)
    except SkillCError as error:
        raise ConfigError(f"The shop has no task {episode.task_id!r}: {error}") from error
    here = front.core.shown_goal(task).instruction
    if episode.goal != here:
        raise ConfigError(
            f"The task {episode.task_id} was {episode.goal!r}, and is {here!r} here: give the data and the options "
            "that the episodes were played with."
        )
    page, addresses = HOME, [front.address(HOME)]
    for turn in episode.turns:
        following = front.act(task, page, turn.action)
        if following is None and turn.action_valid:
            raise ConfigError(
                f"{episode.task_id}: {turn.action!r} led somewhere, and leads nowhere here; random results, as of "
                "upstream's <r>, cannot be shown again."
            )
        page = following or page
        addresses.append(front.address(page))
    return Replay(episode, task, tuple(addresses))

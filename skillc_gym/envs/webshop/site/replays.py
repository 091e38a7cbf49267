"""Recorded episodes on the site, step by step, those of a task side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skillc_gym.envs.webshop.shop.pages import HOME
from skillc_gym.envs.webshop.site.front import ShopFront
from skillc_gym.episodes import Episode
from skillc_gym.errors import ConfigError, SkillCError

__all__ = ["Replay", "Replays"]

_SIDES = 2


@dataclass(frozen=True)
class Replay:
    """An episode with the addresses of its pages.

    Attributes:
        episode: The episode.
        task: The index of its goal.
        addresses: The page before each action, and the last one.
    """

    episode: Episode
    task: int
    addresses: tuple[str, ...]

    def moment(self, step: int, ticket: str) -> dict[str, Any]:
        """What a template needs in order to show a step.

        Args:
            step: The number of actions carried out; after the last one the episode stands still.
            ticket: Names the episode in addresses.
        """
        episode, place = self.episode, min(step, len(self.episode.turns))
        turn = episode.turns[place] if place < len(episode.turns) else None
        return {
            "condition": "with skill" if episode.condition else "without skill",
            "on": bool(episode.condition),
            "skill": episode.skill,
            "skill_text": episode.skill_text,
            "score": episode.task_score,
            "steps": len(episode.turns),
            "place": place,
            "address": f"/e/{ticket}/{self.addresses[place]}",
            "action": "" if turn is None else turn.action,
            "reply": "" if turn is None or turn.reply == turn.action else turn.reply,
            "possible": turn is None or turn.action_valid,
        }


class Replays:
    """The recorded episodes of a run, by task.

    Args:
        episodes: The episodes.
        front: The shop they were played in.

    Raises:
        ConfigError: They are of another shop, or there are none.
    """

    def __init__(self, episodes: Sequence[Episode], front: ShopFront) -> None:
        if not episodes:
            raise ConfigError("There are no episodes to show.")
        found = [_replay(episode, front) for episode in episodes]
        tasks: dict[str, list[Replay]] = {}
        for replay in found:
            tasks.setdefault(replay.episode.task_id, []).append(replay)
        self.rows = [row for replays in tasks.values() for row in _side_by_side(replays)]


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
    here = front.goals.goal(task).instruction
    if episode.goal != here:
        raise ConfigError(
            f"The task {episode.task_id} was {episode.goal!r}, and is {here!r} here: give the data and the options "
            "that the episodes were played with."
        )
    page, addresses = HOME, [front.address(HOME)]
    for turn in episode.turns:
        page = front.act(task, page, turn.action) or page
        addresses.append(front.address(page))
    return Replay(episode, task, tuple(addresses))

"""Batches of made-up trajectories, for schemes, memories and row makers."""

from collections.abc import Sequence
from typing import Any

from skillc_gym.episodes import Episode, Turn
from trainers.advantages import RolloutBatch
from trainers.base import TokenRow, Trajectory


def episode(
    task: str = "t",
    *,
    won: bool = True,
    condition: int = 0,
    kind: str = "heat",
    actions: Sequence[str] = ("go to fridge 1", "take egg 1 from fridge 1"),
    observations: Sequence[str] | None = None,
    skill: str = "",
    text: str = "",
    goal: str = "heat some egg",
) -> Episode:
    seen = observations or [f"after {i}" for i in range(len(actions))]
    last = len(actions) - 1
    turns = tuple(
        Turn(o, a, a, True, True, float(won and i == last)) for i, (o, a) in enumerate(zip(seen, actions, strict=True))
    )
    return Episode(task, kind, goal, condition, skill, "", text, 0, 0, turns, won, float(won), True, False)


def trajectory(played: Episode, tokens_per_turn: int = 2) -> Trajectory:
    """One row: a prompt of one token, then for each turn its tokens, and one of the environment between two."""
    ids: list[int] = []
    mask: list[int] = []
    for number in range(len(played.turns)):
        ids += [5] * bool(number) + [7] * tokens_per_turn
        mask += [0] * bool(number) + [1] * tokens_per_turn
    row = TokenRow([1], ids, mask, [-0.5 * own for own in mask], (tokens_per_turn,) * len(played.turns))
    return Trajectory(played, [row], 0)


def batch_of(episodes: Sequence[Episode], **fields: Any) -> RolloutBatch:
    from dataclasses import replace

    batch = RolloutBatch.from_trajectories([trajectory(played) for played in episodes])
    return replace(batch, **fields)

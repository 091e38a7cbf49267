"""One generated game, without the set that it belongs to."""

from __future__ import annotations

from typing import Any, NamedTuple

from skillc_gym.envs.alfworld.generate.games import GameSpec
from skillc_gym.envs.alfworld.generate.knobs import KNOBS, read_knobs
from skillc_gym.envs.alfworld.tasks import SHORT_NAMES, resolve_task_types


class OneGame(NamedTuple):
    task_id: str
    raw: dict[str, Any]


def generate_game(task_type: str, *, seed: int, **options: Any) -> OneGame:
    knobs = read_knobs(**{name: options.pop(name) for name in KNOBS if name in options})
    spec = GameSpec(SHORT_NAMES[resolve_task_types(task_type)[0]], seed, knobs=knobs, **options)
    return OneGame(spec.task_id(spec.house()[0]), spec.content())

"""The demonstration's settings at a size for tests."""

from __future__ import annotations

GAMES = {"seed": 0, "games_per_type": 4, "size": "small"}
SMALL = {
    "env_options": {"generator": GAMES},
    "tasks_per_step": 2,
    "group_size": 2,
    "panel_per_type": 1,
    "max_episode_steps": 3,
    "max_reply_tokens": 12,
    "validate_every": 1,
    "save_every": 1,
}

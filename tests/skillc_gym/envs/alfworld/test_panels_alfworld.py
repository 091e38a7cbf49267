from __future__ import annotations

import pytest

from skillc_gym.envs.alfworld.data.games import open_games, panel
from skillc_gym.envs.alfworld.tasks import TASK_TYPES
from skillc_gym.panels import panel_hash

GENERATOR = {"seed": 0, "games_per_type": 6, "size": "small"}


def test_a_panel_of_generated_games_holds_every_type_alike():
    chosen = panel("valid_unseen", per_type=2, data="generated", generator=GENERATOR)
    games = open_games("generated", split="valid_unseen", generator=GENERATOR)
    assert sorted(games.task_type(task_id) for task_id in chosen) == sorted(2 * TASK_TYPES)


def test_a_panel_of_chosen_types():
    chosen = panel("train", per_type=3, data="generated", generator=GENERATOR, task_types="heat")
    assert len(chosen) == 3
    assert all("pick_heat_then_place_in_recep" in task_id for task_id in chosen)


@pytest.mark.parametrize(
    ("split", "per_type", "expected"), [("valid_seen", 13, "6aa05d6e352c"), ("valid_unseen", 9, "bf9aadf5aa81")]
)
def test_the_panels_of_the_real_games_are_the_same_everywhere(alfworld_data, split, per_type, expected):
    assert panel_hash(panel(split, per_type=per_type, seed=0, data=alfworld_data))[:12] == expected

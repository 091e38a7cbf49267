from __future__ import annotations

import pytest

from skillc_gym.envs.alfworld.tasks import SHORT_NAMES, TASK_TYPES, resolve_task_types, split_of, task_type_of
from skillc_gym.errors import UnknownNameError


def test_full_and_short_names_mean_the_same_in_upstreams_order():
    assert resolve_task_types(None) == TASK_TYPES
    assert resolve_task_types(["cool", "pick", "pick_and_place_simple"]) == (TASK_TYPES[0], TASK_TYPES[4])
    assert resolve_task_types("pick2") == ("pick_two_obj_and_place",)
    assert tuple(SHORT_NAMES) == TASK_TYPES


@pytest.mark.parametrize("names", [["fry"], "fry", [], [3]])
def test_an_unknown_type_is_named(names):
    with pytest.raises(UnknownNameError, match="Unknown task type"):
        resolve_task_types(names)


def test_a_task_id_tells_its_type_and_split():
    task_id = "valid_seen/pick_heat_then_place_in_recep-Mug-None-Desk-1/trial_1"
    assert task_type_of(task_id) == "pick_heat_then_place_in_recep"
    assert task_type_of(task_id.split("/")[1]) == "pick_heat_then_place_in_recep"
    assert split_of(task_id) == "valid_seen"
    with pytest.raises(UnknownNameError, match="bake"):
        task_type_of("train/bake-Mug-None-Desk-1/trial_1")

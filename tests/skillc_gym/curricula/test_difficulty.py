"""The curriculum of difficulties: what opens when, what comes how often, and that it can be stopped and resumed."""

import json
from collections import Counter
from functools import partial

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillc_gym.curricula.difficulty import DifficultyCurriculum
from skillc_gym.envs.alfworld.experts.planner import shortest_plan
from skillc_gym.errors import CheckpointError, ConfigError, UnknownNameError
from skillc_gym.vector import PairedVectorEnv
from skillc_gym.wrappers import ProceduralCurriculum

TASKS = {kind: {level: [f"{kind}{level}{n}" for n in "ab"] for level in (0.0, 0.5, 1.0)} for kind in ("heat", "cool")}
LEVELS = {"difficulty": [0, 0.5, 1], "games_per_type": 2}
MAKE = {"data": "generated", "task_types": ["pick", "heat"], "generator": LEVELS}


def practised(skill: dict[float, float], *, episodes: int, seed: int = 0, **options) -> DifficultyCurriculum:
    """Practises with an agent whose success rate depends on the level alone."""
    curriculum, rng = DifficultyCurriculum(TASKS, **options), np.random.default_rng(seed)
    for _ in range(episodes):
        name = curriculum.propose(1, rng)[0]
        curriculum.update(name, float(rng.random() < skill[float(name[4:-1])]))
    return curriculum


def test_the_easiest_comes_first_and_harder_levels_open_by_success():
    curriculum = DifficultyCurriculum(TASKS, min_episodes=3, target=0.5)
    drawn = Counter(name[:-1] for name in curriculum.propose(500, np.random.default_rng(0)))
    assert set(drawn) == {"heat0.0", "cool0.0"}
    assert abs(drawn["heat0.0"] - 250) < 40
    for success in (1.0, 0.0):
        curriculum.update("heat0.0a", success)
    assert curriculum.open_levels("heat") == (0.0,)
    curriculum.update("heat0.0b", 1.0)
    assert curriculum.open_levels("heat") == (0.0, 0.5)
    assert curriculum.open_levels("cool") == (0.0,)


def test_practice_gathers_where_success_is_on_target():
    assert practised({0.0: 0.1, 0.5: 0.0, 1.0: 0.0}, episodes=300).open_levels("heat") == (0.0,), "never on target"
    curriculum = practised({0.0: 1.0, 0.5: 0.5, 1.0: 0.0}, episodes=600, decay=0.98)
    chances = dict(zip(curriculum.levels("heat"), curriculum.chances("heat"), strict=False))
    assert curriculum.open_levels("heat") == (0.0, 0.5, 1.0)
    assert chances[0.5] > 0.6 > 0.2 > max(chances[0.0], chances[1.0])


@settings(max_examples=60, deadline=None)
@given(outcomes=st.lists(st.tuples(st.integers(0, 2), st.floats(0, 1)), max_size=60), floor=st.floats(0, 0.9))
def test_chances_are_chances_and_the_state_survives_json(outcomes, floor):
    options = {"floor": floor, "min_episodes": 2}
    curriculum = DifficultyCurriculum(TASKS, **options)
    for index, success in outcomes:
        curriculum.update(f"heat{(0.0, 0.5, 1.0)[index]}a", success)
    chances = curriculum.chances("heat")
    assert sum(chances) == pytest.approx(1)
    assert min(chances) >= floor / len(chances) - 1e-12
    resumed = DifficultyCurriculum(TASKS, **options)
    resumed.load_state_dict(json.loads(json.dumps(curriculum.state_dict(), allow_nan=False)))
    draws = [one.propose(20, np.random.default_rng(3)) for one in (curriculum, resumed)]
    assert draws[0] == draws[1]


def test_a_state_of_before_with_its_second_mean_is_read():
    curriculum = DifficultyCurriculum(TASKS)
    older = dict.fromkeys(TASKS, [[3, 0.5, 0.25]] * 3)
    curriculum.load_state_dict({**curriculum.state_dict(), "records": older})
    assert (curriculum.records["heat"][0].episodes, curriculum.records["heat"][0].success) == (3, 0.5)


@pytest.mark.parametrize("wrong", [{"target": 1.0}, {"min_episodes": 0}, {"decay": "1"}])
def test_options_out_of_range_are_named(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        DifficultyCurriculum(TASKS, **wrong)


def test_mistakes_are_named():
    with pytest.raises(ConfigError, match="at every level"):
        DifficultyCurriculum({"heat": {0.0: []}})
    with pytest.raises(ConfigError, match="each task at one level"):
        DifficultyCurriculum({"heat": {0.0: ["x"], 1.0: ["x", "y"]}})
    curriculum = DifficultyCurriculum(TASKS)
    with pytest.raises(UnknownNameError, match="Did you mean"):
        curriculum.update("heat0.0c", 1.0)
    with pytest.raises(ConfigError, match="between 0 and 1"):
        curriculum.update("heat0.0a", 2.0)
    with pytest.raises(CheckpointError, match="damaged"):
        curriculum.load_state_dict({**curriculum.state_dict(), "open": {"heat": 9, "cool": 1}})
    with pytest.raises(CheckpointError, match="another curriculum"):
        DifficultyCurriculum({"heat": TASKS["heat"]}).load_state_dict(curriculum.state_dict())
    with pytest.raises(CheckpointError, match="no whole state"):
        curriculum.load_state_dict({**curriculum.state_dict(), "records": {"heat": [[1, float("nan")]]}})
    with pytest.raises(ConfigError, match="generator="):
        ProceduralCurriculum(gymnasium.make("skillc/ALFWorld-v0", data="generated", generator={"games_per_type": 1}))


def test_the_wrapper_climbs_with_an_agent_that_wins():
    env = ProceduralCurriculum(gymnasium.make("skillc/ALFWorld-v0", **MAKE), {"min_episodes": 2})
    seen = []
    for episode in range(30):
        seen.append(env.reset(seed=None if episode else 0)[1]["task_id"][-5:])
        for command in shortest_plan(env):
            env.step(command)
    assert seen[0] == "D0000"
    assert set(seen) == {"D0000", "D0500", "D1000"}
    assert env.curriculum.open_levels("pick_and_place_simple") == (0.0, 0.5, 1.0)


def test_the_wrapper_respects_a_named_task_and_counts_finished_episodes_only():
    env = ProceduralCurriculum(gymnasium.make("skillc/ALFWorld-v0", max_episode_steps=2, **MAKE))
    again = gymnasium.make(env.spec)
    assert again.reset(seed=4, options={"task_id": None})[1]["task_id"] == env.reset(seed=4)[1]["task_id"]
    hard = next(name for name in env.unwrapped.task_ids if name.endswith("D1000"))
    record = env.curriculum.records[env.unwrapped.task_type_of(hard)][2]
    for steps, episodes in ((1, 0), (2, 1)):
        assert env.reset(seed=0, options={"task_id": hard})[1]["task_id"] == hard
        for _ in range(steps):
            env.step("look")
        assert record.episodes == episodes
    assert record.success == 0.0


def test_members_of_a_group_share_their_curriculum():
    with pytest.raises(ConfigError, match="one DifficultyCurriculum for all"):
        PairedVectorEnv("skillc/ALFWorld-v0", 1, 2, wrappers=(ProceduralCurriculum,), **MAKE)
    shared = DifficultyCurriculum.of(gymnasium.make("skillc/ALFWorld-v0", **MAKE))
    wrap = partial(ProceduralCurriculum, curriculum=shared)
    assert PairedVectorEnv("skillc/ALFWorld-v0", 2, 2, wrappers=(wrap,), **MAKE).reset(seed=0)

from collections import Counter

import pytest
from toy_env import TYPES, ToyEnv

from skillc_gym.curricula.skills import InternalizationCurriculum
from skillc_gym.errors import ConfigError
from skillc_gym.wrappers import SkillCurriculum, SkillInjection


class Fixed:
    task_types = TYPES
    active = ("fetch", "open")

    def rho_with(self, kind):
        return {"fetch": 0.8, "open": 0.25}[kind]


def stack(library, curriculum=None):
    return SkillCurriculum(SkillInjection(ToyEnv(), library, enabled=False), curriculum or Fixed())


def episodes(env, count, seed=0):
    infos = [env.reset(seed=seed)[1]] + [env.reset()[1] for _ in range(count - 1)]
    return [(info["task_id"], info["task_type"], info["condition"]) for info in infos]


def test_types_come_equally_often_and_conditions_at_their_share(toy_library):
    drawn = episodes(stack(toy_library), 3000)
    kinds = Counter(kind for _, kind, _ in drawn)
    assert all(abs(kinds[kind] / 3000 - 1 / 3) < 0.04 for kind in TYPES)
    share = {kind: sum(c for _, k, c in drawn if k == kind) / kinds[kind] for kind in TYPES}
    assert abs(share["fetch"] - 0.8) < 0.05
    assert abs(share["open"] - 0.25) < 0.05
    assert share["paint"] == 0
    assert len({task_id for task_id, *_ in drawn}) == 12


def test_the_seed_decides_everything_and_episodes_differ(toy_library):
    one, other = episodes(stack(toy_library), 40, seed=7), episodes(stack(toy_library), 40, seed=7)
    assert one == other
    assert one != episodes(stack(toy_library), 40, seed=8)
    assert one[0] != one[1] or one[1] != one[2]
    assert len(set(one)) > 10


def test_a_curriculum_updated_between_episodes_is_followed(toy_library):
    curriculum = InternalizationCurriculum(TYPES, total_steps=10, rho=1.0)
    env = stack(toy_library, curriculum)
    assert all(condition for *_, condition in episodes(env, 20))
    curriculum.update(dict.fromkeys(TYPES, 0.0), dict.fromkeys(TYPES, 0.9), step=5)
    assert curriculum.active == ()
    assert not any(condition for *_, condition in episodes(env, 20))


def test_options_overrule_it_without_shifting_later_draws(toy_library):
    free, told = stack(toy_library), stack(toy_library)
    expected = episodes(free, 5)
    told.reset(seed=0)
    info = told.reset(options={"task_id": "toy/paint/3", "skill": True})[1]
    assert (info["task_id"], info["condition"]) == ("toy/paint/3", 1)
    assert told.reset()[1]["task_id"] == expected[2][0]
    unnamed = [told.reset(options={"task_id": None})[1]["task_id"] for _ in range(2)]
    assert unnamed == [task_id for task_id, *_ in expected[3:]]


def test_misuse_is_named(toy_library):
    with pytest.raises(ConfigError, match="put a SkillInjection below"):
        SkillCurriculum(ToyEnv(), Fixed())
    with pytest.raises(ConfigError, match="types without a task: fly"):
        stack(toy_library, InternalizationCurriculum(["open", "fly"]))
